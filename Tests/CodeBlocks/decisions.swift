// SPDX-License-Identifier: Apache-2.0

private let (policy, strict) = (Policy(), Decisions())
private func bytes(for cause: BodyProviderContext.Cause) async throws -> Data { Data() }
