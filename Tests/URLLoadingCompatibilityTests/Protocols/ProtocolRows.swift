// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// A protocol whose objects run the test's script for the host of the URL.
class ScriptedProtocol: URLProtocol {
    typealias Script = @Sendable (ScriptedProtocol) -> Void
    private static let scripts = Lock<[String: Script]>([:])
    static let stopped = Lock<[String: Counter]>([:])

    static func script(_ host: String, _ script: @escaping Script) {
        scripts.withLock { $0[host] = script }
        stopped.withLock { $0[host] = Counter() }
    }
    static func stops(_ host: String) -> Counter { stopped.withLock { $0[host] ?? Counter() } }

    override class func canInit(with request: URLRequest) -> Bool {
        guard let host = request.url?.host, property(forKey: "passed", in: request) == nil else { return false }
        return scripts.withLock { $0[host] != nil }
    }
    override func startLoading() {
        guard let host = request.url?.host, let script = Self.scripts.withLock({ $0[host] }) else { return }
        script(self)
    }
    override func stopLoading() { Self.stops(request.url?.host ?? "").add() }

    func answer(
        _ text: String, status: Int = 200, fields: [String: String] = [:],
        _ policy: URLCache.StoragePolicy = .notAllowed
    ) {
        guard let url = request.url, let client else { return }
        if let response = HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: fields) {
            client.urlProtocol(self, didReceive: response, cacheStoragePolicy: policy)
        }
        client.urlProtocol(self, didLoad: Data(text.utf8))
        client.urlProtocolDidFinishLoading(self)
    }
}

/// A value handed to another thread; the test does not use it afterwards.
private struct Sent<Value>: @unchecked Sendable { let value: Value }

/// Checklist 111 to 117 in the classic API.
@Suite(.timeLimit(.minutes(4)))
struct ProtocolRows {
    private func configuration(_ kinds: [AnyClass] = [ScriptedProtocol.self]) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = kinds
        return configuration
    }

    private func session(_ recorder: Recorder) -> URLSession {
        recorder.session { $0.protocolClasses = [ScriptedProtocol.self] }
    }

    private func text(_ result: Result3) -> String { String(decoding: result.data ?? Data(), as: UTF8.self) }

    @Test(
        "every kind of task uses the protocol; the delegate receives the usual calls (checklist 111, 113)"
    )
    func kinds() async throws {
        ScriptedProtocol.script("kinds.test") { loader in
            var body = loader.request.httpBody ?? Data()
            if let stream = loader.request.httpBodyStream {
                stream.open()
                var bytes = [UInt8](repeating: 0, count: 64)
                while case let count = stream.read(&bytes, maxLength: 64), count > 0 {
                    body.append(contentsOf: bytes[..<count])
                }
                stream.close()
            }
            loader.answer(
                "\(loader.request.httpMethod ?? "-") \(String(decoding: body, as: UTF8.self)) "
                    + "\(loader.request.value(forHTTPHeaderField: "X-All") ?? "-")"
            )
        }
        let recorder = Recorder()
        recorder.onBody = { _, give in give(InputStream(data: Data("stream".utf8))) }
        let files = Box<Data>()
        recorder.onFile = { files.add((try? Data(contentsOf: $1)) ?? Data()) }
        let session = recorder.session {
            $0.protocolClasses = [ScriptedProtocol.self]
            $0.httpAdditionalHeaders = ["X-All": "yes"]
        }
        let target = try url("http://kinds.test/")
        var post = URLRequest(url: target)
        post.httpMethod = "POST"
        let file = temporaryURL("ProtocolRows")
        try Data("file".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let tasks = [
            session.dataTask(with: target), session.uploadTask(with: post, from: Data("data".utf8)),
            session.uploadTask(with: post, fromFile: file), session.uploadTask(withStreamedRequest: post),
        ]
        for (count, task) in tasks.enumerated() {
            task.resume()
            await recorder.completed.reaches(count + 1)
        }
        #expect(
            tasks.map { String(decoding: recorder.record($0).data, as: UTF8.self) }
                == ["GET  yes", "POST data yes", "POST file yes", "POST stream yes"])
        #expect(tasks.prefix(3).allSatisfy { recorder.words($0) == "response data complete" })
        #expect(recorder.words(tasks[3]) == "body response data complete")
        let download = session.downloadTask(with: target)
        await recorder.complete(download, number: 5)
        #expect(files.all == [Data("GET  yes".utf8)] && recorder.words(download) == "written file complete")
        let (data, response) = try await session.data(from: target)
        #expect(data == Data("GET  yes".utf8) && (response as? HTTPURLResponse)?.statusCode == 200)
        let (kept, _) = try await session.download(from: target)
        #expect(try Data(contentsOf: kept) == data)
        try FileManager.default.removeItem(at: kept)
        await ScriptedProtocol.stops("kinds.test").reaches(7)
        await recorder.expectOrder(session)
    }

    final class Refusing: URLProtocol {
        static let asked = Box<String>()
        override class func canInit(with request: URLRequest) -> Bool {
            if request.url?.host == "order.test" { asked.add("refusing") }
            return false
        }
    }
    final class Later: ScriptedProtocol {
        override class func canInit(with request: URLRequest) -> Bool {
            if request.url?.host == "order.test" { Refusing.asked.add("later") }
            return request.url?.host == "order.test"
        }
        override func startLoading() { answer("later") }
    }
    final class Earlier: ScriptedProtocol {
        override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "order.test" }
        override func startLoading() { answer("earlier") }
    }

    @Test("the session's classes are asked in order, then the registered ones, latest first (checklist 111, 112)")
    func order() async throws {
        #expect(URLProtocol.registerClass(Earlier.self) && URLProtocol.registerClass(Later.self))
        #expect(URLProtocol.registerClass(Refusing.self) && !URLProtocol.registerClass(NSObject.self))
        let target = URLRequest(url: try url("http://order.test/"))
        let session = URLSession(configuration: .ephemeral)
        let first = await session.result(target)
        #expect(text(first) == "later" && Refusing.asked.all.prefix(2) == ["refusing", "later"])
        let own = URLSession(configuration: configuration([Refusing.self, Earlier.self, Later.self]))
        let second = await own.result(target)
        #expect(text(second) == "earlier")
        // The async API has handlers of its own.
        let other = await Session(.ephemeral).expectFailure(target.url)
        #expect(other)
        URLProtocol.unregisterClass(Later.self)
        let third = await session.result(target)
        #expect(text(third) == "earlier")
        URLProtocol.unregisterClass(Earlier.self)
        URLProtocol.unregisterClass(Refusing.self)
        session.invalidateAndCancel()
        own.invalidateAndCancel()
    }

    final class Tidying: URLProtocol {
        override class func canInit(with task: URLSessionTask) -> Bool {
            task.originalRequest?.url?.host == "tidy.test"
        }
        override class func canonicalRequest(for request: URLRequest) -> URLRequest {
            guard request.url?.path == "" else { return request }
            var request = request
            request.url = request.url?.appendingPathComponent("/")
            return request
        }
        override func startLoading() {
            guard let url = request.url, let client else { return }
            let text = "\(url.absoluteString) \(task?.currentRequest?.url?.absoluteString ?? "-")"
            client.urlProtocol(self, didLoad: Data(text.utf8))
            client.urlProtocolDidFinishLoading(self)
        }
    }

    @Test(
        "the canonical request is loaded; classes are asked by task; a body needs no response (checklist 64, 116)"
    )
    func canonical() async throws {
        let session = URLSession(configuration: configuration([Tidying.self]))
        let result = await session.result(URLRequest(url: try url("http://tidy.test")))
        #expect(text(result) == "http://tidy.test/ http://tidy.test/" && result.response?.expectedContentLength == 35)
        session.invalidateAndCancel()
    }

    @Test("properties stay with a request, through casts and through its protocol to another load (checklist 114)")
    func properties() async throws {
        let request = NSMutableURLRequest(url: try url("http://properties.test/"))
        URLProtocol.setProperty("x", forKey: "mine", in: request)
        URLProtocol.setProperty(1, forKey: "other", in: request)
        URLProtocol.removeProperty(forKey: "other", in: request)
        let value = request as URLRequest
        #expect(URLProtocol.property(forKey: "mine", in: value) as? String == "x")
        #expect(URLProtocol.property(forKey: "other", in: value) == nil)
        ScriptedProtocol.script("properties.test") {
            $0.answer("\(URLProtocol.property(forKey: "mine", in: $0.request) ?? "-")")
        }
        let session = URLSession(configuration: configuration())
        let result = await session.result(value)
        #expect(text(result) == "x")
        session.invalidateAndCancel()
    }

    @Test("a protocol may forward its request to a load of its own (checklist 114)")
    func passing() async throws {
        try await withHTTPTestServer(answering: "from the web") { origin in
            ScriptedProtocol.script("127.0.0.1.passing.test") { _ in }
            let inner = URLSession(configuration: configuration())
            let target = origin.url()
            ScriptedProtocol.script("passing.test") { loader in
                let request = NSMutableURLRequest(url: target)
                URLProtocol.setProperty(true, forKey: "passed", in: request)
                let loader = Sent(value: loader)
                inner.dataTask(with: request as URLRequest) { data, response, error in
                    let loader = loader.value
                    guard let data, let response else {
                        return loader.client?.urlProtocol(loader, didFailWithError: error ?? URLError(.unknown)) ?? ()
                    }
                    loader.client?.urlProtocol(loader, didReceive: response, cacheStoragePolicy: .notAllowed)
                    loader.client?.urlProtocol(loader, didLoad: data)
                    loader.client?.urlProtocolDidFinishLoading(loader)
                }.resume()
            }
            let session = URLSession(configuration: configuration())
            let result = await session.result(URLRequest(url: try url("http://passing.test/")))
            #expect(text(result) == "from the web" && result.response?.url == target)
            session.invalidateAndCancel()
            inner.invalidateAndCancel()
        }
    }

    @Test(
        "the delegate receives a protocol's redirect and response, which is the same object (checklist 113)"
    )
    func redirects() async throws {
        ScriptedProtocol.script("from.test") { loader in
            guard let url = loader.request.url, let next = URL(string: "http://to.test/x"),
                let response = HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: [:])
            else { return }
            let request = NSMutableURLRequest(url: next)
            URLProtocol.setProperty("kept", forKey: "mark", in: request)
            loader.client?.urlProtocol(loader, wasRedirectedTo: request as URLRequest, redirectResponse: response)
            loader.answer("too late")
        }
        ScriptedProtocol.script("to.test") {
            $0.answer("there \(URLProtocol.property(forKey: "mark", in: $0.request) ?? "-")")
        }
        let recorder = Recorder()
        let seen = Box<String>()
        recorder.onRedirect = { _, response, request, answer in
            seen.add("\(response.statusCode) \(request.url?.absoluteString ?? "-")")
            answer(request)
        }
        let session = session(recorder)
        let task = session.dataTask(with: try url("http://from.test/"))
        await recorder.complete(task)
        #expect(seen.all == ["302 http://to.test/x"] && recorder.words(task) == "redirect response data complete")
        #expect(recorder.record(task).data == Data("there kept".utf8) && task.currentRequest?.url?.host == "to.test")
        // A redirect status delivered as a response is a response.
        ScriptedProtocol.script("moved.test") {
            $0.answer("moved", status: 302, fields: ["Location": "http://to.test/"])
        }
        let moved = session.dataTask(with: try url("http://moved.test/"))
        await recorder.complete(moved, number: 2)
        #expect(
            (moved.response as? HTTPURLResponse)?.statusCode == 302 && recorder.words(moved) == "response data complete"
        )
        await ScriptedProtocol.stops("from.test").reaches(1)
        await recorder.expectOrder(session)
    }

    @Test("a protocol's error is the task's error, unchanged, before and within the body (checklist 113)")
    func failures() async throws {
        struct Own: Error, Equatable {}
        ScriptedProtocol.script("fails.test") { $0.client?.urlProtocol($0, didFailWithError: Own()) }
        ScriptedProtocol.script("breaks.test") { loader in
            guard let url = loader.request.url else { return }
            let response = URLResponse(url: url, mimeType: nil, expectedContentLength: 10, textEncodingName: nil)
            loader.client?.urlProtocol(loader, didReceive: response, cacheStoragePolicy: .notAllowed)
            loader.client?.urlProtocol(loader, didLoad: Data("half".utf8))
            loader.client?.urlProtocol(loader, didFailWithError: URLError(.networkConnectionLost))
            loader.client?.urlProtocolDidFinishLoading(loader)
        }
        let session = URLSession(configuration: configuration())
        await #expect(throws: Own.self) { try await session.data(from: try url("http://fails.test/")) }
        let broken = await session.result(URLRequest(url: try url("http://breaks.test/")))
        #expect(broken.error?.code == .networkConnectionLost && broken.data == nil && broken.response != nil)
        session.invalidateAndCancel()
    }

    @Test("cancelling stops the object, once, before its response and within its body (checklist 34, 113)")
    func cancelling() async throws {
        let begun = Counter()
        ScriptedProtocol.script("silent.test") { _ in begun.add() }
        ScriptedProtocol.script("stalls.test") { loader in
            guard let url = loader.request.url else { return }
            let response = URLResponse(url: url, mimeType: nil, expectedContentLength: 10, textEncodingName: nil)
            loader.client?.urlProtocol(loader, didReceive: response, cacheStoragePolicy: .notAllowed)
            loader.client?.urlProtocol(loader, didLoad: Data("half".utf8))
            begun.add()
        }
        let recorder = Recorder()
        let pieces = recorder.countPieces()
        let session = session(recorder)
        let silent = session.dataTask(with: try url("http://silent.test/")).resumed()
        await begun.reaches(1)
        silent.cancel()
        await recorder.completed.reaches(1)
        await ScriptedProtocol.stops("silent.test").reaches(1)
        let stalls = session.dataTask(with: try url("http://stalls.test/")).resumed()
        await pieces.reaches(1)
        stalls.cancel()
        await recorder.completed.reaches(2)
        await ScriptedProtocol.stops("stalls.test").reaches(1)
        #expect(
            recorder.record(silent).errors.first??.code == .cancelled
                && recorder.record(stalls).errors.first??.code == .cancelled)
        #expect(ScriptedProtocol.stops("silent.test").value == 1 && ScriptedProtocol.stops("stalls.test").value == 1)
        await recorder.expectOrder(session)
    }

    @Test("the body waits for its reader, and its loader with it; a stopped loader does not wait")
    func backPressure() async throws {
        let pieces = Counter()
        let size = 256 * 1024
        ScriptedProtocol.script("large.test") { loader in
            guard let url = loader.request.url else { return }
            let response = URLResponse(url: url, mimeType: nil, expectedContentLength: 64 * size, textEncodingName: nil)
            loader.client?.urlProtocol(loader, didReceive: response, cacheStoragePolicy: .notAllowed)
            for _ in 0..<64 {
                loader.client?.urlProtocol(loader, didLoad: Data(count: size))
                pieces.add()
            }
            loader.client?.urlProtocolDidFinishLoading(loader)
        }
        let recorder = Recorder()
        let (held, asked) = recorder.holdResponses()
        let session = session(recorder)
        let task = session.dataTask(with: try url("http://large.test/")).resumed()
        await asked.reaches(1)
        await pieces.reaches(4)
        try await Task.sleep(for: .milliseconds(5))
        #expect(pieces.value < 16)
        held.answer(.allow)
        await recorder.completed.reaches(1)
        #expect(recorder.record(task).data.count == 64 * size)
        let other = session.dataTask(with: try url("http://large.test/")).resumed()
        await asked.reaches(2)
        other.cancel()
        held.keep(nil)
        await recorder.completed.reaches(2)
        await ScriptedProtocol.stops("large.test").reaches(2)
        await recorder.expectOrder(session)
    }

    @Test("callbacks come from any thread in any order: pieces before the response, calls after the end")
    func disorder() async throws {
        ScriptedProtocol.script("disorder.test") { loader in
            let loader = Sent(value: loader)
            Thread.detachNewThread {
                let loader = loader.value
                guard let url = loader.request.url else { return }
                let response = URLResponse(url: url, mimeType: "a/b", expectedContentLength: -1, textEncodingName: nil)
                loader.client?.urlProtocol(loader, didLoad: Data("one ".utf8))
                loader.client?.urlProtocol(loader, didLoad: Data())
                loader.client?.urlProtocol(loader, didReceive: response, cacheStoragePolicy: .notAllowed)
                loader.client?.urlProtocol(loader, didReceive: response, cacheStoragePolicy: .allowed)
                loader.client?.urlProtocol(loader, didLoad: Data("two".utf8))
                loader.client?.urlProtocolDidFinishLoading(loader)
                loader.client?.urlProtocolDidFinishLoading(loader)
                loader.client?.urlProtocol(loader, didFailWithError: URLError(.unknown))
                loader.client?.urlProtocol(loader, didLoad: Data("three".utf8))
            }
        }
        let session = URLSession(configuration: configuration())
        let result = await session.result(URLRequest(url: try url("http://disorder.test/")))
        #expect(text(result) == "one two" && result.response?.mimeType == "a/b" && result.error == nil)
        session.invalidateAndCancel()
    }

    /// Receives the delegate's answer to its challenge.
    final class Guard: NSObject, URLAuthenticationChallengeSender, @unchecked Sendable {
        private let loader: Sent<ScriptedProtocol>
        init(_ loader: ScriptedProtocol) { self.loader = Sent(value: loader) }
        func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
            loader.value.answer("user \(credential.user ?? "-")")
        }
        func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {
            loader.value.answer("without", status: 401)
        }
        func cancel(_ challenge: URLAuthenticationChallenge) {
            loader.value.client?.urlProtocol(loader.value, didFailWithError: URLError(.userCancelledAuthentication))
        }
        func performDefaultHandling(for challenge: URLAuthenticationChallenge) { loader.value.answer("default") }
        func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
            loader.value.answer("rejected")
        }
    }

    @Test("the delegate's answer to a challenge arrives through the sender (checklist 115)", arguments: 0..<6)
    func challenges(_ which: Int) async throws {
        let host = "guarded\(which).test"
        ScriptedProtocol.script(host) { loader in
            let space = URLProtectionSpace(
                host: host, port: 80, protocol: "http", realm: "r",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            let challenge = URLAuthenticationChallenge(
                protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil,
                error: nil,
                sender: Guard(loader))
            loader.client?.urlProtocol(loader, didReceive: challenge)
        }
        let recorder = Recorder()
        let credential = URLCredential(user: "ada", password: "p", persistence: .none)
        recorder.onChallenge = { challenge, answer in
            switch which {
            case 0: answer(.useCredential, credential)
            case 1: answer(.useCredential, nil)
            case 2: answer(.performDefaultHandling, nil)
            case 3: answer(.cancelAuthenticationChallenge, nil)
            case 4: answer(.rejectProtectionSpace, nil)
            default: challenge.sender?.use(credential, for: challenge)
            }
        }
        let session = session(recorder)
        let task = session.dataTask(with: try url("http://\(host)/"))
        await recorder.complete(task)
        let body = String(decoding: recorder.record(task).data, as: UTF8.self)
        #expect(body == ["user ada", "without", "default", "", "rejected", "user ada"][which])
        #expect(recorder.words(task).hasPrefix("challenge"))
        if which == 3 { #expect(recorder.record(task).errors.first??.code == .userCancelledAuthentication) }
        await recorder.expectOrder(session)
    }

    @Test(
        "protocol and delegate decide whether a response is stored; a stored one may answer (checklist 117)"
    )
    func caching() async throws {
        let hits = Counter()
        ScriptedProtocol.script("cached.test") { loader in
            guard let cached = loader.cachedResponse else {
                return loader.answer("fresh", loader.request.url?.path == "/no" ? .notAllowed : .allowed)
            }
            hits.add()
            loader.client?.urlProtocol(loader, cachedResponseIsValid: cached)
        }
        let recorder = Recorder()
        let proposed = Box<String>()
        recorder.onCache = { _, entry, give in
            proposed.add(String(decoding: entry.data, as: UTF8.self))
            give(CachedURLResponse(response: entry.response, data: Data("kept".utf8)))
        }
        let session = session(recorder)
        let tasks = try ["/", "/", "/no", "/no"].map { session.dataTask(with: try url("http://cached.test" + $0)) }
        for (count, task) in tasks.enumerated() {
            task.resume()
            await recorder.completed.reaches(count + 1)
        }
        #expect(
            tasks.map { String(decoding: recorder.record($0).data, as: UTF8.self) } == [
                "fresh", "kept", "fresh", "fresh",
            ])
        #expect(
            proposed.all == ["fresh"] && hits.value == 1 && recorder.words(tasks[0]) == "response data cache complete")
        await recorder.expectOrder(session)
    }

    @Test("neither object nor client outlives the load")
    func leaks() async throws {
        final class Weak: @unchecked Sendable { weak var loader: URLProtocol? }
        let seen = Weak()
        let given = Counter()
        ScriptedProtocol.script("leaks.test") { loader in
            seen.loader = loader
            given.add()
            loader.answer("x")
        }
        let session = URLSession(configuration: configuration())
        _ = await session.result(URLRequest(url: try url("http://leaks.test/")))
        await given.reaches(1)
        try await eventually(seen.loader == nil) { $0 }
        session.invalidateAndCancel()
    }
}

extension Session {
    /// Returns whether the load fails.
    fileprivate func expectFailure(_ url: URL?) async -> Bool {
        guard let url else { return false }
        defer { invalidateAndCancel() }
        return (try? await data(from: url)) == nil
    }
}
