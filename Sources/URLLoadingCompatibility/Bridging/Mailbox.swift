// The calls that a task's delegate or completion handler is due, as a value. The order of the calls is fixed (checklist
// 45), so each kind has one place, and what arrives while another call is due is merged into it. Every transition is one
// method, called under the lock of `TaskBridge`.
//
// Rule 1: the answer to `response` comes before any piece of the body; see `Gate`.
// Rule 2: `finished` is the last call, and made once.

import Foundation
import URLLoading

struct Mailbox: Sendable {
    /// Whether the lane makes the calls, or will.
    private enum Turn: Sendable {
        case none
        /// An operation is in the queue for the calls that were due when it was put there.
        case queued
        /// The same, but the program has changed since which calls are due: the new calls are not for that operation, which
        /// may stand before work that the program put into the queue before it made the change.
        case overtaken
        case running
    }

    /// Whether pieces of the body may be delivered.
    private enum Gate: Sendable {
        case open
        /// The delegate is to be asked about this response.
        case due(URLResponse)
        /// The delegate has been asked, and has not answered yet. A load that was stopped may have brought another response
        /// meanwhile.
        case held(next: URLResponse?)
    }

    /// Where the body goes.
    private enum BodyUse: Sendable {
        /// To a completion handler, whole, at the end; no other call is made before.
        case collected
        /// To the delegate, piece by piece.
        case pieces
        /// To a file, which the delegate is still to be shown.
        case file
        /// Nowhere: the delegate has no method for it, or has been shown the file.
        case discarded
    }

    /// Bytes of the body that may wait for the delegate.
    static let capacity = 1 << 20

    private var course = Course.running
    private var turn = Turn.none
    private var gate = Gate.open
    private var due = Due()
    private var use: BodyUse
    private var body = Data()
    /// Bytes of the body that have not arrived; `nil` if the length is unknown.
    private var missing: Int64?
    /// Questions that the delegate has not been asked. Mostly one: a class of ``URLProtocol`` may ask while its load does.
    private var questions: [any Question] = []
    /// Questions that the delegate has been asked.
    private var asked: [any Question] = []
    private var metrics: LoadMetrics?
    /// Handlers that must have been called before the last call is made.
    private var handlersToCome = 0
    private var waiter: UnsafeContinuation<Void, Never>?

    /// What the task gives its load to.
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

    /// The delegate was asked about the response and has not answered yet.
    var isHeld: Bool { if case .held = gate { true } else { false } }

    /// The load has ended.
    var hasEnded: Bool { course.hasEnded }

    /// The last call is made.
    var isOver: Bool { course.isOver }

    /// The error that ended the task; `nil` before its end, and if it succeeded.
    var error: LoadError? { if case .over(let error) = course { error } else { nil } }

    var collectedCount: Int { use == .collected ? body.count : 0 }

    // MARK: From the load

    mutating func putWaiting() { due.isWaiting = course.isOpen }

    /// The connection limits how many informational responses a server may send.
    mutating func put(informational response: HTTPURLResponse) {
        if course.isOpen { due.informational.append(response) }
    }

    mutating func put(sent bytes: TransferProgress) {
        if course.isOpen { due.sent = Self.together(due.sent, bytes) }
    }

    mutating func put(written bytes: TransferProgress) {
        if course.isOpen { due.written = Self.together(due.written, bytes) }
    }

    private static func together(_ before: TransferProgress?, _ bytes: TransferProgress) -> TransferProgress {
        let restarted = bytes.total < before?.total ?? 0
        let count = bytes.count + (restarted ? 0 : before?.count ?? 0)
        return TransferProgress(count: count, total: bytes.total, expected: bytes.expected)
    }

    mutating func put(resumedAt offset: Int64, expected: Int64?) {
        if course.isOpen { due.resumed = (offset, expected) }
    }

    mutating func put(said call: Call) { if course.isOpen { due.said.append(call) } }

    mutating func put(_ metrics: LoadMetrics) { self.metrics = metrics }

    /// Returns false if the question will not be answered: the load has ended, was stopped, or has failed.
    mutating func put(_ question: any Question) -> Bool {
        guard case .running = course else { return false }
        questions.append(question)
        return true
    }

    /// Takes a response; what follows of the body belongs to it.
    /// - Parameter isHeard: the delegate has a method for it, or the body is kept for the handler.
    /// - Parameter isAsked: the delegate is still to be asked about it.
    mutating func put(_ response: URLResponse, isHeard: Bool, isAsked: Bool = true) {
        asked = []
        guard course.isOpen else { return }
        if use != .collected, use != .file { use = isHeard ? .pieces : .discarded }
        missing = response.expectedContentLength >= 0 ? response.expectedContentLength : nil
        guard use == .pieces, isAsked else { return }
        if isHeld { gate = .held(next: response) } else { gate = .due(response) }
    }

    /// Takes a piece of the body. Returns false if the load should wait until the piece was delivered.
    mutating func put(_ chunk: Chunk) -> Bool {
        guard use != .discarded, course.isOpen else { return true }
        missing? -= Int64(chunk.count)
        if use == .collected, body.isEmpty, let missing, missing > 0 {
            body.reserveCapacity(chunk.count + Int(min(missing, 4 << 20)))
        }
        if body.isEmpty, missing ?? 0 <= 0 { body = Data(chunk) } else { body.append(chunk) }
        if use == .collected || missing == 0 { return true }
        // One piece is taken before the answer: it may be the whole body.
        guard case .open = gate else { return body.count == chunk.count }
        return body.count + chunk.count <= Self.capacity
    }

    /// The same for a piece of a part of the body, which is delivered before the next part.
    mutating func put(_ data: Data) -> Bool {
        guard use != .discarded, course.isOpen else { return true }
        body.append(data)
        guard case .open = gate else { return false }
        return body.count <= Self.capacity
    }

    /// The load has ended. The error of a task that has failed already outweighs this one.
    mutating func finish(_ error: LoadError?) { course.finish(error) }

    /// Ends the task for its caller: calls that are due are dropped, but for the last ones. The first failure counts.
    mutating func fail(_ error: LoadError) -> Released {
        guard !isOver else { return Released() }
        course.fail(error)
        overtake()
        (due, gate, body) = (Due(), .open, Data())
        return release()
    }

    // MARK: Waiters

    /// Returns false if there is no reason to wait.
    mutating func wait(_ continuation: UnsafeContinuation<Void, Never>) -> Bool {
        guard case .running = course else { return false }
        if case .open = gate, body.isEmpty { return false }
        waiter = continuation
        return true
    }

    /// The load is stopped, and waits for the delegate no more. What has arrived is delivered all the same.
    mutating func stop() -> Released {
        course.stop()
        return release()
    }

    private mutating func release() -> Released {
        defer { (waiter, questions, asked) = (nil, [], []) }
        return Released(waiter: waiter, questions: questions + asked)
    }

    // MARK: Answers and handlers

    /// The delegate has answered what it was asked about the response.
    mutating func answered() {
        guard case .held(let next) = gate else { return }
        overtake()
        gate = next.map { .due($0) } ?? .open
    }

    /// The last call waits for one more handler.
    mutating func awaitHandler() { handlersToCome += 1 }
    /// A handler that the last call waits for has returned.
    mutating func handlerReturned() { handlersToCome -= 1 }

    /// Holds the body back, as if the delegate had been asked and had not answered yet.
    mutating func hold() {
        guard course.isOpen else { return }
        if case .due(let response) = gate { gate = .held(next: response) } else { gate = .held(next: nil) }
    }

    /// The task is a download from here on, and the body goes into its file. Held until it is answered again.
    mutating func turn(_ call: Call) {
        due.turned = call
        use = .file
    }

    /// The part of the body that has arrived, and the waiter to resume when it is written.
    mutating func takeBody() -> (Data, UnsafeContinuation<Void, Never>?) {
        defer { (body, waiter) = (Data(), nil) }
        return (body, waiter)
    }

    /// The whole body, for the handler.
    mutating func takeCollected() -> Data {
        defer { body = Data() }
        return body
    }
}

// MARK: - Calls

extension Mailbox {
    /// Returns whether the lane must be told that calls are due.
    mutating func schedule() -> Bool {
        guard case .none = turn, !isOver else { return false }
        turn = .queued
        return true
    }

    /// The lane's turn for these calls has come. Returns whether calls may be made in it.
    mutating func beginTurn() -> Bool {
        if case .overtaken = turn {
            turn = .queued
            return false
        }
        turn = .running
        return true
    }

    /// Returns whether calls are due for another turn.
    mutating func endTurn() -> Bool {
        var rest = self
        let hasMore = rest.nextCall() != nil
        turn = hasMore ? .queued : .none
        return hasMore
    }

    private mutating func overtake() { if case .queued = turn { turn = .overtaken } }

    /// The next call, and the waiter to resume when it is made; `nil` if no call is due now.
    mutating func next() -> (call: Call, waiter: UnsafeContinuation<Void, Never>?)? {
        guard let call = nextCall() else {
            turn = .none
            return nil
        }
        guard case .data = call else { return (call, nil) }
        defer { waiter = nil }
        return (call, waiter)
    }

    /// The waiter to resume when no call is due: the load waited for an answer with no data behind it.
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
        if !due.informational.isEmpty { return .informational(due.informational.removeFirst()) }
        if let sent = due.sent.take() { return .sent(sent) }
        if let place = questions.firstIndex(where: { !$0.comesLast }) { return nextQuestion(place) }
        if let turned = due.turned.take() { return turned }
        switch gate {
        case .held: return nil
        case .due(let response):
            gate = .held(next: nil)
            return .response(response)
        case .open: return nextUnheld()
        }
    }

    /// The next call that waits for the answer to the response.
    private mutating func nextUnheld() -> Call? {
        if let (offset, expected) = due.resumed.take() { return .resumed(offset: offset, expected: expected) }
        if let written = due.written.take() { return .written(written) }
        if use == .pieces, !body.isEmpty {
            defer { body = Data() }
            return .data(body)
        }
        if !questions.isEmpty { return nextQuestion(0) }
        if !due.said.isEmpty { return nextSaid() }
        guard handlersToCome == 0 else { return nil }
        switch course {
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

    private mutating func nextSaid() -> Call {
        let call = due.said.removeFirst()
        switch call {
        case .captured, .becameStream:
            course.handOver()
            asked = []
        default: break
        }
        return call
    }

    /// The calls of a load that has ended: the file, the metrics, the end.
    private mutating func last(_ error: LoadError?) -> Call {
        if use == .file, error == nil {
            use = .discarded
            return .saved
        }
        if let metrics = metrics.take() { return .metrics(metrics) }
        course = .over(error)
        // They refer to their task.
        asked = []
        return .finished(error)
    }
}
