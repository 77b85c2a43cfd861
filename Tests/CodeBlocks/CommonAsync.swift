// SPDX-License-Identifier: Apache-2.0

// The names that code blocks of the guides presume. Only type-checked, by script/code-blocks; never run.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

nonisolated(unsafe) var configuration = Configuration.default
nonisolated(unsafe) var decisions = Decisions()
nonisolated(unsafe) var request = Request(url: url)
let url = URL(filePath: "/")
let urls = [url]
let session = Session()
let store = CookieStore()
let file = URL(filePath: "/")
let folder = file
let place = file
let film = file
let host = "stream.example"
let port = 7

struct Order: Codable { var id = "" }
let order = Order()

/// A store of the program's own secrets.
struct Vault {
    func password(of host: String) async throws -> String { "" }
    func passphrase() async throws -> String { "" }
    func pins(of host: String) async throws -> Set<Configuration.TLS.Pin> { [] }
}
let vault = Vault()

/// Decides for the program.
struct Policy {
    func allows(_ url: URL) async throws -> Bool { true }
}

func show(_ values: Any?...) {}
