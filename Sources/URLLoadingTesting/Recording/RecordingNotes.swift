// SPDX-License-Identifier: Apache-2.0

// The exchanges of a recorder, and the part of a single load.

import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingWire

/// All exchanges of one recorder.
final class Notes: Sendable {
    private struct State: Sendable {
        var exchanges: [Recording.Exchange] = []
        /// The moment to which all times are relative.
        var beginning: Int64?
        /// The number of calls of this library in progress.
        var inside = 0
    }
    private let state = Lock(State())

    var recording: Recording { state.withLock { Recording($0.exchanges) } }
    var isBusy: Bool { state.withLock { $0.inside > 0 } }
    func enter() { state.withLock { $0.inside += 1 } }
    func leave() { state.withLock { $0.inside -= 1 } }

    /// Adds an exchange; returns its index, in the order of beginning.
    func begin(_ exchange: Recording.Exchange, _ clock: LoopClock) -> Int {
        state.withLock { state in
            let now = clock.now()
            let beginning = state.beginning ?? now
            state.beginning = beginning
            state.exchanges.append(exchange)
            state.exchanges[state.exchanges.endIndex - 1].began = .since(beginning, now)
            return state.exchanges.endIndex - 1
        }
    }

    /// Adds an exchange for the same request as another one; returns its index.
    func beginRepeated(_ place: Int, _ clock: LoopClock) -> Int {
        let first = state.withLock { $0.exchanges[place] }
        return begin(Recording.Exchange(first.method, first.url, headers: first.headers, body: first.body), clock)
    }

    /// Changes an exchange, passing the current time.
    func change(_ place: Int, _ clock: LoopClock, _ change: (inout Recording.Exchange, Duration) -> Void) {
        state.withLock { state in
            let now = clock.now()
            change(&state.exchanges[place], .since(state.beginning ?? now, now))
        }
    }
}

/// The exchanges of one request, of which the last one is in progress. Used by one task at a time, except `trailers`.
final class Note: Sendable {
    let notes: Notes
    private let clock: LoopClock
    private let bodyLimit: Int
    private let secrets: RecordedSecrets

    private struct State: Sendable {
        /// The index of the exchange in progress.
        var place: Int
        var sent = BodySum()
        var received: Int64 = 0
        var trailers = Headers()
    }
    private let state: Lock<State>

    init(_ notes: Notes, _ place: Int, _ clock: LoopClock, _ bodyLimit: Int, _ secrets: RecordedSecrets) {
        self.notes = notes
        state = Lock(State(place: place))
        self.clock = clock
        self.bodyLimit = bodyLimit
        self.secrets = secrets
    }

    /// The trailers as they arrived. They are passed on unchanged; secrets are removed only from the record.
    var trailers: Headers { state.withLock { $0.trailers } }

    private func change(_ change: (inout Recording.Exchange, Duration) -> Void) {
        notes.change(state.withLock { $0.place }, clock, change)
    }

    /// Begins another exchange, because the session repeats the request. The previous one stays open, because the
    /// session does not read the body of a refusal.
    func sendAgain() {
        let again = notes.beginRepeated(state.withLock { $0.place }, clock)
        state.withLock { $0.place = again }
    }

    // MARK: Request

    /// Begins recording the request body, which may be sent repeatedly.
    func beginBody() {
        state.withLock { $0.sent = BodySum() }
        change { exchange, _ in exchange.body = Recording.RequestBytes([]) }
    }

    func send(_ bytes: UnsafeRawBufferPointer) {
        let sum = state.withLock { state in
            state.sent.add(bytes)
            return state.sent
        }
        change { exchange, _ in exchange.body?.add(bytes, upTo: bodyLimit, of: sum) }
    }

    // MARK: Response

    func answer(_ answer: Recording.Response) {
        change { exchange, now in
            exchange.answer = answer
            exchange.answer?.at = now
        }
    }

    func receive(_ bytes: UnsafeRawBufferPointer) {
        let (before, total) = state.withLock { state in
            defer { state.received += Int64(bytes.count) }
            return (state.received, state.received + Int64(bytes.count))
        }
        let kept = bytes.prefix(max(0, bodyLimit - Int(min(before, Int64(bodyLimit)))))
        change { exchange, now in
            if !kept.isEmpty { exchange.answer?.pieces.append(Recording.Piece(Array(kept), at: now)) }
            if total > bodyLimit { exchange.answer?.fullLength = total }
        }
    }

    func end(_ trailers: Headers) {
        state.withLock { $0.trailers = trailers }
        change { exchange, now in
            exchange.answer?.trailers = secrets.stripped(trailers)
            exchange.ending = .complete(at: now)
        }
    }

    /// Records an error. A cancellation comes from the caller, so the exchange stays open.
    func fail(_ error: LoadError) {
        guard error.reason != .cancelled else { return }
        let failure = Recording.Failure(
            reason: error.reason, phase: error.phase, party: error.party,
            detail: error.detail.map { secrets.stripped($0) })
        change { exchange, now in exchange.ending = .failed(failure, at: now) }
    }
}

extension Duration {
    /// The time between two moments in the resolution of a recording: whole microseconds.
    static func since(_ beginning: Int64, _ now: Int64) -> Duration { .microseconds((now - beginning) / 1_000) }
}
