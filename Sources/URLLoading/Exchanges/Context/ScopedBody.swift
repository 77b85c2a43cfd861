// SPDX-License-Identifier: Apache-2.0

// The body of an exchange, as a caller's closure or a handler reads it.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// Guards the body of an exchange in the caller's hands: one reader at a time, none after the scope.
final class ScopedBody: BodySource {
    private let exchange: any Exchange
    /// True if a handler reads the body in order to answer with another one: its bytes are not those of the load's
    /// body.
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
        do throws(LoadError) {
            let chunk = try await next(load)
            if chunk == nil { keepTrailers() }
            return chunk
        } catch { throw load.handle.worded(error) }
    }

    private func next(_ load: LoadContext) async throws(LoadError) -> Chunk? {
        guard isInside else {
            let chunk = try await exchange.next()
            if let chunk { load.received(chunk.count) }
            return chunk
        }
        guard let scope = load.handlerScope, load.enter(scope) else {
            throw LoadError(load.stopReason ?? .cancelled, phase: .receiving)
        }
        defer { scope.leave() }
        return try await exchange.next()
    }

    private func enter() throws(LoadError) {
        guard move(from: .idle, to: .reading) else { throw .bodyUnavailable }
    }

    /// If the body was closed during the read, the reader releases the exchange and ends the load.
    private func leave(_ load: LoadContext) {
        guard !move(from: .reading, to: .idle) else { return }
        exchange.release()
        load.end(LoadError(.cancelled, phase: .receiving, party: .local).at(response.url))
    }

    private func keepTrailers() {
        let trailers = exchange.trailers
        if !trailers.isEmpty { finalTrailers.withLock { $0 = trailers } }
    }

    /// Prevents further reads. Returns false if a read is in progress: it is woken, and ends the load.
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
