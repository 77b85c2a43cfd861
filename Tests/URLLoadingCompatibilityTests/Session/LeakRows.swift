// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// No object of a session remains when it is over, whichever tasks it had and however they ended.
@Suite(.timeLimit(.minutes(3)))
struct LeakRows {
    enum Kind: String, CaseIterable, Sendable {
        case data, upload, download, turned, socket, stream, delayed, bytes, asked
    }
    enum Ending: String, CaseIterable, Sendable { case whole, cancelled, never, invalidated }

    /// Receives every call, and answers some in the async form.
    final class Delegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, URLSessionWebSocketDelegate,
        URLSessionStreamDelegate, @unchecked Sendable
    {
        let done: Counter, begun: Counter, turns: Bool
        init(_ done: Counter, _ begun: Counter, turns: Bool) {
            (self.done, self.begun, self.turns) = (done, begun, turns)
        }
        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
        ) async -> URLSession.ResponseDisposition {
            begun.add()
            return turns ? .becomeDownload : .allow
        }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest
        ) async -> URLRequest? { request }
        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
        ) {}
        func urlSession(
            _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
        ) {
            begun.add()
        }
        func urlSession(
            _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
            didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
        ) {}
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            done.add()
        }
        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { done.add() }
    }

    fileprivate static func make(_ kind: Kind, _ session: URLSession, _ origin: HTTPTestServer, _ path: String)
        -> URLSessionTask
    {
        let url = origin.url(path)
        switch kind {
        case .data, .turned, .bytes, .asked: return session.dataTask(with: url)
        case .upload: return session.uploadTask(with: URLRequest(url: url), from: Data(count: 1000))
        case .download: return session.downloadTask(with: url)
        case .socket: return session.webSocketTask(with: origin.url(path == "/" ? "/leave" : "/socket"))
        case .stream: return session.streamTask(withHostName: "127.0.0.1", port: Int(origin.port))
        case .delayed:
            let task = session.dataTask(with: url)
            task.earliestBeginDate = path == "/" ? Date(timeIntervalSinceNow: 0.005) : .distantFuture
            return task
        }
    }

    fileprivate static func routes(_ origin: HTTPTestServer) {
        origin.route("/") { _ in .ok(.repeated(count: 10_000)) }
        origin.route("/stall", faults: [.init(.responseBody(after: 2), .stall)]) { _ in .ok("hello") }
        origin.webSocket("/leave") { try await $0.close(WebSocketClose(.normal)) }
        origin.webSocket("/socket", .echo)
    }

    @Test(
        "session, task and delegate are released, for every kind of task and every kind of end",
        arguments: Kind.allCases,
        Ending.allCases)
    func gone(_ kind: Kind, _ ending: Ending) async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            weak var session: URLSession?
            weak var task: URLSessionTask?
            weak var delegate: Delegate?
            let done = Counter()
            func run() async throws {
                let begun = Counter()
                let hearing = Delegate(done, begun, turns: kind == .turned)
                let made = URLSession(configuration: .ephemeral, delegate: hearing, delegateQueue: nil)
                let load = Self.make(kind, made, origin, ending == .whole ? "/" : "/stall")
                (session, task, delegate) = (made, load, hearing)
                if kind == .bytes {
                    let (bytes, _) = try await made.bytes(from: origin.url(ending == .whole ? "/" : "/stall"))
                    if ending == .whole { for try await _ in bytes {} }
                }
                _ = load.progress
                if let socket = load as? URLSessionWebSocketTask {
                    socket.receive { _ in }
                    socket.sendPing { _ in }
                }
                if let stream = load as? URLSessionStreamTask {
                    stream.write(Data("GET / HTTP/1.0\r\n\r\n".utf8), timeout: 0) { _ in }
                    stream.readData(ofMinLength: 0, maxLength: 1, timeout: 0) { _, _, _ in }
                    if ending == .whole {
                        stream.closeWrite()
                        stream.closeRead()
                    }
                }
                if ending != .never { load.resume() }
                switch ending {
                case .whole: await done.reaches(1)
                case .cancelled:
                    load.cancel()
                    await done.reaches(1)
                case .invalidated: break
                // A task that was never resumed retains its session (docs/guides/classic.md).
                case .never: load.cancel()
                }
                if ending == .invalidated { made.invalidateAndCancel() } else { made.finishTasksAndInvalidate() }
                await done.reaches(2)
            }
            try await run()
            try await eventually(session == nil && task == nil && delegate == nil) { $0 }
            origin.releaseStalls()
            try await origin.wait { $0.open == 0 }
        }
    }

    /// Weak references, set on another thread before the test reads them.
    private final class Held: @unchecked Sendable {
        weak var object: NSObject?
        weak var delegate: NSObject?
    }

    /// Counts pieces of the body.
    private final class OldDelegate: NSObject, NSURLConnectionDataDelegate, NSURLDownloadDelegate, @unchecked Sendable {
        let begun: Counter
        init(_ begun: Counter) { self.begun = begun }
        func connection(_ connection: NSURLConnection, didReceive data: Data) { begun.add() }
        func download(_ download: NSURLDownload, didReceiveDataOfLength length: Int) { begun.add() }
    }

    @Test(
        "a connection or a download that is cancelled is released although its run loop does not run again",
        arguments: ["connection", "download"], [true, false])
    func withoutRunLoop(_ kind: String, _ isBegun: Bool) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: 1000), .stall)]) { _ in .ok(.repeated(count: 2000)) }
            let request = URLRequest(url: origin.url())
            let held = Held()
            let over = Counter()
            Thread.detachNewThread {
                let begun = Counter()
                let delegate = OldDelegate(begun)
                if kind == "connection" {
                    let connection = NSURLConnection(request: request, delegate: delegate)
                    (held.object, held.delegate) = (connection, delegate)
                    if isBegun { begun.runLoop() }
                    connection?.cancel()
                } else {
                    let download = NSURLDownload(request: request, delegate: delegate)
                    (held.object, held.delegate) = (download, delegate)
                    if isBegun { begun.runLoop() }
                    download.cancel()
                }
                over.add()
            }
            await over.reaches(1)
            try await eventually(held.object == nil && held.delegate == nil) { $0 }
            origin.releaseStalls()
            try await origin.wait { $0.open == 0 }
        }
    }
}

/// Not run beside the tests that measure idle times.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ClassicKindsStressTests {
    @Test("64 threads create, resume, use, cancel and invalidate tasks of every kind at once")
    func storm() async throws {
        try await withHTTPTestServer(serving: LeakRows.routes) { origin in
            let over = Counter()
            let sessions = 16
            let rounds = 4
            let done = Counter()
            let begun = Counter()
            for number in 0..<sessions {
                let session = URLSession(
                    configuration: .ephemeral, delegate: LeakRows.Delegate(done, begun, turns: number % 2 == 0),
                    delegateQueue: nil)
                for thread in 0..<4 {
                    Thread.detachNewThread {
                        var random = SeededGenerator(seed: UInt64(number * 4 + thread))
                        for _ in 0..<rounds {
                            for kind in LeakRows.Kind.allCases {
                                let path = Bool.random(using: &random) ? "/" : "/stall"
                                let task = LeakRows.make(kind, session, origin, path)
                                if Bool.random(using: &random) { _ = task.progress.fractionCompleted }
                                task.resume()
                                (task as? URLSessionWebSocketTask)?.send(.string("a")) { _ in }
                                (task as? URLSessionStreamTask)?.write(Data("a".utf8), timeout: 0) { _ in }
                                switch Int.random(in: 0..<5, using: &random) {
                                case 0:
                                    task.suspend()
                                    task.resume()
                                case 1: (task as? URLSessionWebSocketTask)?.cancel(with: .goingAway, reason: nil)
                                case 2: (task as? URLSessionDownloadTask)?.cancel { _ in }
                                case 3: (task as? URLSessionStreamTask)?.captureStreams()
                                default: break
                                }
                                if Bool.random(using: &random) { task.progress.cancel() }
                                if Bool.random(using: &random) { task.cancel() }
                                _ = (
                                    task.state, task.countOfBytesReceived, task.response, task.error,
                                    task.currentRequest
                                )
                            }
                        }
                        session.getAllTasks { _ in }
                        session.invalidateAndCancel()
                        over.add()
                    }
                }
            }
            await over.reaches(sessions * 4)
            origin.releaseStalls()
            try await origin.wait { $0.open == 0 }
            #expect(done.value >= sessions)
        }
    }
}
