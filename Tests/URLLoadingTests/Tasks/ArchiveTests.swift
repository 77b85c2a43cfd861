// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// HTTP Archives comply with the format for every kind of load.
@Suite(.timeLimit(.minutes(4)))
struct ArchiveTests {
    private func check(_ archive: HTTPArchive, sourceLocation: SourceLocation = #_sourceLocation) -> [AnyJSON] {
        let check = ArchiveCheck(archive.json)
        #expect(check.problems.isEmpty, "\(check.problems)", sourceLocation: sourceLocation)
        return check.entries
    }

    private func header(_ message: AnyJSON?, _ name: String) -> String? {
        message?["headers"]?.list?.first { $0["name"]?.text?.lowercased() == name.lowercased() }?["value"]?.text
    }

    @Test("an empty archive is one")
    func empty() {
        #expect(check(HTTPArchive()).isEmpty)
    }

    @Test("the check finds violations of the format")
    func wrong() {
        #expect(ArchiveCheck(Data("[]".utf8)).problems == [" is no object"])
        let entry =
            #"{"startedDateTime":"2026-01-01 00:00:00","time":3,"request":{},"response":{},"cache":{},"#
            + #""timings":{"send":1,"wait":1,"receive":0,"ssl":1},"extra":1}"#
        let check = ArchiveCheck(
            Data(#"{"log":{"version":"1.1","creator":{"name":"x","version":"1"},"entries":[\#(entry)]}}"#.utf8))
        for problem in [
            "version", "startedDateTime", "extra is unknown", "has no url", "has no content", "not 3.0",
            "ssl 1.0 of connect -1.0",
        ] {
            #expect(check.problems.contains { $0.contains(problem) }, "\(problem)")
        }
    }

    @Test("redirects, reuse, retries, failures, uploads, codings and handlers")
    func everything() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/next?b=2") }
            origin.route("/next") { _ in .ok("hello", headers: ["Content-Type": "text/plain"]) }
            origin.route("/stale") { $0.exchange == 1 ? .ok("y") : .raw([], then: .reset) }
            origin.route("/packed") { _ in
                .ok(
                    .bytes(Compressed.gzip(Array(repeating: 65, count: 10_000), period: 1)),
                    headers: ["Content-Encoding": "gzip"])
            }
            origin.route("/half") { _ in .ok(.declared(10, bytes: Array("hello".utf8))) }
            let archiver = HTTPArchiver()
            var configuration = Configuration.ephemeral
            configuration.observers = [archiver]
            configuration.networks.resolver = RecordingResolver(
                .failure(IOFailure(.hostNotFound("nowhere.example"), .resolve)))
            try await withSession(configuration) { session in
                try await session.expect(origin.url("/?a=1&q=x%20y+z&a&=#part"), "hello")
                try await session.expect(
                    Request(url: origin.url("/stale"), method: .put, body: .data(Data(count: 300_000))), "y")
                _ = try await session.data(from: origin.url("/packed"))
                await expectFailure(.truncated) { try await session.data(from: origin.url("/half")) }
                await expectFailure(.hostNotFound) {
                    try await session.data(from: URL(string: "http://nowhere.example/")!)
                }
                await expectFailure(.connectionRefused) {
                    try await session.data(from: URL(string: "http://127.0.0.1:1/")!)
                }
                _ = try await session.data(from: URL(string: "data:,no-entry")!)
                await expectFailure(.badURL) { try await session.data(from: URL(string: "http:///")!) }
            }
            let entries = check(archiver.archive)
            #expect(entries.count == 8 && archiver.archive.count == 8)
            let statuses = entries.compactMap { $0["response"]?["status"]?.number }
            #expect(statuses == [302, 200, 0, 200, 200, 200, 0, 0])
            let errors = entries.map { $0["response"]?["_error"]?.text }
            #expect(errors == [nil, nil, "connectionLost", nil, nil, "truncated", "hostNotFound", "connectionRefused"])

            let first = entries[0]
            let second = entries[1]
            let query = first["request"]?["queryString"]?.list?.map {
                "\($0["name"]?.text ?? "?")=\($0["value"]?.text ?? "?")"
            }
            #expect(query == ["a=1", "q=x y z", "a=", "="])
            #expect(first["request"]?["url"]?.text == origin.url("/?a=1&q=x%20y+z&a&=").absoluteString)
            #expect(first["response"]?["redirectURL"]?.text == "/next?b=2")
            #expect(first["timings"]?["dns"]?.number == -1 && first["timings"]?["connect"]?.number ?? -1 >= 0)
            #expect(second["timings"]?["connect"]?.number == -1 && second["connection"] == first["connection"])
            #expect(
                second["response"]?["content"]?["size"]?.number == 5
                    && second["response"]?["content"]?["mimeType"]?.text == "text/plain")
            #expect(second["serverIPAddress"]?.text == "127.0.0.1")
            #expect(
                entries[3]["request"]?["bodySize"]?.number == 300_000 && entries[3]["request"]?["method"]?.text == "PUT"
            )
            let packed = entries[4]["response"]
            let sizes = [
                packed?["content"]?["size"]?.number, packed?["content"]?["compression"]?.number,
                packed?["bodySize"]?.number,
            ]
            #expect(
                sizes[0] == 10_000 && (sizes[1] ?? 0) + (sizes[2] ?? 0) == 10_000
                    && header(packed, "Content-Encoding") == "gzip")
            #expect(
                entries[6]["timings"]?["dns"]?.number ?? -1 >= 0 && entries[6]["request"]?["headersSize"]?.number == -1)
        }
    }

    @Test("TLS is part of connecting")
    func secure() async throws {
        try await withSecureOrigin(.init(names: ["localhost.test"]), name: "localhost.test") { origin, configuration in
            origin.route("/") { _ in .ok("hello") }
            let archiver = HTTPArchiver()
            var configuration = configuration
            configuration.observers = [archiver]
            try await withSession(configuration) { session in
                for _ in 0..<2 { try await session.expect(origin.url(), "hello") }
            }
            var untrusting = Configuration.ephemeral
            untrusting.observers = [archiver]
            untrusting.networks.resolver = RecordingResolver()
            try await withSession(untrusting) { session in
                await expectFailure(.certificateUntrusted) { try await session.data(from: origin.url()) }
            }
            let timings = check(archiver.archive).compactMap { $0["timings"] }
            #expect(timings.map { ($0["ssl"]?.number ?? -1) > 0 } == [true, false, true])
            #expect(timings.map { ($0["dns"]?.number ?? -1) >= 0 } == [true, false, true])
        }
    }

    @Test("a request has the version that it was sent with, a response its own")
    func versions() async throws {
        let archiver = HTTPArchiver()
        var old = Configuration.ephemeral
        old.observers = [archiver]
        old.requestVersion = .http10
        var plain = Configuration.ephemeral
        plain.observers = [archiver]
        var shared = Configuration.http2
        shared.observers = [archiver]
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            try await withSession(plain) { try await $0.expect(origin.url(), "hello") }
            try await withSession(old) { try await $0.expect(origin.url(), "hello") }
        }
        try await withHTTP2TestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            try await withSession(shared) { try await $0.expect(origin.url(), "hello") }
        }
        let versions = check(archiver.archive).map { entry in
            ["request", "response"].map { entry[$0]?["httpVersion"]?.text }
        }
        #expect(versions == [["HTTP/1.1", "HTTP/1.1"], ["HTTP/1.0", "HTTP/1.1"], ["HTTP/2", "HTTP/2"]])
    }

    @Test("secrets stay out unless asked for")
    func secrets() async throws {
        try await withHTTPTestServer { origin in
            let port = origin.url().port ?? 0
            origin.route("/") { _ in
                .status(
                    .found,
                    headers: [
                        .location: "http://user:hidden@127.0.0.1:\(port)/next",
                        .setCookie: "id=hidden; Path=/; HttpOnly; Expires=Wed, 09-Jun-2032 10:18:14 GMT",
                        "Proxy-Authenticate": "Basic realm=hidden",
                    ])
            }
            origin.route("/next") { _ in .ok("hello") }
            for isAsked in [false, true] {
                let archiver = HTTPArchiver(contents: isAsked ? .secrets : [])
                var configuration = Configuration.ephemeral
                configuration.observers = [archiver]
                var request = Request(url: URL(string: "http://user:hidden@127.0.0.1:\(port)/")!)
                request.headers = [
                    .authorization: "Bearer hidden", .cookie: "a=hidden; b = hidden",
                    .proxyAuthorization: "Basic hidden",
                    .referer: "http://user:hidden@a.example/", "X-Mail": "me@a.example",
                ]
                try await withSession(configuration) { try await $0.expect(request, "hello") }
                let entries = check(archiver.archive)
                #expect(entries.count == 2)
                let text = String(decoding: archiver.archive.json, as: UTF8.self)
                #expect(text.contains("hidden") == isAsked, "\(text)")
                #expect(header(entries[0]["request"], "X-Mail") == "me@a.example")
                #expect(header(entries[0]["request"], "Authorization") == (isAsked ? "Bearer hidden" : "(removed)"))
                let cookies = entries[0]["request"]?["cookies"]?.list ?? []
                #expect(cookies.compactMap { $0["name"]?.text } == (isAsked ? ["a", "b"] : []))
                let set = entries[0]["response"]?["cookies"]?[0]
                #expect(
                    (set?["expires"]?.text == "2032-06-09T10:18:14.000Z") == isAsked
                        && (set?["httpOnly"] == .bool(true)) == isAsked)
            }
        }
    }

    @Test("tokens in queries, redirects and fields of other names stay out, too", arguments: [false, true])
    func tokens(_ isAsked: Bool) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .status(.found, headers: [.location: "/next?access_token=hidden&page=2", "X-Auth-Token": "hidden"])
            }
            origin.route("/next") { _ in .ok("hello") }
            let archiver = HTTPArchiver(contents: isAsked ? .secrets : [])
            var configuration = Configuration.ephemeral
            configuration.observers = [archiver]
            var request = Request(url: URL(string: "http://127.0.0.1:\(origin.port)/?api_key=hidden&q=text")!)
            request.headers = ["X-Api-Key": "hidden", "Private-Token": "hidden"]
            try await withSession(configuration) { try await $0.expect(request, "hello") }
            let entries = check(archiver.archive)
            let text = String(decoding: archiver.archive.json, as: UTF8.self)
            #expect(text.contains("hidden") == isAsked, "\(text)")
            #expect(
                entries.first?["response"]?["redirectURL"]?.text
                    == "/next?access_token=\(isAsked ? "hidden" : "(removed)")&page=2")
            #expect(
                entries.first?["request"]?["queryString"]?.list?.compactMap { $0["value"]?.text } == [
                    isAsked ? "hidden" : "(removed)", "text",
                ])
        }
    }

    @Test("the oldest go first; a file appears whole")
    func bounded() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/1") { _ in .ok("1") }
            origin.route("/2") { _ in .ok("2") }
            let archiver = HTTPArchiver(maximumEntries: 1)
            try await withSession(.ephemeral.with { $0.observers = [archiver] }) { session in
                _ = try await session.data(from: origin.url("/1"))
                _ = try await session.data(from: origin.url("/2"))
            }
            let file = FileManager.default.temporaryDirectory.appending(
                path: "archive-\(UInt64.random(in: 0 ... .max)).har")
            defer { try? FileManager.default.removeItem(at: file) }
            try Data("old".utf8).write(to: file)
            try archiver.archive.write(to: file)
            let read = ArchiveCheck(try Data(contentsOf: file))
            #expect(
                read.problems.isEmpty && read.entries.count == 1
                    && read.entries[0]["request"]?["url"]?.text == origin.url("/2").absoluteString)
        }
    }
}
