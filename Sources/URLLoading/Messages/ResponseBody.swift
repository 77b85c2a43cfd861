public import FoundationEssentials
import Synchronization
import URLLoadingIO
public import URLLoadingWire

/// The body of a response, as it comes: a sequence of chunks, pulled by whoever iterates.
///
/// Nothing is read from the socket that was not asked for, so a slow consumer slows the peer and
/// memory stays bounded. One consumer takes the body, once; a second gets
/// ``LoadError/Reason/bodyUnavailable``. A body that a closure received is valid inside that closure;
/// one of a ``LoadTask``, as long as the load goes on.
///
/// ```swift
/// for try await chunk in body {
///     file.write(Data(chunk))
/// }
/// ```
/// ``lines`` gives lines of text, ``bytes`` single bytes. Cancelling the load, or the task that
/// iterates, ends the iteration and the load with ``LoadError/Reason/cancelled``.
public struct ResponseBody: AsyncSequence, Sendable {
    public typealias Element = Chunk
    public typealias Failure = LoadError

    let source: any BodySource

    init(_ source: any BodySource) { self.source = source }

    public func makeAsyncIterator() -> Iterator { Iterator(source: source.claim() ? source : nil) }

    /// The pieces of one body.
    public struct Iterator: AsyncIteratorProtocol {
        let source: (any BodySource)?

        /// The next piece, never empty; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoadError) -> Chunk? {
            guard let source else { throw .bodyUnavailable }
            // In place where nobody is disturbed; off the actor where decoding would hold it up.
            if actor == nil { return try await source.next() }
            return try await Self.nextElsewhere(source)
        }

        /// The next piece, never empty; `nil` at the end.
        public mutating func next() async throws(LoadError) -> Chunk? {
            guard let source else { throw .bodyUnavailable }
            return try await Self.nextElsewhere(source)
        }

        @concurrent private static func nextElsewhere(_ source: any BodySource) async throws(LoadError) -> Chunk? {
            try await source.next()
        }
    }

    /// Collects what is left of the body.
    /// - Parameter limit: the most bytes to collect, at least 0. A longer body throws
    ///   ``LoadError/Reason/bodyTooLarge``.
    @concurrent public func collect(upTo limit: Int) async throws(LoadError) -> Data {
        guard source.claim() else { throw .bodyUnavailable }
        var data = Data()
        while let chunk = try await source.next() {
            guard chunk.count <= limit - data.count else { throw .tooLarge(limit) }
            data.append(chunk)
        }
        return data
    }

    /// The fields after a chunked body (RFC 9112 §7.1.2); empty until the body has been read to its end.
    public var trailers: Headers { source.trailers }
}

/// Where the chunks of a body come from, for one consumer.
protocol BodySource: AnyObject, Sendable {
    /// Returns true once.
    func claim() -> Bool
    /// The next piece; `nil` at the end.
    func next() async throws(LoadError) -> Chunk?
    var trailers: Headers { get }
    /// What its parts and events may cost.
    var limits: Configuration.Limits { get }
    /// What was loaded; `nil` for a body by itself.
    var url: URL? { get }
}

extension LoadError {
    static var bodyUnavailable: LoadError { LoadError(.bodyUnavailable, phase: .receiving, party: .local) }
}

/// Guards an exchange that a caller can pass around: one reader at a time, none after the scope.
final class ScopedBody: BodySource {
    private let exchange: any Exchange
    /// A handler reads it, to answer with something else: what comes through is not the load's body.
    private let isInside: Bool
    private let state = Atomic<UInt8>(State.idle.rawValue)
    private let isClaimed = Atomic<Bool>(false)
    private let finalTrailers = Lock(Headers())

    private enum State: UInt8 { case idle, reading, closed }

    init(_ exchange: any Exchange, isInside: Bool = false) {
        self.exchange = exchange
        self.isInside = isInside
    }

    var response: Response { exchange.response }
    var url: URL? { response.url }

    func claim() -> Bool { !isClaimed.exchange(true, ordering: .acquiringAndReleasing) }

    var trailers: Headers { finalTrailers.withLock { $0 } }

    var limits: Configuration.Limits { exchange.load?.core.configuration.limits ?? Configuration.Limits() }

    func next() async throws(LoadError) -> Chunk? {
        guard let load = exchange.load else { throw .bodyUnavailable }
        try enter()
        defer { leave(load) }
        let chunk = try await next(load)
        if chunk == nil { keepTrailers() }
        return chunk
    }

    private func next(_ load: LoadContext) async throws(LoadError) -> Chunk? {
        guard isInside else {
            let chunk = try await exchange.next()
            if let chunk { load.received(chunk.count) }
            return chunk
        }
        guard let scope = load.handlerScope, scope.enter() else {
            throw LoadError(load.stopReason ?? .cancelled, phase: .receiving)
        }
        defer { scope.leave() }
        return try await exchange.next()
    }

    private func enter() throws(LoadError) {
        guard move(from: .idle, to: .reading) else { throw .bodyUnavailable }
    }

    /// Closed while we read: the last one out releases, and ends the load.
    private func leave(_ load: LoadContext) {
        guard !move(from: .reading, to: .idle) else { return }
        exchange.release()
        load.end(LoadError(.cancelled, phase: .receiving, party: .local).at(response.url))
    }

    private func keepTrailers() {
        let trailers = exchange.trailers
        if !trailers.isEmpty { finalTrailers.withLock { $0 = trailers } }
    }

    /// No more reads. Returns false if somebody is inside one: he is woken, and ends the load.
    func close() -> Bool {
        switch State(rawValue: state.exchange(State.closed.rawValue, ordering: .acquiringAndReleasing)) {
        case .reading:
            exchange.load?.stop(.cancelled)
            return false
        case .idle: exchange.release()
        case .closed, nil: break
        }
        return true
    }

    private func move(from: State, to: State) -> Bool {
        state.compareExchange(expected: from.rawValue, desired: to.rawValue, ordering: .acquiringAndReleasing).exchanged
    }
}
