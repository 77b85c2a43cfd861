// SPDX-License-Identifier: Apache-2.0

private let outer = try! Proxy("http://proxy.example:3128")
private let (inner, fast, spare) = (outer, outer, outer)
private struct Names { func addresses(of name: String) async throws -> [String] { [] } }
private let ownNames = Names()
private let origin = stage.origin
