// SPDX-License-Identifier: Apache-2.0

// In this folder: the calls that are due to a delegate, as a value, and the lane on which they are made

// The calls due to a task's delegate or completion handler, as a value. The order of the calls is fixed,
// so each kind has one slot, and an event that arrives while a call of its kind is due is merged into that call. Every
// transition is one method, called under the lock of `TaskBridge`.
//
// Rule 1: the answer to `response` precedes every piece of the body; see `Gate`. Rule 2: `finished` is the last call
// and is made once.

import Foundation
import URLLoading

struct Mailbox: Sendable {
    /// Whether the lane is making the calls of this task, or is about to.
    private enum Turn: Sendable {
        case none
        /// An operation is queued, for the calls that were due when it was added.
        case queued
        /// An operation is queued, but the program has since changed which calls are due. The new calls must not run in
        /// it, because it may stand before operations that the program added before that change.
        case overtaken
        case running
    }

    /// Whether pieces of the body may be delivered.
    private enum Gate: Sendable {
        case open
        /// The delegate is still to be asked about this response.
        case due(URLResponse)
        /// The delegate was asked and has not answered yet. A load that was stopped may have received another response
        /// since.
        case held(next: URLResponse?)
    }

    /// The destination of the body.
    private enum BodyUse: Sendable {
        /// The completion handler, with the whole body at the end; no other call precedes it.
        case collected
        /// The delegate, piece by piece.
        case pieces
        /// A file, of which the delegate is still to be notified.
        case file
        /// The body is dropped: the delegate does not implement the method, or was already given the file.
        case discarded
    }

    /// Bytes of the body buffered before the load waits for the delegate.
    static let capacity = 1 << 20

    private var phase = Phase.running
    private var turn = Turn.none
    private var gate = Gate.open
    private var due = DueCalls()
    private var use: BodyUse
    private var body = Data()
    /// Bytes of the body that have not arrived; `nil` if the length is unknown.
    private var missing: Int64?
    /// Questions not yet put to the delegate. Usually at most one; a ``URLProtocol`` class may ask at the same time as
    /// its load.
    private var questions: [any Question] = []
    /// Questions that were put to the delegate and are not answered.
    private var asked: [any Question] = []
    private var metrics: LoadMetrics?
    /// Handlers that must return before the last call is made.
    private var handlersToCome = 0
    private var waiter: UnsafeContinuation<Void, Never>?

    /// The receiver of a task's result.
    enum Receiver: Sendable {
        /// A completion handler.
        case handler
        /// A delegate, which gets the pieces of the body.
        case delegate
        /// The delegate of a download, which is shown the file.
        case downloadDelegate
    }

    init(_ receiver: Receiver) {
        use =
            switch receiver {
            case .handler: .collected
            case .delegate: .pieces
            case .downloadDelegate: .file
            }
    }

    // MARK: State

    /// Whether the delegate was asked about the response and has not answered yet.
    var isHeld: Bool { if case .held = gate { true } else { false } }

    /// Whether the load has ended.
    var hasEnded: Bool { phase.hasEnded }

    /// Whether the last call was made.
    var isOver: Bool { phase.isOver }

    /// The error that ended the task; `nil` until the task is over, and after success.
    var error: LoadError? { if case .over(let error) = phase { error } else { nil } }

    var collectedCount: Int { use == .collected ? body.count : 0 }

    // MARK: From the load

    mutating func putWaiting() { due.isWaiting = phase.isOpen }

    /// Adds an informational (1xx) response. The connection limits how many of these a server may send.
    mutating func put(informational response: HTTPURLResponse) {
        guard phase.isOpen else { return }
        due.informational.append(DueCalls.Informational(sentBefore: due.sent.take(), response: response))
    }

    mutating func put(sent bytes: TransferProgress) {
        if phase.isOpen { due.sent = Self.merged(due.sent, bytes) }
    }

    mutating func put(written bytes: TransferProgress) {
        if phase.isOpen { due.written = Self.merged(due.written, bytes) }
    }

    private static func merged(_ before: TransferProgress?, _ bytes: TransferProgress) -> TransferProgress {
        let restarted = bytes.total < before?.total ?? 0
        let count = bytes.count + (restarted ? 0 : before?.count ?? 0)
        return TransferProgress(count: count, total: bytes.total, expected: bytes.expected)
    }

    mutating func put(resumedAt offset: Int64, expected: Int64?) {
        if phase.isOpen { due.resumed = (offset, expected) }
    }

    mutating func put(conversation call: Call) { if phase.isOpen { due.conversation.append(call) } }

    mutating func put(_ metrics: LoadMetrics) { self.metrics = metrics }

    /// Adds a question. Returns false if it will not be answered because the load has ended, was stopped, or has
    /// failed.
    mutating func put(_ question: any Question) -> Bool {
        guard case .running = phase else { return false }
        questions.append(question)
        return true
    }

    /// Adds a response; subsequent pieces of the body belong to it.
    /// - Parameter isObserved: whether the delegate implements the method for pieces, or the body is collected for the
    ///   handler.
    /// - Parameter isAsked: whether the delegate is still to be asked about the response.
    mutating func put(_ response: URLResponse, isObserved: Bool, isAsked: Bool = true) {
        asked = []
        guard phase.isOpen else { return }
        if use != .collected, use != .file { use = isObserved ? .pieces : .discarded }
        missing = response.expectedContentLength >= 0 ? response.expectedContentLength : nil
        guard use == .pieces, isAsked else { return }
        if isHeld { gate = .held(next: response) } else { gate = .due(response) }
    }

    /// Adds a piece of the body. Returns false if the load must wait until the piece was delivered.
    mutating func put(_ chunk: Chunk) -> Bool {
        guard use != .discarded, phase.isOpen else { return true }
        missing? -= Int64(chunk.count)
        if use == .collected, body.isEmpty, let missing, missing > 0 {
            body.reserveCapacity(chunk.count + Int(min(missing, 4 << 20)))
        }
        if body.isEmpty, missing ?? 0 <= 0 { body = Data(chunk) } else { body.append(chunk) }
        if use == .collected || missing == 0 { return true }
        // One piece is accepted before the delegate's answer, because it may be the whole body.
        guard case .open = gate else { return body.count == chunk.count }
        // The next piece has at most half the capacity, which is what a connection gathers of a fast body.
        return body.count <= Self.capacity / 2
    }

    /// Adds a piece of a body part, which is delivered before the next part. Returns false if the load must wait.
    mutating func put(_ data: Data) -> Bool {
        guard use != .discarded, phase.isOpen else { return true }
        body.append(data)
        guard case .open = gate else { return false }
        return body.count <= Self.capacity
    }

    /// Records the end of the load. If the task has already failed, its first error stays.
    mutating func finish(_ error: LoadError?) { phase.finish(error) }

    /// Ends the task for its caller: calls that are due are dropped, except the last ones, and that with which the
    /// delegate meets the task that this one has become. The first error counts.
    mutating func fail(_ error: LoadError) -> Released {
        guard !isOver else { return Released() }
        phase.fail(error)
        overtake()
        (due, gate, body) = (DueCalls(turned: due.turned), .open, Data())
        var released = release()
        if case .becameStream(let successor)? = due.turned { released.successor = successor }
        return released
    }

    // MARK: Waiters

    /// Stores the continuation of a waiting load. Returns false if there is no reason to wait.
    mutating func wait(_ continuation: UnsafeContinuation<Void, Never>) -> Bool {
        guard case .running = phase else { return false }
        if case .open = gate, body.isEmpty { return false }
        waiter = continuation
        return true
    }

    /// Stops the load: it does not wait for the delegate any more. Events that have arrived are still delivered.
    mutating func stop() -> Released {
        phase.stop()
        return release()
    }

    private mutating func release() -> Released {
        defer { (waiter, questions, asked) = (nil, [], []) }
        return Released(waiter: waiter, questions: questions + asked)
    }

    // MARK: Answers and handlers

    /// Records the delegate's answer about the response.
    mutating func answered() {
        guard case .held(let next) = gate else { return }
        overtake()
        gate = next.map { .due($0) } ?? .open
    }

    /// Makes the last call wait for one more handler.
    mutating func awaitHandler() { handlersToCome += 1 }
    /// Records that a handler has returned for which the last call waits.
    mutating func handlerReturned() { handlersToCome -= 1 }

    /// Holds back the body as if the delegate had been asked about the response and had not answered.
    mutating func hold() {
        guard phase.isOpen else { return }
        if case .due(let response) = gate { gate = .held(next: response) } else { gate = .held(next: nil) }
    }

    /// Turns the task into a download: the body goes into a file from now on. Delivery is held until `answered()` is
    /// called.
    mutating func turn(_ call: Call) {
        due.turned = call
        use = .file
    }

    /// Adds the last call of a task whose connection another task has. It is made even if the task was cancelled,
    /// because its load reports no end.
    mutating func surrender(_ call: Call) { due.turned = call }

    /// Returns the buffered bytes of the body, and the waiter to resume once they are written.
    mutating func takeBody() -> (Data, UnsafeContinuation<Void, Never>?) {
        defer { (body, waiter) = (Data(), nil) }
        return (body, waiter)
    }

    /// Returns the whole body for the completion handler.
    mutating func takeCollected() -> Data {
        defer { body = Data() }
        return body
    }
}

// MARK: - Calls

extension Mailbox {
    /// Returns whether the lane must be notified that calls are due.
    mutating func schedule() -> Bool {
        guard case .none = turn, !isOver else { return false }
        turn = .queued
        return true
    }

    /// Begins an operation's turn on the lane. Returns whether calls may be made in it.
    mutating func beginTurn() -> Bool {
        if case .overtaken = turn {
            turn = .queued
            return false
        }
        turn = .running
        return true
    }

    /// Ends an operation's turn. Returns whether calls are due for another operation.
    mutating func endTurn() -> Bool {
        var rest = self
        let hasMore = rest.nextCall() != nil
        turn = hasMore ? .queued : .none
        return hasMore
    }

    private mutating func overtake() { if case .queued = turn { turn = .overtaken } }

    /// Returns the next call, and the waiter to resume when it was made; `nil` if no call is due now.
    mutating func next() -> (call: Call, waiter: UnsafeContinuation<Void, Never>?)? {
        guard let call = nextCall() else {
            turn = .none
            return nil
        }
        guard case .data = call else { return (call, nil) }
        defer { waiter = nil }
        return (call, waiter)
    }

    /// Returns the waiter to resume when no call is due: the load waited for an answer without any data buffered.
    mutating func takeIdle() -> UnsafeContinuation<Void, Never>? {
        guard case .open = gate, body.isEmpty else { return nil }
        defer { waiter = nil }
        return waiter
    }

    private mutating func nextCall() -> Call? {
        guard !isOver else { return nil }
        if due.isWaiting {
            due.isWaiting = false
            return .waiting
        }
        if let first = due.informational.indices.first {
            if let sent = due.informational[first].sentBefore.take() { return .sent(sent) }
            return .informational(due.informational.removeFirst().response)
        }
        if let sent = due.sent.take() { return .sent(sent) }
        if let place = questions.firstIndex(where: { !$0.comesLast }) { return nextQuestion(place) }
        if let turned = due.turned.take() {
            if case .becameStream = turned { handOver() }
            return turned
        }
        switch gate {
        case .held: return nil
        case .due(let response):
            gate = .held(next: nil)
            return .response(response)
        case .open: return nextUnheld()
        }
    }

    /// Returns the next call that waits for the answer to the response.
    private mutating func nextUnheld() -> Call? {
        if let (offset, expected) = due.resumed.take() { return .resumed(offset: offset, expected: expected) }
        if let written = due.written.take() { return .written(written) }
        if use == .pieces, !body.isEmpty {
            defer { body = Data() }
            return .data(body)
        }
        if !questions.isEmpty { return nextQuestion(0) }
        if !due.conversation.isEmpty { return nextConversationCall() }
        guard handlersToCome == 0 else { return nil }
        switch phase {
        case .ended(let error): return last(error)
        case .endedFailed(let error): return last(error)
        case .running, .stopped, .failed, .over, .handedOver: return nil
        }
    }

    private mutating func nextQuestion(_ place: Int) -> Call {
        let question = questions.remove(at: place)
        asked.append(question)
        return .question(question)
    }

    private mutating func nextConversationCall() -> Call {
        let call = due.conversation.removeFirst()
        if case .captured = call { handOver() }
        return call
    }

    private mutating func handOver() {
        phase.handOver()
        asked = []
    }

    /// Returns the next call after the end of a load: the file, the metrics, the end.
    private mutating func last(_ error: LoadError?) -> Call {
        if use == .file, error == nil {
            use = .discarded
            return .saved
        }
        if let metrics = metrics.take() { return .metrics(metrics) }
        phase = .over(error)
        // Questions retain their task; releasing them breaks the cycle.
        asked = []
        return .finished(error)
    }
}
