// SPDX-License-Identifier: Apache-2.0

// The names that code blocks of the guides presume, compiled and run by script/code-blocks.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

nonisolated(unsafe) var configuration = Configuration.default
nonisolated(unsafe) var decisions = Decisions()
nonisolated(unsafe) var request = Request(url: url)
let url = stage.url
let urls = [url, url, url]
let session = Session()
let store = CookieStore()
let folder = stage.folder
let film = folder.appending(path: "film")
let file = folder.appending(path: "file")
let place = folder.appending(path: "place")
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
