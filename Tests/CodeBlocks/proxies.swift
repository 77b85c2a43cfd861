// SPDX-License-Identifier: Apache-2.0

private let outer = Proxy?.none!
private let (inner, fast, spare) = (outer, outer, outer)
private struct Names { func addresses(of name: String) async throws -> [String] { [] } }
private let ownNames = Names()
private let origin = HTTPTestServer?.none!
