// SPDX-License-Identifier: Apache-2.0

private struct Receipt: Codable {}
private let (image, picture, bytes) = (Data(), file, Data())
private struct User: Codable {}
private let lines = AsyncStream { "" }
private struct Sum { var text = "" }
private let sum = Sum()
private func bytes(for cause: BodyProviderContext.Cause) async throws -> Data { Data() }
