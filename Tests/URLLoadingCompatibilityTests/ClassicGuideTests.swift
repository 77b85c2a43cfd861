// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/classic.md, compiled and run. A change of an example must be made in both places.

import Foundation
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct ClassicGuideTests {
    final class Download: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        private var body = Data()
        let whenDone: @Sendable (Data, (any Error)?) -> Void
        init(whenDone: @escaping @Sendable (Data, (any Error)?) -> Void) { self.whenDone = whenDone }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            body.append(data)
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            whenDone(body, error)
        }
    }

    @Test("guide: a delegate that collects")
    func delegate() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            let url = origin.url()
            let results = Box<(Data, (any Error)?)>()
            let done = Counter()
            let download = Download {
                results.add(($0, $1))
                done.add()
            }
            let session = URLSession(configuration: .default, delegate: download, delegateQueue: nil)
            session.dataTask(with: url).resume()
            session.finishTasksAndInvalidate()
            await done.reaches(1)
            #expect(results.all.first?.0 == Data("hello".utf8) && results.all.first?.1 == nil)
        }
    }

    @Test("URLSession, URLRequest, URLSessionConfiguration: the examples of their comments; the error beneath")
    func comments() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok("\($0.method) \($0.bodyCount)") }
            let url = origin.url()
            let shown = Box<Data>()
            let done = Counter()
            let task = URLSession.shared.dataTask(with: url) { data, response, error in
                defer { done.add() }
                guard let data, (response as? HTTPURLResponse)?.statusCode == 200 else { return }
                shown.add(data)
            }
            task.resume()
            await done.reaches(1)
            #expect(shown.all == [Data("GET 0".utf8)])

            var request = URLRequest(url: url, timeoutInterval: 10)
            request.httpMethod = "POST"
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = Data("{}".utf8)
            let configuration = URLSessionConfiguration.default
            configuration.timeoutIntervalForRequest = 10
            configuration.httpAdditionalHeaders = ["Accept-Language": "de"]
            let session = URLSession(configuration: configuration)
            let posted = await session.result(request)
            #expect(posted.data == Data("POST 2".utf8))

            let error: (any Error)? = await session.result(
                URLRequest(url: try #require(URL(string: "gopher://a.example/")))
            ).error
            let beneath = (error as? URLError)?.userInfo[NSUnderlyingErrorKey] as? LoadError
            #expect(beneath?.reason == .unsupportedScheme)
            session.invalidateAndCancel()
        }
    }

    final class Asker: NSObject, URLSessionDataDelegate {
        let policy = Policy()
        let done = Counter()
        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
        ) async -> URLSession.ResponseDisposition {
            await policy.allows(response) ? .allow : .cancel
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            done.add()
        }
    }

    actor Policy {
        private(set) var asked = 0
        func allows(_ response: URLResponse) -> Bool {
            asked += 1
            return true
        }
    }

    @Test("guide: a delegate method in its async form; bytes, lines")
    func asyncForms() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("one\n\ntwo\n") }
            let url = origin.url()
            let asker = Asker()
            let session = URLSession(configuration: .ephemeral, delegate: asker, delegateQueue: nil)
            session.dataTask(with: url).resume()
            await asker.done.reaches(1)
            let asked = await asker.policy.asked
            #expect(asked == 1)

            var lines: [String] = []
            let (bytes, response) = try await session.bytes(from: url)
            for try await line in bytes.lines { lines.append(line) }
            #expect(lines == ["one", "two"] && (response as? HTTPURLResponse)?.statusCode == 200)
            session.finishTasksAndInvalidate()
        }
    }

    /// Provides the rest of a film.
    final class Reel: NSObject, URLSessionTaskDelegate, Sendable {
        let film: Data
        init(_ film: Data) { self.film = film }

        func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream? {
            InputStream(data: film)
        }
        func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64) async
            -> InputStream?
        {
            InputStream(data: film.dropFirst(Int(offset)))
        }
    }

    @Test("guide: an upload resumes after an interruption")
    func interruption() async throws {
        try await withHTTPTestServer { origin in
            let server = ResumableUploadServer()
            server.serve("/films", on: origin)
            let content = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0) })
            let film = temporaryURL("film")
            try content.write(to: film)
            defer { try? FileManager.default.removeItem(at: film) }
            var request = URLRequest(url: origin.url("/films"))
            request.httpMethod = "POST"
            let session = URLSession(configuration: .ephemeral)
            server.inject(.init(.received(70_000), .reset))
            do {
                _ = try await session.upload(for: request, fromFile: film)
                Issue.record("it was lost")
            } catch let error as URLError {
                guard let data = error.uploadTaskResumeData else { throw error }
                _ = try await session.upload(resumeFrom: data)
            }
            #expect(server.uploads.first.map { Data($0.content) == content && $0.isComplete } == true)

            let reel = Reel(content)
            let streaming = URLSession(configuration: .ephemeral, delegate: reel, delegateQueue: nil)
            server.inject(.init(.received(70_000), .reset))
            let task = streaming.uploadTask(withStreamedRequest: request)
            task.resume()
            try await task.eventually(.completed)
            let data = try #require((task.error as? URLError)?.uploadTaskResumeData)
            _ = try await streaming.upload(resumeFrom: data)
            #expect(server.uploads.last.map { Data($0.content) == content && $0.isComplete } == true)
            session.invalidateAndCancel()
            streaming.invalidateAndCancel()
        }
    }

    @Test("guide: WebSockets, and connections without a session")
    func conversations() async throws {
        try await withHTTPTestServer { origin in
            origin.webSocket("/chat", .echo)
            origin.route("/") { _ in .ok("hello") }
            let session = URLSession(configuration: .ephemeral)
            let socket = session.webSocketTask(with: origin.url("/chat"), protocols: ["chat"])
            socket.resume()
            try await socket.send(.string("hello"))
            var heard = ""
            if case .string(let text) = try await socket.receive() { heard = text }
            socket.cancel(with: .normalClosure, reason: nil)
            #expect(heard == "hello")
            session.finishTasksAndInvalidate()

            let url = origin.url()
            let reader = ConnectionRows.Reader()
            let queue = OperationQueue()
            let connection = NSURLConnection(request: URLRequest(url: url), delegate: reader, startImmediately: false)
            connection?.setDelegateQueue(queue)
            connection?.start()
            await reader.done.reaches(1)
            #expect(reader.body.all == [Data("hello".utf8)])
        }
    }

    @Test("guide: a stream starts TLS")
    func streams() async throws {
        let identity = try TestCertificateAuthority(commonName: "Untrusted").issue(.init(names: ["127.0.0.1"]))
        let context = try TLSServerContext(
            .init(certificateChain: identity.certificatePEM, privateKey: identity.keyPEM))
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let (host, port) = ("127.0.0.1", Int(listener.address.port))
        let delegate = Listener()
        delegate.trustsAll = true
        let session = delegate.session()
        async let server = {
            let plain = try await StreamPeer(listener)
            _ = try await plain.text(10)
            try await plain.send("220 ready\r\n")
            return try await plain.secured(by: context)
        }()

        let stream = session.streamTask(withHostName: host, port: port)
        stream.resume()
        try await stream.write(Data("STARTTLS\r\n".utf8), timeout: 10)
        let (answer, _) = try await stream.readData(ofMinLength: 11, maxLength: 11, timeout: 10)
        stream.startSecureConnection()

        let peer = try await server
        #expect(answer == Data("220 ready\r\n".utf8))
        session.invalidateAndCancel()
        await delegate.done.reaches(1)
        peer.close()
        listener.close()
    }
}

/// The examples about caches, cookies and protocols.
extension ClassicGuideTests {
    final class Choosy: NSObject, URLSessionDataDelegate {
        let done = Counter()
        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
        ) async -> CachedURLResponse? {
            guard proposedResponse.data.count < 1 << 20 else { return nil }
            return CachedURLResponse(
                response: proposedResponse.response, data: proposedResponse.data, userInfo: ["seen": "today"],
                storagePolicy: .allowedInMemoryOnly)
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            done.add()
        }
    }

    @Test("guide: a delegate decides which response is stored")
    func keeping() async throws {
        let folder = temporaryURL("ClassicGuide")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello", headers: ["Cache-Control": "max-age=60"]) }
            let url = origin.url()
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCache = URLCache(memoryCapacity: 16 << 20, diskCapacity: 256 << 20, directory: folder)
            configuration.httpCookieAcceptPolicy = .never
            let session = URLSession(configuration: configuration)
            _ = try await session.data(from: url)
            let kept = configuration.urlCache?.cachedResponse(for: URLRequest(url: url))?.data
            #expect(kept == Data("hello".utf8))
            session.invalidateAndCancel()

            let other = URLSessionConfiguration.ephemeral
            let choosy = Choosy()
            let asking = URLSession(configuration: other, delegate: choosy, delegateQueue: nil)
            asking.dataTask(with: url).resume()
            await choosy.done.reaches(1)
            let entry = other.urlCache?.cachedResponse(for: URLRequest(url: url))
            #expect(entry?.userInfo?["seen"] as? String == "today" && entry?.storagePolicy == .allowedInMemoryOnly)
            asking.invalidateAndCancel()
        }
    }

    final class Stub: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "api.test" }
        override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
        override func startLoading() {
            guard let url = request.url,
                let response = HTTPURLResponse(
                    url: url, statusCode: 200, httpVersion: nil, headerFields: ["Content-Type": "text/plain"])
            else { return }
            client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            client?.urlProtocol(self, didLoad: Data("hello".utf8))
            client?.urlProtocolDidFinishLoading(self)
        }
        override func stopLoading() {}
    }

    @Test("guide: a protocol of your own; the example of HTTPCookie")
    func stub() async throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [Stub.self]
        let target = try #require(URL(string: "https://api.test/"))
        let (data, _) = try await URLSession(configuration: configuration).data(from: target)
        #expect(data == Data("hello".utf8))
        let cookie = HTTPCookie(properties: [.name: "theme", .value: "dark", .domain: "example.org", .path: "/"])
        let storage = HTTPCookieStorage()
        if let cookie { storage.setCookie(cookie) }
        #expect(storage.cookies?.map(\.name) == ["theme"])
    }
}
