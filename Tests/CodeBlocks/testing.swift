// SPDX-License-Identifier: Apache-2.0

private let (clock, address) = (ManualClock(), file)
private let (origin, server) = (HTTPTestServer?.none!, HTTP2TestServer?.none!)
private func use(_ url: URL) async throws -> String { "" }
