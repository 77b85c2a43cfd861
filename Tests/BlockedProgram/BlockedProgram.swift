// SPDX-License-Identifier: Apache-2.0

// A program that blocks threads until loads of the classic API have ended, as programs do that were written before
// async functions. Each scene ends with the exit code 0, or with SIGALRM after its limit.
//
//   BlockedProgram SCENE ORIGIN [SECURE ORIGIN, WEBSOCKET URL]

import Foundation
import Glibc
import Synchronization
import URLLoading
import URLLoadingCompatibility

let arguments = CommandLine.arguments
let origin = arguments.count > 2 ? URL(string: arguments[2]) ?? nowhere : nowhere
private let nowhere = URL(fileURLWithPath: "/nowhere")

@main
enum BlockedProgram {
    private static let scenes: [String: @Sendable () -> Void] = [
        "tasks": tasksThatWait, "everything": everyKindOfLoad, "deinit": objectsThatLoadInDeinit,
        "queue": blockedDelegateQueue, "protocols": protocolClassesThatLoad, "cache": cacheThatLoads,
        "modern": modernLoad, "unread": unreadBody, "descriptors": noDescriptors,
    ]

    static func main() {
        guard arguments.count > 2, let scene = scenes[arguments[1]] else { exit(64) }
        alarm(100)
        scene()
        print("done")
    }
}

/// Blocks more tasks of every priority than the pool has threads.
private func blockPool(until end: DispatchSemaphore) {
    let begun = DispatchSemaphore(value: 0)
    let count = ProcessInfo.processInfo.activeProcessorCount
    for priority in [TaskPriority.high, .medium, .low, .background] {
        for _ in 0..<count { Task.detached(priority: priority) { hold(begun, end) } }
        for _ in 0..<count { begun.wait() }
        // These wait in the pool's queue: it has no free thread.
        for _ in 0..<count { Task.detached(priority: priority) { hold(begun, end) } }
    }
}

/// Blocks the calling thread. Not async, as Swift forbids a semaphore's wait in async code.
private func hold(_ begun: DispatchSemaphore, _ end: DispatchSemaphore) {
    begun.signal()
    end.wait()
    end.signal()
}

/// Blocks the calling thread until async work has ended.
private func wait(for work: @escaping @Sendable () async -> Void) {
    let done = DispatchSemaphore(value: 0)
    Task.detached {
        await work()
        done.signal()
    }
    done.wait()
}

private func expect(_ isSo: Bool, _ what: String) {
    guard !isSo else { return }
    FileHandle.standardError.write(Data("\(what)\n".utf8))
    exit(1)
}

/// Loads a URL while it blocks the calling thread.
@discardableResult
private func loadNow(_ url: URL, _ session: URLSession = .shared) -> Data? {
    let done = DispatchSemaphore(value: 0)
    let result = Mutex<Data?>(nil)
    session.dataTask(with: url) { data, _, _ in
        result.withLock { $0 = data }
        done.signal()
    }.resume()
    done.wait()
    return result.withLock { $0 }
}

// MARK: Scenes

/// Every thread of the pool, and the main thread, waits for a load.
private func tasksThatWait() {
    let left = DispatchSemaphore(value: 0)
    let count = 2 * ProcessInfo.processInfo.activeProcessorCount
    for _ in 0..<count {
        Task.detached {
            loadNow(origin)
            left.signal()
        }
    }
    loadNow(origin)
    for _ in 0..<count { left.wait() }
}

/// Each kind of load, with delegates and completion handlers, while the pool is blocked.
private func everyKindOfLoad() {
    guard arguments.count >= 5, let secure = URL(string: arguments[3]), let chat = URL(string: arguments[4]) else {
        exit(64)
    }
    let end = DispatchSemaphore(value: 0)
    blockPool(until: end)
    let delegate = Delegate()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)

    expect(loadNow(origin) == Data("plain".utf8), "a data task")
    expect(delegate.load(session.dataTask(with: secure)) == "secure", "a data task with a challenge")
    expect(delegate.load(session.dataTask(with: origin.appending(path: "moved"))) == "plain", "a redirect")

    var request = URLRequest(url: origin.appending(path: "echo"))
    request.httpMethod = "POST"
    request.httpBodyStream = InputStream(data: Data("from a stream".utf8))
    expect(delegate.load(session.dataTask(with: request)) == "from a stream", "a body stream")
    request.httpBodyStream = nil
    expect(delegate.load(session.uploadTask(with: request, from: Data("data".utf8))) == "data", "an upload")
    expect(delegate.load(session.downloadTask(with: origin)) == "plain", "a download")

    var response: URLResponse?
    let data = try? NSURLConnection.sendSynchronousRequest(URLRequest(url: origin), returning: &response)
    expect(data == Data("plain".utf8), "a synchronous request")

    let done = DispatchSemaphore(value: 0)
    let socket = session.webSocketTask(with: chat)
    socket.resume()
    socket.send(.string("hello")) { _ in done.signal() }
    socket.sendPing { _ in done.signal() }
    socket.receive { _ in done.signal() }
    for _ in 0..<3 { done.wait() }
    socket.cancel(with: .normalClosure, reason: nil)

    var delayed = session.dataTask(with: origin)
    delayed.earliestBeginDate = Date(timeIntervalSinceNow: 0.1)
    expect(delegate.load(delayed) == "plain", "a delayed task")
    delayed = session.dataTask(with: origin)

    session.flush { done.signal() }
    session.getAllTasks { _ in done.signal() }
    for _ in 0..<2 { done.wait() }
    session.invalidateAndCancel()
    delegate.invalidated.wait()
    end.signal()
}

/// An object's deinit loads, wherever its last reference is released: here that of a completion handler and that of a
/// delegate.
private func objectsThatLoadInDeinit() {
    let count = 8
    let ended = DispatchSemaphore(value: 0)
    for index in 0..<count {
        let object = LoadsInDeinit(ended)
        URLSession.shared.dataTask(with: origin) { _, _, _ in _ = object }.resume()
        let delegate = HoldingDelegate(LoadsInDeinit(ended))
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        let task = session.dataTask(with: origin)
        task.delegate = HoldingDelegate(LoadsInDeinit(ended))
        task.resume()
        if index % 2 == 0 { session.finishTasksAndInvalidate() } else { session.invalidateAndCancel() }
    }
    for _ in 0..<3 * count { ended.wait() }
}

/// A session whose delegate queue is blocked delays no other session.
private func blockedDelegateQueue() {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    let end = DispatchSemaphore(value: 0)
    queue.addOperation { end.wait() }
    let session = URLSession(configuration: .ephemeral, delegate: nil, delegateQueue: queue)
    let done = DispatchSemaphore(value: 0)
    for _ in 0..<4 { session.dataTask(with: origin) { _, _, _ in done.signal() }.resume() }
    for _ in 0..<4 { loadNow(origin) }
    end.signal()
    for _ in 0..<4 { done.wait() }
}

/// A `URLProtocol` class loads while it is asked whether it handles a request, while it begins, and while it ends.
private func protocolClassesThatLoad() {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [LoadingProtocol.self]
    let session = URLSession(configuration: configuration)
    let done = DispatchSemaphore(value: 0)
    for _ in 0..<8 { session.dataTask(with: origin) { _, _, _ in done.signal() }.resume() }
    for _ in 0..<8 { done.wait() }
}

/// A subclass of `URLCache` loads while it is asked.
private func cacheThatLoads() {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = LoadingCache(memoryCapacity: 1 << 20, diskCapacity: 0)
    let session = URLSession(configuration: configuration)
    let done = DispatchSemaphore(value: 0)
    for _ in 0..<8 { session.dataTask(with: origin.appending(path: "kept")) { _, _, _ in done.signal() }.resume() }
    for _ in 0..<8 { done.wait() }
}

/// A load of the modern API waits for the pool; a debug build says so.
private func modernLoad() {
    let end = DispatchSemaphore(value: 0)
    let session = Session(.ephemeral)
    let task = session.dataTask(from: origin)
    blockPool(until: end)
    task.resume()
    // The time after which a debug build reports the blocked pool, and more.
    Thread.sleep(forTimeInterval: 4)
    end.signal()
    wait { _ = try? await task.value }
}

/// A task whose body is not read; a debug build says so after five seconds.
private func unreadBody() {
    let session = Session(.ephemeral)
    let task = session.dataTask(from: origin.appendingPathComponent("large"))
    task.resume()
    wait { _ = try? await task.response }
    Thread.sleep(forTimeInterval: 7)
    task.cancel()
}

/// The first load of a process without a free descriptor fails; later ones succeed when there are some.
private func noDescriptors() {
    // Dispatch ends the process if its queues of timers get no descriptors: they get theirs first.
    let timer = DispatchSemaphore(value: 0)
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { timer.signal() }
    timer.wait()
    // RLIMIT_NOFILE, which glibc's module does not give as a number of this type.
    var limit = rlimit(rlim_cur: 64, rlim_max: 64)
    guard setrlimit(__rlimit_resource_t(7), &limit) == 0 else { exit(2) }
    var held: [Int32] = []
    while case let descriptor = open("/dev/null", O_RDONLY), descriptor >= 0 { held.append(descriptor) }
    let session = Session(.ephemeral)
    wait { if (try? await session.data(from: origin)) != nil { exit(3) } }
    for descriptor in held.suffix(24) { close(descriptor) }
    // The polling thread tries again by itself.
    Thread.sleep(forTimeInterval: 0.5)
    wait {
        do { _ = try await session.data(from: origin) } catch {
            FileHandle.standardError.write(Data("\(error)\n".utf8))
            exit(4)
        }
    }
    if loadNow(origin) == nil { exit(5) }
}

// MARK: The program's objects

private final class Delegate: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate {
    let invalidated = DispatchSemaphore(value: 0)
    private let done = DispatchSemaphore(value: 0)
    private let body = Mutex(Data())

    /// Runs a task and blocks until its last call; returns the body.
    func load(_ task: URLSessionTask) -> String {
        body.withLock { $0 = Data() }
        task.resume()
        done.wait()
        return body.withLock { String(decoding: $0, as: UTF8.self) }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { invalidated.signal() }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let trust = challenge.protectionSpace.serverTrust else {
            return completionHandler(.performDefaultHandling, nil)
        }
        completionHandler(.useCredential, URLCredential(trust: trust))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) { completionHandler(request) }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        body.withLock { $0 += data }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        body.withLock { $0 = (try? Data(contentsOf: location)) ?? Data() }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error { FileHandle.standardError.write(Data("\(error)\n".utf8)) }
        if !(task is URLSessionWebSocketTask) { done.signal() }
    }
}

private final class LoadsInDeinit: Sendable {
    private let ended: DispatchSemaphore
    /// A session of its own: the objects are released in calls that occupy the delegate queue of their session.
    private static let session = URLSession(configuration: .ephemeral)
    init(_ ended: DispatchSemaphore) { self.ended = ended }
    deinit {
        loadNow(origin, Self.session)
        ended.signal()
    }
}

private final class HoldingDelegate: NSObject, URLSessionDataDelegate {
    private let object: LoadsInDeinit
    init(_ object: LoadsInDeinit) { self.object = object }
}

private final class LoadingProtocol: URLProtocol, @unchecked Sendable {
    override class func canInit(with request: URLRequest) -> Bool { loadNow(origin) != nil }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest {
        loadNow(origin)
        return request
    }
    override func startLoading() {
        let data = loadNow(origin) ?? Data()
        guard let url = request.url else { return }
        let response = URLResponse(
            url: url, mimeType: nil, expectedContentLength: data.count, textEncodingName: nil)
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: data)
        client?.urlProtocolDidFinishLoading(self)
    }
    override func stopLoading() { loadNow(origin) }
}

private final class LoadingCache: URLCache, @unchecked Sendable {
    override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        loadNow(origin)
        return super.cachedResponse(for: request)
    }
    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        loadNow(origin)
        super.storeCachedResponse(cachedResponse, for: request)
    }
}
