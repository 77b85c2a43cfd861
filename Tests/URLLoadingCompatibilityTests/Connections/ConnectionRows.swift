// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoadingCompatibility

/// NSURLConnection and NSURLDownload.
@Suite(.timeLimit(.minutes(4)))
struct ConnectionRows {
    /// Records the calls of a connection that loads into memory.
    class Base: ConnectionRecorder, NSURLConnectionDelegate, @unchecked Sendable {
        let words = Box<String>(), done = Counter(), asked = Counter()
        var queue: OperationQueue?
        var answers: @Sendable (URLAuthenticationChallenge) -> Void = { $0.sender?.performDefaultHandling(for: $0) }
        var usesStorage = true
        override func note(_ word: String) {
            guard words.all.last != word else { return }
            words.add(word + (queue == nil || OperationQueue.current === queue ? "" : " elsewhere"))
        }
        override func end() { done.add() }
        /// Loads from a URL to the end, with the calls on a queue.
        func load(_ url: URL) async throws {
            queue = OperationQueue()
            let connection = try #require(
                NSURLConnection(request: URLRequest(url: url), delegate: self, startImmediately: false))
            connection.setDelegateQueue(queue)
            connection.start()
            await done.reaches(1)
        }
        func connectionShouldUseCredentialStorage(_ connection: NSURLConnection) -> Bool { usesStorage }
        func connection(_ connection: NSURLConnection, didReceive challenge: URLAuthenticationChallenge) {
            note("challenge")
            answers(challenge)
            asked.add()
        }
    }

    final class Reader: Base, NSURLConnectionDataDelegate, @unchecked Sendable {
        let body = Box<Data>(), requests = Box<URLRequest>(), first = Counter()
        var cachesNothing = false
        var onRequest: @Sendable (URLRequest, URLResponse?) -> URLRequest? = { request, _ in request }
        func connection(
            _ connection: NSURLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
        ) -> URLRequest? {
            note(response == nil ? "first" : "redirect")
            requests.add(request)
            return onRequest(request, response)
        }
        func connection(_ connection: NSURLConnection, didReceive response: URLResponse) {
            note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        }
        func connection(_ connection: NSURLConnection, didReceive data: Data) {
            note("data")
            body.add(data)
            first.add()
        }
        func connection(_ connection: NSURLConnection, needNewBodyStream request: URLRequest) -> InputStream? {
            note("body")
            return InputStream(data: Data("12345".utf8))
        }
        func connection(
            _ connection: NSURLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
            totalBytesExpectedToWrite: Int
        ) { note("sent") }
        func connection(_ connection: NSURLConnection, willCacheResponse cachedResponse: CachedURLResponse)
            -> CachedURLResponse?
        {
            if cachesNothing { note("cache") }
            return cachesNothing ? nil : cachedResponse
        }
        func connectionDidFinishLoading(_ connection: NSURLConnection) {
            note("finish")
            done.add()
        }
    }

    final class Saver: Base, NSURLConnectionDownloadDelegate, @unchecked Sendable {
        let content = Box<Data>()
        func connection(
            _ connection: NSURLConnection, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
            expectedTotalBytes: Int64
        ) { note("written") }
        func connectionDidFinishDownloading(_ connection: NSURLConnection, destinationURL: URL) {
            note("file")
            content.add((try? Data(contentsOf: destinationURL)) ?? Data())
            done.add()
        }
    }

    private static func routes(_ origin: HTTPTestServer) {
        origin.route("/from") { _ in .redirect("/", status: .temporaryRedirect) }
        origin.route("/") { .ok("hello \($0.method) \($0.bodyCount)") }
        origin.route("/large") { _ in .ok(.repeated(count: 20_000_000)) }
        origin.route("/file") { _ in
            .ok(.repeated(count: 300_000), headers: ["Content-Disposition": "attachment; filename=\"a.bin\""])
        }
        origin.route("/locked") { request in
            guard request.headers["Authorization"] == "Basic YWRhOnNlY3JldA==" else {
                return .status(
                    .unauthorized,
                    headers: ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", Basic realm=\"r\""],
                    body: .bytes(Array("no".utf8)))
            }
            return .ok("in")
        }
        origin.route("/stored") { request in
            guard request.headers["Authorization"] == nil else { return .ok("in") }
            return .status(.unauthorized, headers: ["WWW-Authenticate": "Basic realm=\"r\""])
        }
    }

    @Test(
        "a connection with a delegate queue, redirects and a body stream makes its calls in order (checklist 151, 152)")
    func loads() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Reader()
            delegate.queue = OperationQueue()
            var request = URLRequest(url: origin.url("/from"))
            request.httpMethod = "PUT"
            request.httpBodyStream = InputStream(data: Data("12345".utf8))
            let connection = try #require(
                NSURLConnection(request: request, delegate: delegate, startImmediately: false))
            connection.setDelegateQueue(delegate.queue)
            try await Task.sleep(for: .milliseconds(5))
            #expect(delegate.words.all.isEmpty && origin.counts.accepted == 0)
            connection.start()
            connection.start()
            await delegate.done.reaches(1)
            #expect(
                delegate.words.all == ["first", "sent", "redirect", "body", "sent", "response 200", "data", "finish"])
            #expect(delegate.body.all.reduce(Data(), +) == Data("hello PUT 5".utf8))
            #expect(connection.originalRequest.url?.path == "/from" && connection.currentRequest.url?.path == "/")
        }
    }

    @Test(
        "the delegate's answer to the canonical first request is sent; nil ends the connection (checklist 64)"
    )
    func canonical() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let bare = try url(String(origin.url("/").absoluteString.dropLast()))
            for answer in [0, 1, 2] {
                let delegate = Reader()
                let other = URLRequest(url: origin.url("/from"))
                delegate.onRequest = { request, response in
                    guard response == nil else { return nil }
                    return [request, other, nil][answer]
                }
                try await delegate.load(bare)
                #expect(delegate.requests.all.first?.url == origin.url("/"))
                let words =
                    switch answer {
                    case 0: ["first", "response 200", "data", "finish"]
                    // A redirect answered with nil is the result (checklist 60).
                    case 1: ["first", "redirect", "response 307", "finish"]
                    default: ["first", "fail -999"]
                    }
                #expect(delegate.words.all == words)
            }
        }
    }

    @Test(
        "the delegate chooses its challenges and answers them through the sender (checklist 153, 154, 155)",
        arguments: ["use", "without", "cancel", "reject"])
    func challenges(_ answer: String) async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Reader()
            delegate.answers = { challenge in
                switch answer {
                case "use" where challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPDigest:
                    challenge.sender?.rejectProtectionSpaceAndContinue(with: challenge)
                case "use":
                    challenge.sender?.use(
                        URLCredential(user: "ada", password: "secret", persistence: .none), for: challenge)
                case "without": challenge.sender?.continueWithoutCredential(for: challenge)
                case "cancel": challenge.sender?.cancel(challenge)
                default: challenge.sender?.rejectProtectionSpaceAndContinue(with: challenge)
                }
            }
            try await delegate.load(origin.url("/locked"))
            let asked = ["can", "challenge"]
            let words =
                switch answer {
                case "use": asked + asked + ["response 200", "data", "finish"]
                case "without": asked + ["response 401", "data", "finish"]
                case "cancel": asked + ["cancelled", "fail -999"]
                default: asked + asked + ["response 401", "data", "finish"]
                }
            #expect(delegate.words.all == ["first"] + words)
        }
    }

    @Test(
        "a stored credential is sent only if the delegate lets the storage be used (checklist 153)",
        arguments: [true, false])
    func storage(_ isUsed: Bool) async throws {
        let folder = try makeTemporaryFolder("folder")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let url = origin.url("/stored")
            let space = URLProtectionSpace(
                host: url.host ?? "", port: Int(origin.port), protocol: "http", realm: "r",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            let stored = URLCredential(user: "ada", password: "secret", persistence: .forSession)
            URLCredentialStorage.shared.set(stored, for: space)
            defer { URLCredentialStorage.shared.remove(stored, for: space) }
            let reader = Reader()
            reader.usesStorage = isUsed
            try await reader.load(url)
            #expect(reader.words.all.contains(isUsed ? "response 200" : "response 401"))
            let saver = Downloader(folder)
            (saver.usesStorage, saver.answersByDefault) = (isUsed, true)
            Self.onRunLoop(saver.done) { _ = NSURLDownload(request: URLRequest(url: url), delegate: saver) }
            await saver.done.reaches(1)
            #expect(origin.requests.contains { $0.headers["Authorization"] != nil } == isUsed)
        }
    }

    @Test("the delegate chooses the response to store; nil stores nothing (checklist 156)")
    func caching() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/kept") { _ in .ok("kept", headers: ["Cache-Control": "max-age=1000"]) }
            // Other rows empty the shared cache at any time; what is being loaded then is not stored.
            var before = 0
            repeat {
                before = origin.requests.count
                let delegate = Reader()
                delegate.cachesNothing = before == 0
                try await delegate.load(origin.url("/kept"))
                let asked = before == 0 ? ["cache"] : []
                #expect(delegate.words.all == ["first", "response 200", "data"] + asked + ["finish"])
            } while origin.requests.count > before
            #expect(before >= 2)
            URLCache.shared.removeCachedResponse(for: URLRequest(url: origin.url("/kept")))
        }
    }

    /// Receives all challenges in one method.
    final class Single: NSObject, NSURLConnectionDataDelegate, @unchecked Sendable {
        let words = Box<String>(), done = Counter()
        func connection(_ connection: NSURLConnection, willSendRequestFor challenge: URLAuthenticationChallenge) {
            words.add("challenge \(challenge.previousFailureCount)")
            challenge.sender?.use(URLCredential(user: "ada", password: "wrong", persistence: .none), for: challenge)
            if challenge.previousFailureCount > 0 { challenge.sender?.cancel(challenge) }
        }
        func connection(
            _ connection: NSURLConnection, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
        ) -> Bool {
            words.add("can")
            return true
        }
        func connection(_ connection: NSURLConnection, didReceive response: URLResponse) {
            words.add("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
            connection.cancel()
            done.add()
        }
        func connection(_ connection: NSURLConnection, didReceive data: Data) { words.add("data") }
        func connectionDidFinishLoading(_ connection: NSURLConnection) { words.add("finish") }
        func connection(_ connection: NSURLConnection, didFailWithError error: any Error) {
            words.add("fail")
            done.add()
        }
    }

    @Test("a delegate with willSendRequestFor challenge receives no other challenge calls")
    func single() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Single()
            let connection = try #require(
                NSURLConnection(
                    request: URLRequest(url: origin.url("/locked")), delegate: delegate, startImmediately: false))
            connection.setDelegateQueue(OperationQueue())
            connection.start()
            await delegate.done.reaches(1)
            #expect(!delegate.words.all.contains("can") && delegate.words.all.first == "challenge 0")
        }
    }

    @Test("cancel stops all calls; the delegate is released (checklist 157)")
    func cancelled() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            weak var held: Reader?
            var connection: NSURLConnection?
            let words: Box<String>
            do {
                let delegate = Reader()
                (held, words) = (delegate, delegate.words)
                connection = NSURLConnection(
                    request: URLRequest(url: origin.url("/large")), delegate: delegate, startImmediately: false)
                connection?.setDelegateQueue(OperationQueue())
                connection?.start()
                await delegate.first.reaches(1)
            }
            connection?.cancel()
            try await eventually(held == nil) { $0 }
            #expect(!words.all.contains { $0.hasPrefix("fail") || $0 == "finish" })
            weak let gone = connection
            connection = nil
            try await eventually(gone == nil) { $0 }
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test(
        "by default the delegate is called on the run loop of the creating thread, and on scheduled run loops"
    )
    func runLoop() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let request = URLRequest(url: origin.url("/"))
            let results = Box<[String]>()
            let ended = Counter()
            for isScheduled in [false, true] {
                Thread.detachNewThread {
                    let thread = ObjectIdentifier(Thread.current)
                    let delegate = Reader()
                    let connection = NSURLConnection(
                        request: request, delegate: delegate, startImmediately: !isScheduled)
                    if isScheduled {
                        connection?.schedule(in: .current, forMode: RunLoop.Mode("mine"))
                        connection?.start()
                    }
                    delegate.onRequest = { request, _ in
                        if ObjectIdentifier(Thread.current) != thread { results.add(["another thread"]) }
                        return request
                    }
                    let mode = isScheduled ? RunLoop.Mode("mine") : .default
                    delegate.done.runLoop(mode)
                    results.add(delegate.words.all)
                    ended.add()
                }
            }
            await ended.reaches(2)
            let words = ["first", "response 200", "data", "finish"]
            #expect(results.all == [words, words])
        }
    }

    /// A run loop handed to another thread, which only schedules a connection in it.
    private struct Loop: @unchecked Sendable { let loop: RunLoop }

    @Test("a run loop that the connection has left makes no call, not even one that was due")
    func left() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let request = URLRequest(url: origin.url("/"))
            let delegate = Reader()
            let loops = Box<Loop>(), threads = Box<Bool>(), left = Counter()
            Thread.detachNewThread {
                let thread = ObjectIdentifier(Thread.current)
                delegate.onRequest = { request, _ in
                    threads.add(ObjectIdentifier(Thread.current) == thread)
                    return request
                }
                loops.add(Loop(loop: .current))
                while left.value == 0 { Thread.sleep(forTimeInterval: 0.001) }
                delegate.done.runLoop()
            }
            try await loops.wait { !$0.isEmpty }
            let other = try #require(loops.all.first)
            Thread.detachNewThread {
                let connection = NSURLConnection(request: request, delegate: delegate)
                connection?.unschedule(from: .current, forMode: .default)
                connection?.schedule(in: other.loop, forMode: .default)
                for _ in 0..<20 {
                    _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.005))
                    Thread.sleep(forTimeInterval: 0.001)
                }
                if !delegate.words.all.isEmpty { threads.add(false) }
                left.add()
            }
            await delegate.done.reaches(1)
            #expect(threads.all == [true] && delegate.words.all == ["first", "response 200", "data", "finish"])
        }
    }

    @Test(
        "loads without a delegate, blocking and asynchronous, return errors; a 4xx status is no error (checklist 151)")
    func simple() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let request = URLRequest(url: origin.url("/"))
            let locked = URLRequest(url: origin.url("/locked"))
            let wrong = URLRequest(url: try url("gopher://a.example/"))
            #expect(NSURLConnection.canHandle(request) && !NSURLConnection.canHandle(wrong))
            #expect(NSURLConnection(request: wrong, delegate: nil) == nil)
            let words = Box<String>()
            let ended = Counter()
            for _ in 0..<8 {
                Thread.detachNewThread {
                    var response: URLResponse?
                    let data = try? NSURLConnection.sendSynchronousRequest(request, returning: &response)
                    words.add("\((response as? HTTPURLResponse)?.statusCode ?? 0) \(data?.count ?? -1)")
                    ended.add()
                }
            }
            Thread.detachNewThread {
                do { _ = try NSURLConnection.sendSynchronousRequest(wrong, returning: nil) } catch {
                    words.add("\((error as? URLError)?.code.rawValue ?? 0)")
                }
                ended.add()
            }
            await ended.reaches(9)
            #expect(words.all.sorted() == ["-1002"] + [String](repeating: "200 11", count: 8))
            let queue = OperationQueue()
            let status: Int? = await withCheckedContinuation { continuation in
                NSURLConnection.sendAsynchronousRequest(locked, queue: queue) { response, data, error in
                    #expect(OperationQueue.current === queue && error == nil && data == Data("no".utf8))
                    continuation.resume(returning: (response as? HTTPURLResponse)?.statusCode)
                }
            }
            #expect(status == 401)
        }
    }

    @Test("a download delegate receives a file")
    func saves() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Saver()
            try await delegate.load(origin.url("/file"))
            #expect(
                delegate.words.all == ["written", "file"]
                    && delegate.content.all == [Data(repeating: 0x61, count: 300_000)])
        }
    }

    // MARK: NSURLDownload

    final class Downloader: NSObject, NSURLDownloadDelegate, @unchecked Sendable {
        let words = Box<String>(), done = Counter(), some = Counter()
        let folder: URL
        var overwrites = false, usesStorage = true, answersByDefault = false
        init(_ folder: URL) { self.folder = folder }
        func downloadShouldUseCredentialStorage(_ download: NSURLDownload) -> Bool { usesStorage }
        func note(_ word: String) { if words.all.last != word { words.add(word) } }
        func downloadDidBegin(_ download: NSURLDownload) { note("begin") }
        func download(_ download: NSURLDownload, willSend request: URLRequest, redirectResponse: URLResponse?)
            -> URLRequest?
        {
            note(redirectResponse == nil ? "first" : "redirect")
            return request
        }
        func download(_ download: NSURLDownload, didReceive challenge: URLAuthenticationChallenge) {
            note("challenge")
            guard !answersByDefault else { return challenge.sender?.performDefaultHandling(for: challenge) ?? () }
            challenge.sender?.cancel(challenge)
        }
        func download(_ download: NSURLDownload, didCancel challenge: URLAuthenticationChallenge) { note("cancelled") }
        func download(_ download: NSURLDownload, didReceive response: URLResponse) { note("response") }
        func download(_ download: NSURLDownload, willResumeWith response: URLResponse, fromByte startingByte: Int64) {
            note("resume \(startingByte > 0)")
        }
        func download(_ download: NSURLDownload, didReceiveDataOfLength length: Int) {
            note("data")
            some.add()
        }
        func download(_ download: NSURLDownload, decideDestinationWithSuggestedFilename filename: String) {
            note("destination \(filename)")
            download.setDestination(folder.appendingPathComponent(filename).path, allowOverwrite: overwrites)
        }
        func download(_ download: NSURLDownload, didCreateDestination path: String) {
            note("created \(URL(fileURLWithPath: path).lastPathComponent)")
        }
        func downloadDidFinish(_ download: NSURLDownload) {
            note("finish")
            done.add()
        }
        func download(_ download: NSURLDownload, didFailWithError error: any Error) {
            note("fail \((error as? URLError)?.code.rawValue ?? 0)")
            done.add()
        }
    }

    /// Creates downloads on a thread with a run loop, and runs it until they are done.
    private static func onRunLoop(_ until: Counter, _ body: @escaping @Sendable () -> Void) {
        Thread.detachNewThread {
            body()
            until.runLoop()
        }
    }

    @Test("a download is placed where its delegate says, under an unused name if it must not overwrite (checklist 158)")
    func download() async throws {
        let folder = try makeTemporaryFolder("folder")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withHTTPTestServer(serving: Self.routes) { origin in
            origin.route("/to-file") { _ in .redirect("/file") }
            let request = URLRequest(url: origin.url("/to-file"))
            for (number, name) in [(1, "a.bin"), (2, "a-2.bin"), (3, "a.bin")] {
                let delegate = Downloader(folder)
                delegate.overwrites = number == 3
                Self.onRunLoop(delegate.done) { _ = NSURLDownload(request: request, delegate: delegate) }
                await delegate.done.reaches(1)
                #expect(
                    delegate.words.all == [
                        "begin", "first", "redirect", "response", "destination a.bin", "data", "created \(name)",
                        "finish",
                    ])
                let content = try Data(contentsOf: folder.appendingPathComponent(name))
                #expect(content.count == 300_000)
            }
            let refused = Downloader(folder)
            let locked = URLRequest(url: origin.url("/locked"))
            Self.onRunLoop(refused.done) { _ = NSURLDownload(request: locked, delegate: refused) }
            await refused.done.reaches(1)
            #expect(refused.words.all == ["begin", "first", "challenge", "cancelled", "fail -999"])
            #expect(NSURLDownload.canResumeDownloadDecoded(withEncodingMIMEType: "application/gzip"))
            #expect(!NSURLDownload.canResumeDownloadDecoded(withEncodingMIMEType: "application/macbinary"))
        }
    }

    @Test("a download does not take the place of a folder: it fails, and the folder keeps its files")
    func folderInTheWay() async throws {
        let folder = try makeTemporaryFolder("folder")
        defer { try? FileManager.default.removeItem(at: folder) }
        let inTheWay = folder.appendingPathComponent("a.bin")
        try FileManager.default.createDirectory(at: inTheWay, withIntermediateDirectories: false)
        for name in ["one", "two"] { try Data(name.utf8).write(to: inTheWay.appendingPathComponent(name)) }
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Downloader(folder)
            delegate.overwrites = true
            let request = URLRequest(url: origin.url("/file"))
            Self.onRunLoop(delegate.done) { _ = NSURLDownload(request: request, delegate: delegate) }
            await delegate.done.reaches(1)
            #expect(delegate.words.all.last == "fail \(URLError.cannotMoveFile.rawValue)")
            let names = try? FileManager.default.contentsOfDirectory(atPath: inTheWay.path)
            #expect(names?.sorted() == ["one", "two"])
            #expect((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) == ["a.bin"])
        }
    }

    @Test("a file that a download is to replace stays as it was until the new one has taken its place")
    func replaced() async throws {
        let folder = try makeTemporaryFolder("folder")
        defer { try? FileManager.default.removeItem(at: folder) }
        let place = folder.appendingPathComponent("a.bin")
        try Data("old".utf8).write(to: place)
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let request = URLRequest(url: origin.url("/file"))
            let failed = Counter()
            Thread.detachNewThread {
                let download = NSURLDownload(request: request, delegate: nil)
                download.setDestination(place.path, allowOverwrite: true)
                // A move that fails.
                let missing = folder.appendingPathComponent("missing")
                #expect(throws: (any Error).self) { try download.take(missing, suggested: "a.bin") }
                download.cancel()
                failed.add()
            }
            await failed.reaches(1)
            let content = try? Data(contentsOf: place)
            #expect(content == Data("old".utf8))
        }
    }

    @Test("a download is placed on another file system, in place of a file whose permissions it takes")
    func otherFileSystem() async throws {
        // A memory file system, which most machines have.
        let place = "/dev/shm/urlloading-test-\(UUID().uuidString)"
        guard access("/dev/shm", W_OK) == 0 else { return }
        defer { unlink(place) }
        try Data("old".utf8).write(to: URL(fileURLWithPath: place))
        chmod(place, 0o640)
        try await withHTTPTestServer(serving: Self.routes) { origin in
            let delegate = Downloader(URL(fileURLWithPath: "/dev/shm"))
            let request = URLRequest(url: origin.url("/file"))
            Self.onRunLoop(delegate.done) {
                let download = NSURLDownload(request: request, delegate: delegate)
                download.setDestination(place, allowOverwrite: true)
            }
            await delegate.done.reaches(1)
            #expect(delegate.words.all.last == "finish")
            var status = stat()
            lstat(place, &status)
            #expect(status.st_size == 300_000 && status.st_mode & 0o777 == 0o640)
        }
    }

    @Test("a cancelled download makes no further calls, and can be resumed (checklist 157)")
    func resumes() async throws {
        let folder = try makeTemporaryFolder("folder")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withHTTPTestServer { origin in
            let isFirst = Counter()
            origin.route("/") { request in
                guard let range = request.headers["Range"] else {
                    isFirst.add()
                    return .ok(
                        .chunks([.bytes([UInt8](repeating: 0x61, count: 1000)), .pause(.seconds(30)), "b"]),
                        headers: ["ETag": "\"one\""])
                }
                let start = Int(range.dropFirst(6).dropLast()) ?? 0
                return .status(
                    .partialContent, headers: ["ETag": "\"one\"", "Content-Range": "bytes \(start)-1999/2000"],
                    body: .bytes([UInt8](repeating: 0x61, count: 2000 - start)))
            }
            let request = URLRequest(url: origin.url("/"))
            let delegate = Downloader(folder)
            let made = Box<NSURLDownload>()
            let stop = Counter()
            Self.onRunLoop(stop) {
                let download = NSURLDownload(request: request, delegate: delegate)
                download.deletesFileUponFailure = false
                made.add(download)
            }
            await delegate.some.reaches(1)
            let download = try #require(made.all.first)
            #expect(download.resumeData == nil)
            download.cancel()
            // A cancelled download calls its delegate no more.
            try await eventually(download.resumeData != nil) { $0 }
            stop.add()
            #expect(delegate.words.all.last == "data" && delegate.done.value == 0)
            let data = try #require(download.resumeData)
            let again = Downloader(folder)
            let path = folder.appendingPathComponent("whole").path
            Self.onRunLoop(again.done) { _ = NSURLDownload(resumeData: data, delegate: again, path: path) }
            await again.done.reaches(1)
            #expect(again.words.all == ["begin", "resume true", "data", "created whole", "finish"])
            let content = try Data(contentsOf: URL(fileURLWithPath: path))
            #expect(content == Data(repeating: 0x61, count: 2000))
        }
    }
}
