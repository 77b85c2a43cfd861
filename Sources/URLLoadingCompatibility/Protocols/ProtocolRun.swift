// SPDX-License-Identifier: Apache-2.0

// Runs one object of a `URLProtocol` class. Its callbacks, from any thread, are queued; the load takes them from the
// queue no faster than the program reads. The object itself is accessed on one serial queue only.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

final class ProtocolRun: NSObject, URLProtocolClient, Sendable {
    /// The request that the classes were asked about and for which the object is created.
    @TaskLocal static var asked: URLRequest?

    enum Event: Sendable {
        case response(URLResponse, URLCache.StoragePolicy)
        case data(Data)
        case redirect(URLRequest, URLResponse)
        case end
        case failure(any Error)
    }

    private struct State: Sendable {
        var events: [Event] = []
        /// The bytes of the body in `events` and in `early`.
        var waitingBytes = 0
        /// Pieces of the body that arrived before the response.
        var early: [Data] = []
        var hasResponse = false
        /// Whether the protocol has reported its end.
        var isOver = false
        /// Whether the load does not need further events.
        var isStopped = false
        var isBlocked = false
        var reader: UnsafeContinuation<Void, Never>?
        var challenges: [URLAuthenticationChallenge] = []
        var isAsking = false

        /// Keeps a piece of the body until there is a response.
        mutating func keep(_ piece: Data) {
            early.append(piece)
            waitingBytes += piece.count
        }

        /// Takes the pieces that arrived before the response; they are no longer counted as waiting.
        mutating func takeEarly() -> [Event] {
            defer { early = [] }
            waitingBytes -= early.reduce(0) { $0 + $1.count }
            return early.map { .data($0) }
        }

        /// Appends a piece of the body. Consecutive pieces are merged up to 16 KiB, which bounds their number.
        mutating func append(_ piece: Data) {
            guard case .data(var last)? = events.last, last.count + piece.count <= 16 << 10 else {
                return events.append(.data(piece))
            }
            events.removeLast()
            last.append(piece)
            events.append(.data(last))
        }
    }
    private let state = Lock(State())
    private let queue = DispatchQueue(label: "URLProtocol")
    private static let place = DispatchSpecificKey<ObjectIdentifier>()
    private let room = DispatchSemaphore(value: 0)
    // The protocol object. Accessed on `queue` only.
    nonisolated(unsafe) private var loader: URLProtocol?
    private let kind: URLProtocol.Type
    private let request: URLRequest
    private let task: URLSessionTask
    private let cached: CachedURLResponse?
    let bridge: TaskBridge
    /// Bytes buffered before the protocol object has to wait.
    private static let capacity = 1 << 20

    init(
        _ bridge: TaskBridge, _ kind: URLProtocol.Type, _ request: URLRequest, _ task: URLSessionTask,
        _ cached: CachedURLResponse?
    ) {
        (self.bridge, self.kind, self.request, self.task, self.cached) = (bridge, kind, request, task, cached)
    }

    // MARK: Life cycle

    private func start() {
        queue.setSpecific(key: Self.place, value: ObjectIdentifier(self))
        queue.async { [self] in
            guard !state.withLock({ $0.isStopped }) else { return }
            let loader = Self.$asked.withValue(request) { kind.init(task: task, cachedResponse: cached, client: self) }
            self.loader = loader
            loader.startLoading()
        }
    }

    /// Stops the protocol object, once, at any kind of end.
    func stop() {
        let (isFirst, isBlocked, reader) = state.withLock { state in
            defer { (state.isStopped, state.isOver, state.isBlocked) = (true, true, false) }
            return (!state.isStopped, state.isBlocked, state.reader.take())
        }
        reader?.resume()
        if isBlocked { room.signal() }
        guard isFirst else { return }
        queue.async { [self] in
            loader?.stopLoading()
            loader = nil
        }
    }

    /// Returns the protocol's answer, up to its response.
    func answer() async throws -> ProtocolResponse {
        start()
        while true {
            switch await next() {
            case .response(let response, let policy)?:
                return .response(response.core(answering: request), body: ProtocolBody(self, response, policy))
            case .redirect(let other, let response)?:
                stop()
                return try await redirect(to: other, response)
            case .failure(let error)?:
                stop()
                throw ProtocolFailure(error)
            case .data?, .end?: break
            case nil: throw CancellationError()
            }
        }
    }

    private func redirect(to other: URLRequest, _ response: URLResponse) async throws -> ProtocolResponse {
        var made = try Request.make(other, bridge.cachePolicy).get()
        bridge.mark(&made)
        // The class may pass on the stream that it was given and has not read.
        let isUnread = await other.httpBodyStream?.isUnread == true
        bridge.state.withLock { state in
            state.next = other
            state.offerStream(of: other, insteadOf: isUnread ? nil : request)
        }
        return .redirect(response.core(answering: request, isRedirect: true), to: made)
    }

    /// Returns the next event; `nil` at the end of the load.
    func next() async -> Event? {
        while true {
            let (event, wasBlocked, isStopped) = state.withLock { state -> (Event?, Bool, Bool) in
                guard !state.isStopped, !state.events.isEmpty else { return (nil, false, state.isStopped) }
                let event = state.events.removeFirst()
                if case .data(let data) = event { state.waitingBytes -= data.count }
                let isFree = state.isBlocked && state.waitingBytes <= Self.capacity / 2
                if isFree { state.isBlocked = false }
                return (event, isFree, false)
            }
            if wasBlocked { room.signal() }
            if event != nil || isStopped { return event }
            await withTaskCancellationHandler {
                await withUnsafeContinuation { continuation in
                    let waits = state.withLock { state in
                        guard state.events.isEmpty, !state.isStopped else { return false }
                        state.reader = continuation
                        return true
                    }
                    if !waits { continuation.resume() }
                }
            } onCancel: {
                stop()
            }
        }
    }

    // MARK: Calls to the client

    /// - Returns: whether the buffer is full.
    @discardableResult
    private func put(_ make: (inout State) -> [Event]) -> Bool {
        let (reader, isFull) = state.withLock { state -> (UnsafeContinuation<Void, Never>?, Bool) in
            guard !state.isOver else { return (nil, false) }
            let events = make(&state)
            guard !events.isEmpty else { return (nil, false) }
            for case .data(let data) in events { state.waitingBytes += data.count }
            if case .data(let piece)? = events.first, events.count == 1 {
                state.append(piece)
            } else {
                state.events += events
            }
            return (state.reader.take(), state.waitingBytes > Self.capacity)
        }
        reader?.resume()
        return isFull
    }

    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
    ) {
        put { state in
            guard !state.hasResponse else { return [] }
            state.hasResponse = true
            return [.response(response, policy)] + state.takeEarly()
        }
    }

    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
        guard !data.isEmpty else { return }
        let limit = bridge.limit
        let isFull = put { state in
            guard state.waitingBytes <= limit - data.count else {
                state.isOver = true
                return [.failure(URLError.described(.dataLengthExceedsMaximum))]
            }
            guard state.hasResponse else {
                state.keep(data)
                return []
            }
            return [.data(data)]
        }
        // Only the protocol's own queue blocks. On another thread of the program, blocking might wait for that same
        // thread.
        if isFull, DispatchQueue.getSpecific(key: Self.place) == ObjectIdentifier(self) { waitForRoom() }
    }

    private func waitForRoom() {
        let waits = state.withLock { state in
            state.isBlocked = !state.isStopped && state.waitingBytes > Self.capacity
            return state.isBlocked
        }
        if waits { room.wait() }
    }

    func urlProtocolDidFinishLoading(_ protocol: URLProtocol) {
        put { state in
            state.isOver = true
            guard !state.hasResponse else { return [.end] }
            // A body without a response: the response is built from the known length.
            let length = state.early.reduce(0) { $0 + $1.count }
            let url = request.url ?? URL(fileURLWithPath: "/")
            let response = URLResponse(url: url, mimeType: nil, expectedContentLength: length, textEncodingName: nil)
            return [.response(response, .notAllowed)] + state.takeEarly() + [.end]
        }
    }

    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) {
        put { state in
            state.isOver = true
            return [.failure(error)]
        }
    }

    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse) {
        put { state in
            guard !state.hasResponse else { return [] }
            state.isOver = true
            return [.redirect(request, redirectResponse)]
        }
    }

    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {
        put { state in
            guard !state.hasResponse else { return [] }
            state.isOver = true
            let body: [Event] = cachedResponse.data.isEmpty ? [] : [.data(cachedResponse.data)]
            return [.response(cachedResponse.response, .notAllowed)] + body + [.end]
        }
    }

    // MARK: Challenges

    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
        let isFirst = state.withLock { state in
            guard !state.isOver else { return false }
            state.challenges.append(challenge)
            defer { state.isAsking = true }
            return !state.isAsking
        }
        // Runs in a task of its own, because the load may end before the delegate answers.
        if isFirst { Task.onLoop { await self.askAll() } }
    }

    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {
        state.withLock { $0.challenges.removeAll { $0 === challenge } }
    }

    private func askAll() async {
        while let challenge = nextChallenge() {
            let verdict = await bridge.verdict(challenge)
            let isWanted = state.withLock { state in
                guard !state.isOver, let place = state.challenges.firstIndex(where: { $0 === challenge }) else {
                    return false
                }
                state.challenges.remove(at: place)
                return true
            }
            if isWanted { queue.async { challenge.deliver(verdict) } }
        }
    }

    private func nextChallenge() -> URLAuthenticationChallenge? {
        state.withLock { state in
            let next = state.isOver ? nil : state.challenges.first
            state.isAsking = next != nil
            return next
        }
    }
}

/// The error of a protocol, unchanged.
struct ProtocolFailure: Error {
    let error: any Error
    init(_ error: any Error) { self.error = error }
}

extension URLAuthenticationChallenge {
    fileprivate func deliver(_ verdict: Verdict?) {
        guard let verdict else { return sender?.cancel(self) ?? () }
        switch verdict.disposition {
        case .useCredential:
            if let credential = verdict.credential {
                sender?.use(credential, for: self)
            } else {
                sender?.continueWithoutCredential(for: self)
            }
        case .performDefaultHandling: sender?.performDefaultHandling(for: self)
        case .cancelAuthenticationChallenge: sender?.cancel(self)
        case .rejectProtectionSpace: sender?.rejectProtectionSpaceAndContinue(with: self)
        }
    }
}
