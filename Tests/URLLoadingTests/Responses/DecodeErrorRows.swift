// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The error texts for bodies that cannot be decoded, and for hosts.
@Suite(.timeLimit(.minutes(4)))
struct DecodeErrorRows {
    struct Order: Codable, Sendable {
        struct Item: Codable, Sendable { var price: Int }
        enum State: String, Codable, Sendable { case open, closed }
        var items: [Item]
        var state: State
        var notes: [String: Int]?
    }

    static let broken: [(String, String)] = [
        ("{\"items\": [", "no Order: it is not JSON"),
        (
            "{\"items\": [{\"price\": 1}, {\"prize\": \"secret\"}], \"state\": \"open\"}",
            "no Order: items[1].price is missing"
        ),
        ("{\"items\": [{\"price\": \"secret\"}], \"state\": \"open\"}", "no Order: items[0].price is not Int"),
        (
            "{\"items\": [{\"price\": null}], \"state\": \"open\"}",
            "no Order: items[0].price has no value, where Int is required"
        ),
        ("{\"items\": {}, \"state\": \"open\"}", "no Order: items is not an array"),
        ("[\"secret\"]", "no Order: the whole is not an object"),
        ("{\"items\": [], \"state\": \"secret\"}", "no Order: state has a value that the type cannot take"),
        ("{\"items\": [], \"state\": \"open\", \"notes\": {\"a\\nb\": \"secret\"}}", "no Order: notes.ab is not Int"),
    ]

    @Test("a decoding error contains type, key path and URL, and no value", arguments: broken)
    func words(_ text: String, _ words: String) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.bytes(Array(text.utf8))) }
            try await withSession(.ephemeral) { session in
                let scoped = await failure(.undecodableBody, .remote, .decoding) {
                    try await session.load(Request(url: origin.url())) { _, body in try await body.decode(Order.self) }
                }
                #expect(scoped?.detail == words && scoped?.url == origin.url() && scoped?.underlying is DecodingError)
                let task = session.dataTask(from: origin.url()).resumed()
                let held = await failure(.undecodableBody, .remote, .decoding) {
                    try await task.body.decode(Order.self)
                }
                #expect(held?.detail == words && held?.url == origin.url())
                let (data, response) = try await session.data(from: origin.url())
                let collected = await failure(.undecodableBody) { try data.decode(Order.self, from: response) }
                #expect(collected?.detail == words && collected?.url == origin.url())
                let bare = await failure(.undecodableBody) { try data.decode(Order.self) }
                #expect(bare?.detail == words && bare?.url == nil)
                #expect(!"\(words)".contains("secret"))
            }
        }
    }

    @Test("the error for a body too long to be decoded contains its URL")
    func tooLong() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("[1, 2, 3]") }
            try await withSession(.ephemeral) { session in
                let error = await failure(.bodyTooLarge) {
                    try await session.load(Request(url: origin.url())) { _, body in
                        try await body.decode([Int].self, upTo: 3)
                    }
                }
                #expect(error?.url == origin.url())
            }
        }
    }

    @Test("the length of a key path is limited")
    func longPath() async {
        let text = "{\"\(String(repeating: "k", count: 5000))\": \"secret\"}"
        let error = await failure(.undecodableBody) { try Data(text.utf8).decode([String: Int].self) }
        #expect((error?.detail?.count ?? .max) < 260)
    }

    @Test(
        "an internationalised host is shown as its A-label",
        arguments: [
            ("http://b\u{FC}cher.example/a", "xn--bcher-kva.example"),
            ("http://b%C3%BCcher.example/a", "xn--bcher-kva.example"),
            ("http://xn--bcher-kva.example/a", "xn--bcher-kva.example"), ("http://example.org/a", "example.org"),
        ])
    func hosts(_ text: String, _ shown: String) throws {
        let address = try url(text)
        let error = LoadError(.hostNotFound, phase: .resolving, party: .system, url: address)
        #expect("\(error)" == "hostNotFound (resolving, http://\(shown)/a): the host name \(shown) does not exist")
        let session = Session(.ephemeral)
        #expect(session.dataTask(from: address).description.hasSuffix("http://\(shown)/a"))
        session.invalidateAndCancel()
    }

    @Test("an address of version 6 is shown in brackets")
    func addresses() throws {
        let session = Session(.ephemeral)
        #expect(session.dataTask(from: try url("http://[::1]:80/a")).description.hasSuffix("http://[::1]:80/a"))
        session.invalidateAndCancel()
    }

    @Test("the error of a WebSocket stopped during its handshake names the URL", arguments: [false, true])
    func webSocket(_ isIdle: Bool) async throws {
        let silent = try SilentHost()
        defer { silent.close() }
        var configuration = Configuration.patient
        if isIdle { configuration.timeouts.idle = .milliseconds(20) }
        let session = Session(configuration)
        let address = try url("wss://127.0.0.1:\(silent.port)/")
        let socket = session.webSocketTask(address).resumed()
        try await silent.acceptFirstByte()
        if !isIdle { socket.cancel() }
        let error = await failure(isIdle ? .idleTimeout : .cancelled) { try await socket.opened }
        #expect(error?.url?.host() == "127.0.0.1" && error?.url?.port == Int(silent.port))
        await expectEmpty(session)
    }
}
