// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// The use cases of decisions in the async API; in the classic API each is a delegate method.
@Suite(.timeLimit(.minutes(4)))
struct HookRows {
    private static var restricting: Decisions {
        var decisions = Decisions()
        decisions.challenge = Decision { _ in .use(Credential(user: "ada", password: "secret")) }
        decisions.response = Decision { $0.mediaType?.essence == "image/png" ? .becomeDownload() : .allow }
        decisions.bodyProvider = Decision { _ in .stream { Pieces(["12345"]) } }
        decisions.cache = Decision { _ in .skip }
        decisions.redirect = Decision { _ in .doNotFollow }
        return decisions
    }

    private static func upload(_ origin: HTTPTestServer) -> Request {
        Request(url: origin.url("/count"), method: .post, headers: [.contentType: "text/plain"], body: .provided)
    }

    @Test(
        "decisions can log in, choose a file by type, provide a stream, refuse to store and to follow (checklist 12)"
    )
    func decided() async throws {
        try await withHTTPTestServer { origin in
            origin.routeDecisions()
            try await withSession(.ephemeral, decisions: Self.restricting) { session in
                try await session.expect(origin.url("/locked"), "in")
                try await session.expect(origin.url("/page"), "html")
                try await session.expect(Self.upload(origin), "5")
                for _ in 0..<2 { try await session.expect(origin.url("/kept"), "kept") }
                #expect(origin.requests.count { $0.path == "/kept" } == 2)
                let (_, response) = try await session.data(from: origin.url("/from"))
                #expect(response.http?.status == .found)
                let content = try await Self.file(session.dataTask(from: origin.url("/image")))
                #expect(content == Data("png".utf8))
            }
        }
    }

    /// The content of the task's download.
    private static func file(_ task: LoadTask<Data>) async throws -> Data? {
        let events = task.events
        task.resume()
        for await event in events {
            guard case .becameDownload(let download) = event else { continue }
            let file = try await download.value
            return try file.content(upTo: 1 << 20)
        }
        return nil
    }

    @Test("without decisions each of these follows the library's default (checklist 12)")
    func undecided() async throws {
        try await withHTTPTestServer { origin in
            origin.routeDecisions()
            try await withSession(.ephemeral) { session in
                let (refused, response) = try await session.data(from: origin.url("/locked"))
                #expect(refused == Data("no".utf8) && response.http?.status == .unauthorized)
                try await session.expect(origin.url("/image"), "png")
                try await session.expect(origin.url("/from"), "html")
                for _ in 0..<2 { try await session.expect(origin.url("/kept"), "kept") }
                #expect(origin.requests.count { $0.path == "/kept" } == 1)
            }
        }
    }

    @Test("a demanded body without a provider fails the load, and nothing is sent (checklist 126)")
    func undemanded() async throws {
        try await withHTTPTestServer { origin in
            origin.routeDecisions()
            try await withSession(.ephemeral) { session in
                await expectFailure(.badRequest) { try await session.data(for: Self.upload(origin)) }
            }
            #expect(origin.counts.accepted == 0)
        }
    }

    @Test("a decision accepts a server that the system does not trust (checklist 12)")
    func trusted() async throws {
        try await withSecureOrigin { origin, trusting in
            origin.route("/") { _ in .ok("in") }
            var configuration = trusting
            configuration.tls.trustRoots = .system
            var decisions = Decisions()
            decisions.challenge = Decision { challenge in
                challenge.serverTrust.map { .accept($0) } ?? .performDefaultHandling
            }
            try await withSession(configuration, decisions: decisions) { try await $0.expect(origin.url(), "in") }
            try await withSession(configuration) { session in
                await expectFailure(.certificateUntrusted) { try await session.data(from: origin.url()) }
            }
        }
    }

    /// Records the decisions about trust and body, in order.
    private static func asking(_ words: Watched<[String]>) -> Decisions {
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            words.append("trust")
            return challenge.serverTrust.map { .accept($0) } ?? .performDefaultHandling
        }
        decisions.bodyProvider = Decision { demand in
            words.append("body \(demand.cause)")
            return .stream { Pieces(["12345"]) }
        }
        return decisions
    }

    private static func demanded(_ url: URL) -> Request {
        Request(url: url, method: .post, headers: [.contentType: "text/plain"], body: .provided)
    }

    @Test(
        "a body is demanded after its server is trusted, for each hop and on its connection (checklist 45, 61)"
    )
    func trustedFirst() async throws {
        let words = Watched<[String]>([])
        try await withSecureOrigin { origin, configuration in
            origin.route("/from") { _ in .redirect("/count", status: .temporaryRedirect) }
            origin.route("/count") { .ok("\($0.bodyCount)") }
            try await withSession(configuration, decisions: Self.asking(words)) { session in
                try await session.expect(Self.demanded(origin.url("/from")), "5")
                try await session.expect(Self.demanded(origin.url("/count")), "5")
            }
            #expect(
                words.value == ["trust", "body first", "body redirect", "body first"] && origin.counts.accepted == 1)
        }
    }

    @Test("over HTTP/2 a body is demanded after the trust decision, and not for a refused server (checklist 45)")
    func trustedFirstOverHTTP2() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        try await withHTTP2TestServer(.init(try authority.issue())) { server in
            server.route("/count") { .ok("\($0.bodyCount)") }
            var configuration = Configuration.ephemeral
            configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
            configuration.networks.resolver = RecordingResolver()
            let words = Watched<[String]>([])
            try await withSession(configuration, decisions: Self.asking(words)) { session in
                for _ in 0..<2 { try await session.expect(Self.demanded(server.url("/count")), "5") }
            }
            #expect(words.value == ["trust", "body first", "body first"] && server.counts.accepted == 1)
            #expect(server.failures.isEmpty)
            let refused = Watched<[String]>([])
            var decisions = Self.asking(refused)
            decisions.challenge = Decision { _ in .rejectProtectionSpace }
            try await withSession(configuration, decisions: decisions) { session in
                await expectFailure(.certificateRefused) {
                    try await session.data(for: Self.demanded(server.url("/count")))
                }
            }
            #expect(refused.value.isEmpty)
        }
    }

    @Test("an upload sends its body, then provides its response as any load does (checklist 37)", arguments: 0..<3)
    func uploads(_ shape: Int) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in .ok(.bytes(Array(request.body.reversed()))) }
            let sent = Data((0..<50_000).map { UInt8(truncatingIfNeeded: $0) })
            let back = Data(sent.reversed())
            try await withSession(.ephemeral) { session in
                let request = Request(url: origin.url(), method: .put)
                switch shape {
                case 0:
                    let (data, response) = try await session.upload(request, from: .data(sent))
                    #expect(data == back && response.http?.status == .ok)
                case 1:
                    let task = session.uploadTask(request, from: .data(sent))
                    let events = task.events
                    task.resume()
                    var order = LoadEventOrder()
                    var kinds: [String] = []
                    for await event in events {
                        let isLegal = order.accept(event)
                        #expect(isLegal)
                        let kind = "\(event)".split(separator: " ").first.map(String.init) ?? ""
                        if kinds.last != kind { kinds.append(kind) }
                    }
                    let value = try await task.value
                    #expect(value == back && order.isComplete && kinds.first == "sent" && kinds.contains("responded"))
                    #expect(task.snapshot.sent == 50_000 && task.snapshot.received == 50_000)
                default:
                    var request = request
                    request.body = .data(sent)
                    let data = try await session.load(request) { _, body in try await body.collect(upTo: 1 << 20) }
                    #expect(data == back)
                }
            }
        }
    }
}
