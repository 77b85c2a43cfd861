// SPDX-License-Identifier: Apache-2.0

// The code of docs/guides/recipes.md, for its tests. A change must be made in both places.

import Dispatch
import FoundationEssentials
import Glibc
import Synchronization
import URLLoading

enum Recipes {
    /// Copies what one server sends to another server, with constant memory. Both loads run at once: two sessions,
    /// because copies that read could take all connections of one, and none would be left to write.
    static func copy(
        from source: URL, with reader: Session, to target: URL, with writer: Session
    ) async throws -> Status {
        try await reader.load(Request(url: source)) { response, body in
            try response.requireSuccess()
            var request = Request(url: target, method: .put)
            request.body = .stream(length: response.expectedLength) { body }
            request.body?.contentType = response.headers[.contentType]
            let (_, answer) = try await writer.data(for: request)
            return answer.status
        }
    }

    /// A request as the program's server framework receives it.
    struct Incoming: Sendable {
        var method = Method.get
        var target = "/"  // path and query
        var headers = Headers()
        var body: AsyncThrowingStream<[UInt8], any Error>?
    }

    struct ReverseProxy: Sendable {
        struct BadTarget: Error {}
        let upstream: String  // such as http://10.0.0.7:8080
        let session: Session

        static func session() -> Session {
            var configuration = Configuration.ephemeral
            configuration.acceptEncoding = nil  // codings are passed on as they are
            configuration.caching.usesMemoryStore = false
            configuration.cookies.storage = .none
            configuration.hsts.storage = .none
            configuration.networks.proxyPolicy = .none
            configuration.connections.maximumPerHost = 256
            configuration.authentication.methods = []  // a 401 is for the client, not for this user's tickets
            var decisions = Decisions()
            decisions.redirect = Decision { _ in .doNotFollow }  // the client follows redirects
            return Session(configuration, decisions: decisions)
        }

        /// Forwards a request. The closures return when the client has taken what they were given.
        func forward(
            _ incoming: Incoming, head: (Status, Headers) async throws -> Void, write: (Chunk) async throws -> Void,
            trailers: (Headers) async throws -> Void = { _ in },
            interim: (Status, Headers) async throws -> Void = { _, _ in }
        ) async throws {
            // Without the slash, a target such as "@other.example/" would lead to another server.
            guard incoming.target.hasPrefix("/"), let url = URL(string: upstream + incoming.target) else {
                throw BadTarget()
            }
            var request = Request(url: url, method: incoming.method)
            request.headers = endToEnd(incoming.headers)
            request.headers[.host] = nil  // that of the upstream
            request.headers[.te] = "trailers"  // without it, a server need not send them
            // These logins are valid for a whole connection, and the clients share the connections to the upstream.
            let logins = request.headers.values(of: .authorization).map { $0.lowercased() }
            if logins.contains(where: { $0.hasPrefix("ntlm") || $0.hasPrefix("negotiate") }) {
                request.headers[.authorization] = nil
            }
            if let body = incoming.body { request.body = .stream { body } }
            let task = session.dataTask(request)
            let events = task.events
            task.resume()
            defer { task.cancel() }  // also if the client has gone
            for await event in events {
                if case .informational(let hint) = event { try await interim(hint.status, endToEnd(hint.headers)) }
                if case .responded = event { break }
            }
            let response = try await task.response
            try await head(response.status, endToEnd(response.headers))
            let body = try await task.body
            for try await chunk in body { try await write(chunk) }
            try await trailers(body.trailers)
        }

        /// The fields without those of one connection (RFC 9110 §7.6.1) and those that frame the body.
        func endToEnd(_ headers: Headers) -> Headers {
            var headers = headers
            let named = headers.values(of: .connection).flatMap { $0.split(separator: ",") }
            for name in named { headers[FieldName(name.filter { !$0.isWhitespace })] = nil }
            for name in [
                "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "TE",
                "Trailer",
                "Transfer-Encoding", "Upgrade", "Content-Length",
            ] {
                headers[FieldName(name)] = nil
            }
            return headers
        }
    }

    /// Loads a body whose head must come within a time. Throws `CancellationError` if it does not.
    static func data(
        for request: Request, headWithin limit: Duration, with session: Session
    ) async throws -> (Data, Response) {
        let task = session.dataTask(request)
        task.resume()
        defer { task.cancel() }
        let response = try await withThrowingTaskGroup(of: Response?.self) { group in
            group.addTask { try await task.response }
            group.addTask {
                try await Task.sleep(for: limit)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
        guard let response else { throw CancellationError() }
        return (try await task.value, response)
    }

    /// Loads a page again and again, and passes on what has changed, until its task is cancelled.
    static func poll(
        _ url: URL, every interval: Duration, with session: Session, handle: (Data) async throws -> Void
    ) async throws {
        var request = Request(url: url)
        request.cachePolicy = .reload  // the server is asked each time
        var last: Data?  // for servers without entity tags
        while true {
            var loaded: (Data, Response)?
            do throws(LoadError) {
                loaded = try await session.data(for: request)
            } catch {
                // A lost connection is the next turn's to mend.
                guard RetryPolicy.transientReasons.contains(error.reason) else { throw error }
            }
            if let (data, response) = loaded, response.status == .ok {
                request.headers[.ifNoneMatch] = response.headers[.etag]
                if data != last { try await handle(data) }
                last = data
            }
            try await Task.sleep(for: interval)
        }
    }

    /// Renews access tokens, and keeps the refresh token in a file.
    actor TokenKeeper {
        private struct Answer: Decodable {
            let access_token: String
            let refresh_token: String?
        }
        private let endpoint: URL
        private let file: URL
        private let session = Session(.ephemeral)
        private var running: Task<String, any Error>?

        init(endpoint: URL, file: URL) { (self.endpoint, self.file) = (endpoint, file) }

        /// Returns a new access token. Calls that arrive during a renewal get its result.
        func renewed() async throws -> String {
            if let running { return try await running.value }
            // A task of its own: a renewal that the server has carried out is stored, even if all waiting loads are
            // gone.
            let task = Task { try await renew() }
            running = task
            defer { running = nil }
            return try await task.value
        }

        private func renew() async throws -> String {
            var request = Request(url: endpoint, method: .post)
            let old = try String(contentsOf: file, encoding: .utf8)
            request.body = .form([("grant_type", "refresh_token"), ("refresh_token", old)])
            let answer = try await session.load(request) { response, body in
                try response.requireSuccess()
                return try await body.decode(Answer.self)
            }
            if let next = answer.refresh_token { try Data(next.utf8).write(to: file, options: .atomic) }
            return answer.access_token
        }
    }

    /// A session whose loads to an API have a valid token.
    static func api(_ origin: String, _ keeper: TokenKeeper) throws -> Session {
        var configuration = Configuration.ephemeral
        configuration.authentication.bearer = try BearerTokens(for: [origin]) { _ in try await keeper.renewed() }
        return Session(configuration)
    }

    /// Follows a topic, over as many connections as it takes. Ends with an error that a new connection would not mend.
    static func follow(
        _ topic: String, at url: URL, with session: Session, handle: (String) async throws -> Void
    ) async throws {
        var options = WebSocketOptions()
        options.pingInterval = .seconds(20)  // a server that is silent for so long is lost
        var last = "0"
        var refused: (any Error)?  // what the program's own code threw
        let passing: Set<UInt16> = [1000, 1001, 1005, 1012, 1013]
        let transient = RetryPolicy.transientStatuses  // 502 of a proxy without its server
        var failures = 0
        while true {
            do {
                try await session.webSocket(Request(url: url), options: options) { socket in
                    try await socket.send(.text("subscribe \(topic) after \(last)"))
                    while true {
                        guard case .text(let text) = try await socket.receive() else { continue }
                        failures = 0
                        do { try await handle(text) } catch {
                            refused = error
                            throw error
                        }
                        last = text.split(separator: " ").first.map(String.init) ?? last
                    }
                }
            } catch let error as LoadError where refused == nil {
                switch error.reason {
                case .pingTimeout: break
                case let reason where RetryPolicy.transientReasons.contains(reason): break
                // 1005: the close frame had no code. 1012 and 1013: the service restarts, or is overloaded.
                case .webSocketClosed where passing.contains(error.webSocketClose?.code.rawValue ?? 1005): break
                case .webSocketRefused where transient.contains(error.webSocketRefusal?.status ?? .ok): break
                default: throw error  // cancelled, refused, a certificate
                }
            }
            let longest = min(30_000, 500 << min(failures, 6))  // random, so that clients do not return all at once
            failures += 1
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...longest)))
        }
    }

    /// URLs that several workers take, each of them once.
    final class URLQueue<URLs: IteratorProtocol<URL>>: Sendable {
        private let rest: Mutex<URLs>
        init(_ urls: sending URLs) { rest = Mutex(urls) }
        func next() -> URL? { rest.withLock { $0.next() } }
    }

    /// Loads all URLs, by a number of workers. Ends early when its task is cancelled.
    static func loadAll<URLs: IteratorProtocol<URL> & SendableMetatype>(
        _ urls: sending URLs, workers: Int, with session: Session,
        use: @escaping @Sendable (URL, Result<Data, LoadError>) async -> Void
    ) async {
        let queue = URLQueue(urls)
        await withDiscardingTaskGroup { group in
            for _ in 0..<workers {
                group.addTask {
                    while !Task.isCancelled, let url = queue.next() {
                        do throws(LoadError) {
                            await use(url, .success(try await session.data(from: url).0))
                        } catch {
                            await use(url, .failure(error))
                        }
                    }
                }
            }
        }
    }

    /// Returns when the process is sent a signal, which no longer ends it: SIGTERM, or SIGINT for Ctrl-C.
    static func terminated(by number: Int32 = SIGTERM) async {
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number)
        await withCheckedContinuation { continuation in
            source.setEventHandler {
                source.cancel()
                continuation.resume()
            }
            source.resume()
        }
    }

    /// Ends a session: running loads finish within the grace period, or are cancelled then.
    static func shutDown(_ session: Session, within grace: Duration) async {
        session.finishTasksAndInvalidate()  // new loads end with sessionInvalidated
        let limit = Task {
            try await Task.sleep(for: grace)
            session.invalidateAndCancel()  // running loads end with cancelled
        }
        await session.invalidated()  // the last connection is closed
        limit.cancel()
        session.configuration.caching.store?.flush()
        await CookieStore.shared.flush()
    }
}
