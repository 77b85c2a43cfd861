// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Checklist 90 to 103 in the classic API.
@Suite(.timeLimit(.minutes(4)))
struct CacheRows {
    /// Counts requests; `/old` requires revalidation each time.
    private func serve(_ origin: HTTPTestServer, _ asked: Counter) {
        origin.route("/") { _ in
            asked.add()
            return .ok("body \(asked.value)", headers: ["Cache-Control": "max-age=600", "Content-Type": "text/plain"])
        }
        origin.route("/old") { request in
            asked.add()
            if request.headers[.ifNoneMatch] == "\"t\"" { return .status(.notModified, headers: [.etag: "\"t\""]) }
            return .ok("old", headers: [.etag: "\"t\"", "Cache-Control": "max-age=0"])
        }
    }

    private func text(_ result: Result3) -> String { String(decoding: result.data ?? Data(), as: UTF8.self) }

    private func request(_ url: URL, _ policy: URLRequest.CachePolicy = .useProtocolCachePolicy) -> URLRequest {
        URLRequest(url: url, cachePolicy: policy)
    }

    @Test(
        "a fresh response answers and a stale one is revalidated, under every cache policy (checklist 90 to 97)"
    )
    func policies() async throws {
        try await withHTTPTestServer { origin in
            let asked = Counter()
            serve(origin, asked)
            let configuration = URLSessionConfiguration.ephemeral
            let session = URLSession(configuration: configuration)
            let url = origin.url()
            var seen: [String] = []
            for policy: URLRequest.CachePolicy in [
                .useProtocolCachePolicy, .useProtocolCachePolicy, .returnCacheDataElseLoad, .returnCacheDataDontLoad,
                .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData, .useProtocolCachePolicy,
            ] { seen.append(text(await session.result(request(url, policy)))) }
            #expect(seen == ["body 1", "body 1", "body 1", "body 1", "body 2", "body 3", "body 3"])
            let old = origin.url("/old")
            _ = await session.result(request(old))
            let again = await session.result(request(old))
            #expect(text(again) == "old" && (again.response as? HTTPURLResponse)?.statusCode == 200 && asked.value == 5)
            let checked = await session.result(request(old, .reloadRevalidatingCacheData))
            #expect(text(checked) == "old" && asked.value == 6)
            let stale = await session.result(request(old, .returnCacheDataElseLoad))
            #expect(text(stale) == "old" && asked.value == 6)
            session.invalidateAndCancel()

            configuration.requestCachePolicy = .returnCacheDataDontLoad
            let offline = URLSession(configuration: configuration)
            let kept = await offline.result(request(url))
            let none = await offline.result(request(origin.url("/none")))
            #expect(text(kept) == "body 3" && none.error?.code == .resourceUnavailable)
            offline.invalidateAndCancel()
        }
    }

    /// A class that adds a field to requests for the path `/`.
    private final class Adding: URLProtocol {
        override class func canInit(with request: URLRequest) -> Bool {
            request.url?.path == "/" && request.value(forHTTPHeaderField: "X-New") == nil
        }
        override class func canonicalRequest(for request: URLRequest) -> URLRequest {
            var request = request
            request.setValue("1", forHTTPHeaderField: "X-New")
            return request
        }
    }

    @Test(
        "a request that the program makes of another on the way keeps the session's cache policy",
        arguments: ["redirect", "changed redirect", "redirect of a class", "canonical request"])
    func policyOfReplacement(_ kind: String) async throws {
        try await withHTTPTestServer { origin in
            let asked = Counter()
            serve(origin, asked)
            origin.route("/from") { _ in .redirect("/") }
            let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCache = cache
            let warming = URLSession(configuration: configuration)
            _ = await warming.result(request(origin.url()))
            warming.invalidateAndCancel()
            let recorder = Recorder()
            recorder.onRedirect = { _, _, request, answer in
                var request = request
                if kind.hasPrefix("changed") { request.setValue("1", forHTTPHeaderField: "X-New") }
                answer(request)
            }
            // A host for each case: they run at the same time.
            let host = "policy.\(kind.count).test"
            ScriptedProtocol.script(host) { [target = origin.url()] loader in
                guard let url = loader.request.url,
                    let response = HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: [:])
                else { return }
                loader.client?.urlProtocol(
                    loader, wasRedirectedTo: URLRequest(url: target), redirectResponse: response)
            }
            let session = recorder.session { configuration in
                configuration.urlCache = cache
                configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
                configuration.protocolClasses =
                    switch kind {
                    case "canonical request": [Adding.self]
                    case "redirect of a class": [ScriptedProtocol.self]
                    default: []
                    }
            }
            let first =
                switch kind {
                case "canonical request": origin.url()
                case "redirect of a class": try url("http://\(host)/")
                default: origin.url("/from")
                }
            let task = session.dataTask(with: first)
            await recorder.complete(task)
            #expect(recorder.record(task).data == Data("body 2".utf8) && asked.value == 2)
            await recorder.expectOrder(session)
        }
    }

    @Test("what was loaded without a lifetime and a validator is there for a request that accepts any age")
    func anyAge() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("plain") }
            let session = URLSession(configuration: .ephemeral)
            _ = await session.result(request(origin.url()))
            let kept = await session.result(request(origin.url(), .returnCacheDataDontLoad))
            #expect(text(kept) == "plain" && origin.requests.count == 1)
            session.invalidateAndCancel()
        }
    }

    @Test("sessions without a cache store nothing; sessions of one configuration share its cache")
    func configured() async throws {
        try await withHTTPTestServer { origin in
            let asked = Counter()
            serve(origin, asked)
            let configuration = URLSessionConfiguration.ephemeral
            #expect(configuration.urlCache?.diskCapacity == 0 && configuration.urlCache?.currentDiskUsage == 0)
            for count in [1, 1] {
                let session = URLSession(configuration: configuration)
                _ = await session.result(request(origin.url()))
                #expect(asked.value == count)
                session.invalidateAndCancel()
            }
            configuration.urlCache = nil
            let session = URLSession(configuration: configuration)
            _ = await session.result(request(origin.url()))
            _ = await session.result(request(origin.url()))
            #expect(asked.value == 3)
            session.invalidateAndCancel()
            #expect(URLSessionConfiguration.default.urlCache === URLCache.shared)
        }
    }

    private final class Silent: NSObject, URLSessionDataDelegate, @unchecked Sendable {}
    private final class Judging: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) { completionHandler(.performDefaultHandling, nil) }
    }

    @Test(
        "a response stored from an untrusted server is served once the delegate accepts the server",
        arguments: [true, false])
    func judged(_ judges: Bool) async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let identity = try authority.issue()
        let roots = String(decoding: authority.pem, as: UTF8.self)
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        func session(_ delegate: (any URLSessionDelegate)?) -> URLSession {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCache = cache
            configuration.adjust { $0.tls.trustRoots = .pem(roots) }
            return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        }
        try await withHTTPTestServer(.init(tls: .init(identity))) { first in
            try await withHTTPTestServer(.init(tls: .init(identity))) { second in
                let plain = session(nil)
                let other = session(judges ? Judging() : Silent())
                for origin in [first, second] {
                    origin.route("/") { _ in .ok("kept", headers: ["Cache-Control": "max-age=60"]) }
                    for _ in 0..<2 { #expect(await plain.result(request(origin.url())).data == Data("kept".utf8)) }
                    #expect(origin.counts.requests == 1)
                }
                // Whether the delegate implements the method is known after the first call.
                #expect(await other.result(request(first.url())).data == Data("kept".utf8))
                #expect(first.counts.requests == 2)
                #expect(await other.result(request(second.url())).data == Data("kept".utf8))
                #expect(second.counts.requests == (judges ? 2 : 1))
                plain.invalidateAndCancel()
                other.invalidateAndCancel()
            }
        }
    }

    @Test("responses are stored, found and removed by request, task and date, with userInfo (checklist 100, 101, 103)")
    func byRequest() async throws {
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let url = try URLLoadingCompatibilityTests.url("http://a.example/x")
        let other = try URLLoadingCompatibilityTests.url("http://a.example/y")
        let response = try #require(
            HTTPURLResponse(url: url, statusCode: 203, httpVersion: nil, headerFields: ["X-A": "b"]))
        let entry = CachedURLResponse(
            response: response, data: Data("kept".utf8), userInfo: ["note": "seen", "number": 3],
            storagePolicy: .allowedInMemoryOnly)
        cache.storeCachedResponse(entry, for: request(url))
        let found = try #require(cache.cachedResponse(for: request(url)))
        #expect(found.data == Data("kept".utf8) && (found.response as? HTTPURLResponse)?.statusCode == 203)
        #expect((found.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "x-a") == "b")
        #expect(found.userInfo?["note"] as? String == "seen" && found.userInfo?["number"] as? Int == 3)
        #expect(
            found.storagePolicy == .allowedInMemoryOnly && cache.currentMemoryUsage > 0 && cache.currentDiskUsage == 0)
        // A response that is not HTTP is returned unchanged.
        let plain = URLResponse(url: other, mimeType: "image/png", expectedContentLength: 3, textEncodingName: nil)
        cache.storeCachedResponse(CachedURLResponse(response: plain, data: Data([1, 2, 3])), for: request(other))
        let image = try #require(cache.cachedResponse(for: request(other)))
        #expect(image.response == plain && !(image.response is HTTPURLResponse) && image.data.count == 3)

        let session = URLSession(configuration: .ephemeral)
        let task = session.dataTask(with: url)
        let got = Box<Data?>()
        cache.getCachedResponse(for: task) { got.add($0?.data) }
        #expect(got.all == [Data("kept".utf8)])
        cache.removeCachedResponse(for: task)
        #expect(cache.cachedResponse(for: request(url)) == nil)
        cache.storeCachedResponse(entry, for: task)
        cache.removeCachedResponses(since: .distantFuture)
        #expect(cache.cachedResponse(for: request(url)) != nil)
        cache.removeCachedResponse(for: request(url))
        #expect(cache.cachedResponse(for: request(url)) == nil && cache.cachedResponse(for: request(other)) != nil)
        cache.removeCachedResponses(since: .distantPast)
        #expect(cache.cachedResponse(for: request(other)) == nil)
        cache.storeCachedResponse(
            CachedURLResponse(response: response, data: Data(), userInfo: nil, storagePolicy: .notAllowed),
            for: request(url))
        #expect(cache.cachedResponse(for: request(url)) == nil)
        cache.storeCachedResponse(entry, for: request(url))
        cache.memoryCapacity = 0
        #expect(cache.cachedResponse(for: request(url)) == nil && cache.memoryCapacity == 0)
        session.invalidateAndCancel()
    }

    @Test("responses are stored on disk, except those that must not be (checklist 90, 100)")
    func onDisk() throws {
        let folder = temporaryURL("URLCache")
        defer { try? FileManager.default.removeItem(at: folder) }
        let url = try URLLoadingCompatibilityTests.url("http://a.example/x")
        let response = URLResponse(url: url, mimeType: nil, expectedContentLength: 1, textEncodingName: nil)
        do {
            let cache = URLCache(memoryCapacity: 0, diskCapacity: 1 << 20, directory: folder)
            #expect(cache.diskCapacity == 1 << 20)
            cache.storeCachedResponse(CachedURLResponse(response: response, data: Data([1])), for: request(url))
            cache.storeCachedResponse(
                CachedURLResponse(
                    response: response, data: Data([2]), userInfo: nil, storagePolicy: .allowedInMemoryOnly),
                for: request(try URLLoadingCompatibilityTests.url("http://a.example/y")))
        }
        let cache = URLCache(memoryCapacity: 0, diskCapacity: 1 << 20, diskPath: folder.path)
        #expect(cache.cachedResponse(for: request(url))?.data == Data([1]))
        #expect(cache.cachedResponse(for: request(try URLLoadingCompatibilityTests.url("http://a.example/y"))) == nil)
    }

    @Test("a cached response can be archived")
    func archived() throws {
        let response = try #require(
            HTTPURLResponse(url: url("http://a.example/"), statusCode: 200, httpVersion: nil, headerFields: [:]))
        let entry = CachedURLResponse(
            response: response, data: Data("x".utf8), userInfo: ["a": "b"], storagePolicy: .allowedInMemoryOnly)
        let data = try NSKeyedArchiver.archivedData(withRootObject: entry, requiringSecureCoding: true)
        let again = try NSKeyedUnarchiver.unarchivedObject(ofClass: CachedURLResponse.self, from: data)
        #expect(again == entry && again?.userInfo?["a"] as? String == "b")
        #expect(entry.copy() as? CachedURLResponse === entry)
    }

    @Test(
        "willCacheResponse follows the last piece and decides which response is stored (checklist 98, 99, 102)",
        arguments: [0, 1, 2])
    func asked(_ answer: Int) async throws {
        try await withHTTPTestServer { origin in
            let asked = Counter()
            serve(origin, asked)
            let recorder = Recorder()
            let proposals = Box<CachedURLResponse>()
            recorder.onCache = { _, proposed, give in
                proposals.add(proposed)
                switch answer {
                case 0: give(proposed)
                case 1:
                    give(
                        CachedURLResponse(
                            response: proposed.response, data: Data("altered".utf8), userInfo: ["by": "us"],
                            storagePolicy: .allowedInMemoryOnly))
                default: give(nil)
                }
            }
            let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
            let session = recorder.session { $0.urlCache = cache }
            let task = session.dataTask(with: origin.url())
            await recorder.complete(task)
            #expect(recorder.words(task) == "response data cache complete")
            #expect(
                proposals.all.map(\.data) == [Data("body 1".utf8)] && proposals.all.first?.response.url == origin.url())
            let kept = cache.cachedResponse(for: request(origin.url()))
            #expect(kept?.data == [Data("body 1".utf8), Data("altered".utf8), nil][answer])
            #expect(kept?.userInfo?["by"] as? String == (answer == 1 ? "us" : nil))
            let second = session.dataTask(with: origin.url())
            await recorder.complete(second, number: 2)
            #expect(asked.value == (answer == 2 ? 2 : 1))
            // The delegate is not asked about responses from the cache, nor about downloads.
            let third = session.downloadTask(with: origin.url("/old"))
            await recorder.complete(third, number: 3)
            #expect(proposals.all.count == asked.value - 1 && !recorder.words(third).contains("cache"))
            await recorder.expectOrder(session)
        }
    }

    @Test("a willCacheResponse that drops its handler ends the task, and is reported (checklist 55)")
    func dropped() async throws {
        try await withHTTPTestServer { origin in
            serve(origin, Counter())
            let recorder = Recorder()
            recorder.onCache = { _, _, _ in }
            let session = recorder.session()
            let task = session.dataTask(with: origin.url())
            let reports = MisuseReports(task)
            await recorder.complete(task)
            #expect(recorder.record(task).errors.first??.code == .cancelled)
            #expect(reports.all.count == 1)
            await recorder.expectOrder(session)
        }
    }

    @Test("sessions call the methods of a subclass: its stored response answers, new responses are passed to it")
    func subclass() async throws {
        try await withHTTPTestServer { origin in
            let asked = Counter()
            serve(origin, asked)
            let cache = Noting(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCache = cache
            let session = URLSession(configuration: configuration)
            var asking = request(origin.url())
            asking.setValue("yes", forHTTPHeaderField: "X-Mine")
            let first = await session.result(asking)
            let second = await session.result(asking)
            #expect(text(first) == "body 1" && text(second) == "body 1" && asked.value == 1)
            #expect(cache.notes.all == ["look yes", "store body 1", "look yes"])
            let old = origin.url("/old")
            _ = await session.result(request(old))
            let confirmed = await session.result(request(old))
            #expect(text(confirmed) == "old" && asked.value == 3)
            let (file, _) = try await session.download(from: origin.url())
            #expect(try Data(contentsOf: file) == Data("body 1".utf8))
            try FileManager.default.removeItem(at: file)
            // A lookup that never returns does not outlive its task.
            cache.hangs.store(true, ordering: .relaxed)
            let task = session.dataTask(with: origin.url()).resumed()
            await cache.hanging.reaches(1)
            task.cancel()
            try await task.eventually(.completed)
            #expect((task.error as? URLError)?.code == .cancelled)
            cache.kept.removeAll()
            session.invalidateAndCancel()
        }
    }

    @Test("a cache lookup whose handler is dropped ends at once, as if nothing were stored")
    func unanswered() async throws {
        try await withHTTPTestServer { origin in
            let asked = Counter()
            serve(origin, asked)
            let cache = Noting(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
            cache.hangs.store(true, ordering: .relaxed)
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCache = cache
            let session = URLSession(configuration: configuration)
            let done = Box<Result3>()
            let ended = Counter()
            session.dataTask(with: request(origin.url("/other"))) {
                done.add(Result3(data: $0, response: $1, error: $2 as? URLError))
                ended.add()
            }.resume()
            await cache.hanging.reaches(1)
            cache.kept.removeAll()
            await ended.reaches(1)
            #expect(done.all.first?.error == nil && done.all.first?.response != nil)
            session.invalidateAndCancel()
        }
    }

    @Test("reset clears and flush writes the storages; their handlers run on the delegate queue")
    func resetting() async throws {
        try await withHTTPTestServer { origin in
            let asked = Counter()
            serve(origin, asked)
            origin.route("/set") { _ in .ok("", headers: [.setCookie: "a=b"]) }
            let configuration = URLSessionConfiguration.ephemeral
            let space = URLProtectionSpace(
                host: "a.example", port: 80, protocol: "http", realm: "r",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            configuration.urlCredentialStorage?.set(
                URLCredential(user: "u", password: "p", persistence: .forSession), for: space)
            let session = URLSession(configuration: configuration)
            _ = await session.result(request(origin.url()))
            _ = await session.result(request(origin.url("/set")))
            #expect(configuration.httpCookieStorage?.cookies?.count == 1)
            let done = Counter()
            let queues = Box<Bool>()
            session.flush { [session] in
                queues.add(OperationQueue.current === session.delegateQueue)
                done.add()
            }
            await done.reaches(1)
            session.reset { [session] in
                queues.add(OperationQueue.current === session.delegateQueue)
                done.add()
            }
            await done.reaches(2)
            #expect(queues.all == [true, true] && configuration.httpCookieStorage?.cookies == [])
            #expect(configuration.urlCredentialStorage?.allCredentials.isEmpty == true)
            _ = await session.result(request(origin.url()))
            #expect(asked.value == 2)
            await session.flush()
            await session.reset()
            session.invalidateAndCancel()
        }
    }
}

/// A cache that records its calls.
private final class Noting: URLCache, @unchecked Sendable {
    let notes = Box<String>()
    let hangs = Atomic<Bool>(false)
    let hanging = Counter()
    let kept = Kept()

    /// Handlers that are retained forever.
    final class Kept: Sendable {
        private let handlers = Lock<[@Sendable (CachedURLResponse?) -> Void]>([])
        func add(_ handler: @escaping @Sendable (CachedURLResponse?) -> Void) {
            handlers.withLock { $0.append(handler) }
        }
        func removeAll() {
            let all = handlers.withLock { handlers in
                defer { handlers = [] }
                return handlers
            }
            withExtendedLifetime(all) {}
        }
    }

    override func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard hangs.load(ordering: .relaxed) else {
            return super.getCachedResponse(for: dataTask, completionHandler: completionHandler)
        }
        kept.add(completionHandler)
        hanging.add()
    }

    override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        if request.url?.path == "/" { notes.add("look \(request.value(forHTTPHeaderField: "x-mine") ?? "-")") }
        return super.cachedResponse(for: request)
    }

    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        if request.url?.path == "/" { notes.add("store \(String(decoding: cachedResponse.data, as: UTF8.self))") }
        super.storeCachedResponse(cachedResponse, for: request)
    }
}
