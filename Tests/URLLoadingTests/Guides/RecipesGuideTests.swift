// SPDX-License-Identifier: Apache-2.0

// What the programs of docs/guides/recipes.md do. Their code is in `Recipes`.

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct RecipesGuideTests {
    @Test("a response body is the body of a request, and a target that stops reading stops the source")
    func copying() async throws {
        let session = Session(.ephemeral)
        try await withHTTPTestServer { source in
            try await withHTTPTestServer { target in
                source.route("/a") { _ in .ok(.repeated(count: 300_000, chunked: true)) }
                source.route("/endless") { _ in .ok(.repeated(count: .max, chunked: true)) }
                target.route("/b") { request in .ok("\(request.bodyCount)") }
                target.route("/stalls", faults: [.init(.requestBody(after: 1 << 16), .stall)]) { _ in .ok("") }
                let status = try await Recipes.copy(
                    from: source.url("/a"), with: session, to: target.url("/b"), with: session)
                #expect(status == .ok && target.requests.last?.bodyCount == 300_000)

                try await withNetworkRelay(to: source.url(), NetworkConditions()) { relay in
                    let endless = relay.url("/endless")
                    let copying = Task {
                        try await Recipes.copy(from: endless, with: session, to: target.url("/stalls"), with: session)
                    }
                    try await target.wait { $0.stalled == 1 }
                    let read = try await Self.rest(of: relay)
                    #expect(read < 64 << 20)
                    copying.cancel()
                    await #expect(throws: LoadError.self) { try await copying.value }
                }
            }
        }
    }

    @Test("copies within one server do not wait for each other, however few connections it may have")
    func copyingWithin() async throws {
        var configuration = Configuration.ephemeral
        configuration.connections.maximumPerHost = 1
        let (reader, writer) = (Session(configuration), Session(configuration))
        try await withHTTPTestServer { server in
            server.route("/a") { _ in .ok(.repeated(count: 300_000, chunked: true)) }
            server.route("/b") { request in .ok("\(request.bodyCount)") }
            try await withThrowingTaskGroup(of: Status.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        try await Recipes.copy(from: server.url("/a"), with: reader, to: server.url("/b"), with: writer)
                    }
                }
                for try await status in group { #expect(status == .ok) }
            }
            #expect(server.requests.filter { $0.bodyCount == 300_000 }.count == 8)
        }
    }

    @Test("a load in the closure of a load waits for the connection of that one, until its resource timeout")
    func nested() async throws {
        var configuration = Configuration.ephemeral
        configuration.connections.maximumPerHost = 1
        let session = Session(configuration)
        try await withHTTPTestServer { server in
            server.route("/list") { _ in .ok(.repeated(count: .max, chunked: true)) }
            server.route("/item") { _ in .ok("item") }
            var request = Request(url: server.url("/item"))
            request.resourceTimeout = .milliseconds(50)
            let item = request
            let reason = try await session.load(Request(url: server.url("/list"))) { _, _ in
                await failure(.resourceTimeout) { try await session.data(for: item) }?.reason
            }
            #expect(reason == .resourceTimeout && server.requests.count == 1)
        }
    }

    /// Returns how many bytes the client of a relay was sent, once no more are sent.
    private static func rest(of relay: NetworkRelay) async throws -> Int64 {
        var last: Int64 = -1
        while relay.counts.toClient.delivered != last {
            last = relay.counts.toClient.delivered
            try await Task.sleep(for: .milliseconds(500))
            if last > 64 << 20 { break }
        }
        return last
    }

    @Test("a loop over events that stops stops the server, and memory stays flat")
    func eventsWaitForTheirReader() async throws {
        let event = Array(("data: " + String(repeating: "e", count: 1_000) + "\n\n").utf8)
        let piece = Array(repeatElement(event, count: 1_024).joined())
        try await withHTTPTestServer { origin in
            origin.route("/events") { _ in
                .ok(
                    .chunks(Array(repeating: .bytes(piece), count: 200)), headers: [.contentType: "text/event-stream"])
            }
            try await withNetworkRelay(to: origin.url(), NetworkConditions()) { relay in
                let session = Session(.ephemeral)
                var events = session.serverSentEvents(from: relay.url("/events")).makeAsyncIterator()
                let first = try await events.next()
                // Of 200 MB only what fits into the buffers of the sockets has come.
                let read = try await Self.rest(of: relay)
                let second = try await events.next()
                #expect(read < 64 << 20 && first?.data.utf8.count == 1_000 && second == first)
            }
        }
    }

    @Test("a reverse proxy passes a coded body on as it is, with the fields of both ends and no other")
    func reverseProxy() async throws {
        let coded = Compressed.gzip(Array("hello".utf8))
        try await withHTTPTestServer { upstream in
            upstream.route("/page") { request in
                .ok(
                    .bytes(coded),
                    headers: [
                        "Content-Encoding": "gzip", "Connection": "X-Hop", "X-Hop": "1", "X-End": "2",
                        "X-Asked": request.headers[.acceptEncoding] ?? "-",
                        "X-Seen": request.headers["X-Hop"] ?? request.headers["X-Through"] ?? "-",
                    ])
            }
            upstream.route("/echo") { request in .ok(.bytes(Array(request.body))) }
            upstream.route("/moved") { _ in .redirect("/page") }
            let base = String(upstream.url().absoluteString.dropLast())
            let proxy = Recipes.ReverseProxy(upstream: base, session: Recipes.ReverseProxy.session())

            var incoming = Recipes.Incoming(target: "/page?a=1")
            incoming.headers = ["Accept-Encoding": "gzip", "Connection": "X-Hop", "X-Hop": "1", "X-Through": "2"]
            var (status, fields, body) = (Status?.none, Headers(), [UInt8]())
            try await proxy.forward(incoming) {
                (status, fields) = ($0, $1)
            } write: {
                body += [UInt8]($0)
            }
            #expect(status == .ok && body == coded)
            #expect(fields["Content-Encoding"] == "gzip" && fields["X-End"] == "2" && fields["X-Hop"] == nil)
            #expect(fields["X-Asked"] == "gzip" && fields["X-Seen"] == "2")
            #expect(upstream.requests.last?.target == "/page?a=1")

            // Without a field of the client no coding is requested, and a coded answer stays coded.
            body = []
            try await proxy.forward(Recipes.Incoming(target: "/page")) {
                fields = $1
            } write: {
                body += [UInt8]($0)
            }
            #expect(body == coded && fields["X-Asked"] == "-" && fields["Content-Encoding"] == "gzip")

            // A redirect is the client's.
            try await proxy.forward(Recipes.Incoming(target: "/moved")) {
                (status, _) = ($0, $1)
            } write: { _ in
            }
            #expect(status == .found)

            body = []
            var sending = Recipes.Incoming(method: .post, target: "/echo")
            sending.body = AsyncThrowingStream { continuation in
                for piece in ["one ", "two"] { continuation.yield(Array(piece.utf8)) }
                continuation.finish()
            }
            try await proxy.forward(sending) { _, _ in
            } write: {
                body += [UInt8]($0)
            }
            #expect(String(decoding: body, as: UTF8.self) == "one two")

            upstream.route("/hinted") { request in
                let hint = HTTPTestServer.Response.Interim(.earlyHints, headers: [.link: "</a>"])
                let asked = request.headers[.te] ?? "-"
                return .ok(.chunks(["one"], trailers: ["Sum": asked])).after(hint)
            }
            let seen = Watched<[String]>([])
            try await proxy.forward(Recipes.Incoming(target: "/hinted")) { status, _ in
                seen.change { $0.append("\(status.code)") }
            } write: { chunk in
                seen.change { $0.append(String(decoding: [UInt8](chunk), as: UTF8.self)) }
            } trailers: { fields in
                seen.change { $0.append(fields["Sum"] ?? "") }
            } interim: { status, fields in
                seen.change { $0.append("\(status.code) \(fields[.link] ?? "")") }
            }
            #expect(seen.value == ["103 </a>", "200", "one", "trailers"])
        }
    }

    @Test("a reverse proxy refuses a target that would lead to another server, and leaves challenges to its client")
    func reverseProxyTrust() async throws {
        try await withHTTPTestServer { upstream in
            try await withHTTPTestServer { other in
                upstream.route("/login") { request in
                    .status(
                        .unauthorized,
                        headers: ["WWW-Authenticate": "Negotiate", "X-Login": request.headers[.authorization] ?? "-"])
                }
                let base = String(upstream.url().absoluteString.dropLast())
                let proxy = Recipes.ReverseProxy(upstream: base, session: Recipes.ReverseProxy.session())
                let port = try #require(other.url().port)
                let elsewhere = "127.0.0.1:\(port)/"
                for target in ["@" + elsewhere, ".x/", "", "*", "http://" + elsewhere] {
                    await #expect(throws: Recipes.ReverseProxy.BadTarget.self) {
                        try await proxy.forward(Recipes.Incoming(target: target)) { _, _ in
                        } write: { _ in
                        }
                    }
                }
                #expect(other.requests.isEmpty && upstream.requests.isEmpty)

                // The tickets of the user who runs this test are not sent, whether there are any or not.
                #expect(proxy.session.configuration.authentication.methods == [])
                for login in ["NTLM TlRMTVNTUAAB", "Negotiate YII=", "Basic YTpi"] {
                    var incoming = Recipes.Incoming(target: "/login")
                    incoming.headers[.authorization] = login
                    var (status, seen) = (Status?.none, "")
                    try await proxy.forward(incoming) {
                        (status, seen) = ($0, $1["X-Login"] ?? "")
                    } write: { _ in
                    }
                    #expect(status == .unauthorized && seen == (login.hasPrefix("Basic") ? login : "-"))
                }
                #expect(upstream.requests.count == 3)
            }
        }
    }

    @Test("a limit for the head leaves the body its time, and ends a load whose head is late")
    func headLimit() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/quick") { _ in .ok("hello") }
            origin.route("/late", faults: [.init(.responseHead(after: 0), .stall)]) { _ in .ok("hello") }
            try await withSession(.ephemeral) { session in
                let quick = Request(url: origin.url("/quick"))
                let (data, _) = try await Recipes.data(for: quick, headWithin: .seconds(60), with: session)
                #expect(String(decoding: data, as: UTF8.self) == "hello")
                await #expect(throws: CancellationError.self) {
                    let late = Request(url: origin.url("/late"))
                    _ = try await Recipes.data(for: late, headWithin: .milliseconds(20), with: session)
                }
                try await session.eventuallyLoads { $0 == 0 }
            }
        }
    }

    @Test("polling passes on what has changed, asks with the tag of what it has, and goes on after a lost connection")
    func polling() async throws {
        let version = Watched(1)
        let losses = Watched(0)
        let heard = Watched<[String]>([])
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                let tag = "\"\(version.value)\""
                if version.value == 2, losses.add() == 1 {
                    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nv"
                    return .raw([.bytes(Array(head.utf8))], then: .reset)
                }
                if request.headers[.ifNoneMatch] == tag { return .status(.notModified, headers: [.etag: tag]) }
                return .ok("v\(version.value)", headers: [.etag: tag])
            }
            try await withSession(.ephemeral) { session in
                let task = Task {
                    try await Recipes.poll(origin.url(), every: .milliseconds(1), with: session) { data in
                        heard.change { $0.append(String(decoding: data, as: UTF8.self)) }
                    }
                }
                try await heard.wait { $0 == ["v1"] }
                try await origin.wait { $0.requests >= 3 }
                version.change { $0 = 2 }
                try await heard.wait { $0 == ["v1", "v2"] }
                task.cancel()
                await #expect(throws: (any Error).self) { try await task.value }
            }
        }
    }

    @Test("polling asks a server without entity tags each time, and passes on an unchanged page once")
    func pollingWithoutTags() async throws {
        let version = Watched(1)
        let heard = Watched<[String]>([])
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("v\(version.value)", headers: [.cacheControl: "max-age=600"]) }
            try await withSession(.ephemeral) { session in
                let task = Task {
                    try await Recipes.poll(origin.url(), every: .milliseconds(1), with: session) { data in
                        heard.change { $0.append(String(decoding: data, as: UTF8.self)) }
                    }
                }
                try await origin.wait { $0.requests >= 3 }
                #expect(heard.value == ["v1"])
                version.change { $0 = 2 }
                try await heard.wait { $0 == ["v1", "v2"] }
                task.cancel()
                await #expect(throws: (any Error).self) { try await task.value }
            }
        }
    }

    @Test("twenty loads renew a rotating token once, and the new refresh token is stored")
    func rotatingTokens() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("refresh", Data("r0".utf8))
        let renewals = Watched(0)
        try await withHTTPTestServer { origin in
            origin.route("/token") { request in
                // The service accepts each refresh token once.
                let number = renewals.value
                let body = String(decoding: request.body, as: UTF8.self)
                guard body.hasSuffix("refresh_token=r\(number)") else { return .status(.badRequest) }
                renewals.add()
                return .ok(#"{"access_token": "t\#(number + 1)", "refresh_token": "r\#(number + 1)"}"#)
            }
            origin.route("/api") { request in
                request.headers[.authorization] == "Bearer t\(renewals.value)" && renewals.value > 0
                    ? .ok("in") : .status(.unauthorized)
            }
            let keeper = Recipes.TokenKeeper(endpoint: origin.url("/token"), file: file)
            let session = try Recipes.api(origin.url().absoluteString, keeper)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<20 { group.addTask { try await session.expect(origin.url("/api"), "in") } }
                try await group.waitForAll()
            }
            #expect(renewals.value == 1)
            #expect(try String(decoding: folder.bytes("refresh"), as: UTF8.self) == "r1")
            // The next renewal uses the stored one.
            let next = try await keeper.renewed()
            #expect(next == "t2")
            #expect(try String(decoding: folder.bytes("refresh"), as: UTF8.self) == "r2")
        }
    }

    private struct Refused: Error {}

    @Test(
        "twenty loads that were sent with one refused token get the error of one refresh, and the next load calls again"
    )
    func throwingRefresh() async throws {
        let (calls, arrived, first) = (Watched(0), Watched(0), Flag())
        try await withHTTPTestServer { origin in
            origin.route("/api") { _ in
                // One refusal at once, the others when its refresh has failed.
                if arrived.add() > 1 { try await first.wait() }
                return .status(.unauthorized)
            }
            var configuration = Configuration.ephemeral
            configuration.connections.maximumPerHost = 20
            configuration.authentication.bearer = try BearerTokens(for: [origin.url().absoluteString], token: "old") {
                _ in
                calls.add()
                // Every load has been sent with the old token.
                try await arrived.wait { $0 >= 20 }
                throw Refused()
            }
            let session = Session(configuration)
            let reasons = await withTaskGroup(of: LoadError?.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        defer { first.raise() }
                        do throws(LoadError) { _ = try await session.data(from: origin.url("/api")) } catch {
                            return error
                        }
                        return nil
                    }
                }
                return await group.reduce(into: [LoadError?]()) { $0.append($1) }
            }
            #expect(reasons.allSatisfy { $0?.reason == .decisionFailed && $0?.underlying is Refused })
            #expect(calls.value == 1)
            await expectFailure(.decisionFailed) { try await session.data(from: origin.url("/api")) }
            #expect(calls.value == 2)
        }
    }

    @Test("a WebSocket that reconnects names the last message, and ends with an error that no connection would mend")
    func reconnecting() async throws {
        let subscriptions = Watched<[String]>([])
        try await withHTTPTestServer { origin in
            origin.webSocket("/prices") { socket in
                guard case .text(let text)? = try await socket.receive() else { return }
                let count = subscriptions.change { list in
                    list.append(text)
                    return list.count
                }
                switch count {
                case 1:
                    try await socket.send(.text("1 a"))
                    try await socket.send(.text("2 b"))
                    socket.reset()
                case 2:
                    try await socket.send(.text("3 c"))
                    try await socket.close(WebSocketClose(.goingAway))
                case 3:
                    try await socket.send(.text("4 d"))
                    try await socket.close(nil)
                case 4:
                    try await socket.send(.text("5 e"))
                    try await socket.close(WebSocketClose(WebSocketClose.Code(rawValue: 1012)))
                default: try await socket.close(WebSocketClose(.policyViolation))
                }
            }
            origin.webSocket("/news") { socket in
                _ = try await socket.receive()
                try await socket.send(.text("1 a"))
                _ = try await socket.untilClose()
            }
            var heard: [String] = []
            let session = Session(.ephemeral)
            let news = try url(origin.url("/news").absoluteString.replacing("http:", with: "ws:"))
            let chat = try url(origin.url("/prices").absoluteString.replacing("http:", with: "ws:"))
            let error = await failure(.webSocketClosed) {
                try await Recipes.follow("prices", at: chat, with: session) { heard.append($0) }
            }
            #expect(error?.webSocketClose?.code == .policyViolation)
            // The reset may overtake the messages before it.
            #expect(heard.last == "5 e" && subscriptions.value.count == 5)
            #expect(subscriptions.value.first == "subscribe prices after 0")
            #expect(subscriptions.value.last == "subscribe prices after 5")

            // An error of the program's own is none of the socket's, also if it is a LoadError.
            let own = Watched(0)
            await expectFailure(.connectionLost) {
                try await Recipes.follow("news", at: news, with: session) { _ in
                    own.add()
                    throw LoadError(.connectionLost, phase: .receiving, party: .local)
                }
            }
            #expect(own.value == 1)
        }
    }

    private struct Counted: ProtocolHandler {
        let running: Watched<(now: Int, most: Int)>
        func canHandle(_ request: Request) -> Bool { true }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            running.change { running in
                running.now += 1
                running.most = max(running.most, running.now)
            }
            await Task.yield()
            defer { running.change { $0.now -= 1 } }
            return .response(Response(url: request.url), data: Data("x".utf8))
        }
    }

    @Test("a pool of workers loads each URL once, and no more at a time than it has workers")
    func workers() async throws {
        let running = Watched((now: 0, most: 0))
        let seen = Watched<Set<URL>>([])
        var configuration = Configuration.ephemeral
        configuration.handlers = [Counted(running: running)]
        let session = Session(configuration)
        let urls = (0..<500).lazy.compactMap { URL(string: "https://example.org/\($0)") }
        await Recipes.loadAll(urls.makeIterator(), workers: 8, with: session) { url, result in
            if case .success(let data) = result, data.count == 1 { _ = seen.change { $0.insert(url) } }
        }
        #expect(seen.value.count == 500 && running.value.most <= 8)
    }

    @Test("a session that shuts down lets a load finish, refuses new ones, and ends the others after the grace period")
    func shutdown() async throws {
        try await withHTTPTestServer { origin in
            let gate = Latch()
            origin.route("/slow") { _ in
                await gate.wait()
                return .ok("done")
            }
            origin.route("/never", faults: [.init(.responseHead(after: 0), .stall)]) { _ in .ok("") }

            let session = Session(.ephemeral)
            let slow = Task { try await session.text(origin.url("/slow")) }
            try await origin.wait { $0.requests == 1 }
            let ending = Task { await Recipes.shutDown(session, within: .seconds(200)) }
            await #expect(throws: LoadError.self) {
                while true { _ = try await session.data(from: origin.url("/other")) }
            }
            gate.open()
            let text = try await slow.value
            #expect(text == "done")
            await ending.value

            let second = Session(.ephemeral)
            let stuck = Task { try await second.data(from: origin.url("/never")) }
            try await origin.wait { $0.stalled == 1 }
            await Recipes.shutDown(second, within: .milliseconds(50))
            await expectFailure(.cancelled) { try await stuck.value }
        }
    }

    @Test("SIGTERM ends a wait, and not the process")
    func termination() async throws {
        defer { signal(SIGTERM, SIG_DFL) }
        signal(SIGTERM, SIG_IGN)
        let hasEnded = Flag()
        let waiting = Task {
            await Recipes.terminated()
            hasEnded.raise()
        }
        // The signal is lost if it comes before the source is ready.
        while !hasEnded.value {
            kill(getpid(), SIGTERM)
            try await Task.sleep(for: .milliseconds(20))
        }
        await waiting.value
    }
}
