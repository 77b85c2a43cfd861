// What a task's delegate is to hear next, as a value. The order of events is fixed (checklist 45), so
// each kind has one place, and what comes while another waits is put together with it. Every
// transition is one method, called under the lock of `TaskBridge`.
//
// Rule 1: the answer to `response` comes before any piece of the body; see `isHeld`.
// Rule 2: `finished` is the last call, and made once.

import Foundation
import URLLoading

struct Mailbox: Sendable {
    enum Call: Sendable {
        case waiting
        case informational(HTTPURLResponse)
        case sent(ByteCount)
        case question(any Question)
        case response(URLResponse)
        /// A data task is a download from here on.
        case becameDownload(URLSessionDataTask, URLSessionDownloadTask)
        /// The last call of a data task whose connection is a stream now.
        case becameStream(URLSessionStreamTask)
        case resumed(offset: Int64, expected: Int64?)
        case data(Data)
        case written(ByteCount)
        /// The file is whole.
        case saved
        case opened(String?)
        case closed(URLSessionWebSocketTask.CloseCode, Data?)
        case readClosed
        case writeClosed
        case betterRoute
        /// The last call of a stream whose connection was given away.
        case captured(CapturedStreams)
        case metrics(LoadMetrics)
        case finished(LoadError?)
    }

    /// Whether the lane makes the calls, or will.
    private enum Turn: Sendable {
        case none
        /// An operation is in the queue for what was to be heard when it was put there.
        case queued
        /// The same, but the program has changed since what is to be heard: the new calls are not for that operation, which may
        /// be before work that the program put into the queue before it made the change.
        case overtaken
        case running
    }

    /// Bytes of the body that may wait for the delegate.
    static let capacity = 1 << 20

    /// A completion handler takes the whole body at the end, and hears of nothing before.
    private let collects: Bool
    private var isWaiting = false
    private var informational: [HTTPURLResponse] = []
    private var sent: ByteCount?
    private var turned: Call?
    /// Mostly one: a protocol of the program's may ask while its load does.
    private var questions: [any Question] = []
    /// The delegate has been asked.
    private var asked: [any Question] = []
    private var response: URLResponse?
    private var resumed: (offset: Int64, expected: Int64?)?
    private var written: ByteCount?
    /// Of conversations, in the order in which it was.
    private var said: [Call] = []
    private var metrics: LoadMetrics?
    private var body = Data()
    private var outcome: LoadError??
    /// Outweighs how the load ended.
    private var failure: LoadError?
    /// The delegate hears of response and body.
    private var isHeard = true
    /// The delegate has not answered yet.
    private(set) var isHeld = false
    /// Body bytes to come, if that is known.
    private var missing: Int64?
    private var isStopped = false
    private var turn = Turn.none
    /// Handlers that must have been called before the last call is made.
    private var handlersToCome = 0
    /// The last call is made.
    private(set) var isOver = false
    /// Why it was over; `nil` before, and if nothing went wrong.
    var error: LoadError? { isOver ? outcome.flatMap { $0 } : nil }
    private var waiter: UnsafeContinuation<Void, Never>?

    /// The delegate is still to be shown the file.
    private var isToBeSaved: Bool

    /// - Parameter saves: it is a download, and the delegate gets its file.
    init(collects: Bool, saves: Bool = false) {
        self.collects = collects
        isToBeSaved = saves
    }

    // MARK: What comes in

    mutating func putWaiting() { isWaiting = failure == nil }

    /// Peers may send only so many.
    mutating func put(informational response: HTTPURLResponse) {
        if failure == nil { informational.append(response) }
    }

    mutating func put(sent bytes: ByteCount) { sent = Self.together(sent, bytes) }

    mutating func put(written bytes: ByteCount) {
        if failure == nil { written = Self.together(written, bytes) }
    }

    private static func together(_ before: ByteCount?, _ bytes: ByteCount) -> ByteCount {
        let restarted = bytes.total < before?.total ?? 0
        let count = bytes.count + (restarted ? 0 : before?.count ?? 0)
        return ByteCount(count: count, total: bytes.total, expected: bytes.expected)
    }

    mutating func put(resumedAt offset: Int64, expected: Int64?) {
        if failure == nil { resumed = (offset, expected) }
    }

    mutating func put(said call: Call) { if failure == nil, !isOver { said.append(call) } }

    mutating func put(_ metrics: LoadMetrics) { self.metrics = metrics }

    /// Returns false if nobody will answer any more.
    mutating func put(_ question: any Question) -> Bool {
        guard failure == nil, outcome == nil, !isStopped else { return false }
        questions.append(question)
        return true
    }

    /// - Parameter isHeard: there is a delegate for it, or it is kept for the handler.
    /// - Parameter isAsked: the delegate has not been asked about it yet.
    mutating func put(_ response: URLResponse, isHeard: Bool, isAsked: Bool = true) {
        asked = []
        guard failure == nil else { return }
        self.isHeard = isHeard
        missing = response.expectedContentLength >= 0 ? response.expectedContentLength : nil
        if isHeard, !collects, isAsked { self.response = response }
    }

    /// Takes a piece of the body. Returns false if the next should wait until this one was heard.
    mutating func put(_ chunk: Chunk) -> Bool {
        guard isHeard, failure == nil else { return true }
        missing? -= Int64(chunk.count)
        if collects, body.isEmpty, let missing, missing > 0 {
            body.reserveCapacity(chunk.count + Int(min(missing, 4 << 20)))
        }
        if body.isEmpty, missing ?? 0 <= 0 { body = Data(chunk) } else { body.append(chunk) }
        if collects || missing == 0 { return true }
        // Before the answer one piece: it may be all there is.
        if isHeld || response != nil { return body.count == chunk.count }
        return body.count + chunk.count <= Self.capacity
    }

    /// The same of a part of the body, which is heard before the next.
    mutating func put(_ data: Data) -> Bool {
        guard isHeard, failure == nil else { return true }
        body.append(data)
        return !isHeld && response == nil && body.count <= Self.capacity
    }

    /// The load has.
    var hasEnded: Bool { outcome != nil }

    var collectedCount: Int { collects ? body.count : 0 }

    mutating func finish(_ error: LoadError?) {
        guard outcome == nil else { return }
        outcome = .some(failure ?? error)
    }

    /// The task is over for its caller: what has not been heard is not heard any more.
    mutating func fail(_ error: LoadError) -> Released {
        guard !isOver else { return Released() }
        overtake()
        failure = failure ?? error
        if outcome != nil { outcome = .some(failure) }
        (isWaiting, informational, sent, response, resumed, written, said) = (false, [], nil, nil, nil, nil, [])
        turned = nil
        (body, isHeld) = (Data(), false)
        return release()
    }

    // MARK: Those who wait

    /// Returns false if there is no reason to wait.
    mutating func wait(_ continuation: UnsafeContinuation<Void, Never>) -> Bool {
        guard failure == nil, !isStopped, isHeld || response != nil || !body.isEmpty else { return false }
        waiter = continuation
        return true
    }

    /// The load is stopped, and waits for the delegate no more. What has come of it is heard all the same.
    mutating func stop() -> Released {
        isStopped = true
        return release()
    }

    private mutating func release() -> Released {
        defer { (waiter, questions, asked) = (nil, [], []) }
        return Released(waiter: waiter, questions: questions + asked)
    }

    struct Released: Sendable {
        var waiter: UnsafeContinuation<Void, Never>?
        var questions: [any Question] = []

        /// Outside of the lock.
        func settle() {
            waiter?.resume()
            for question in questions { question.withdraw() }
        }
    }

    // MARK: What goes out

    /// Returns whether the lane must be told.
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

    /// Returns whether there are calls for another turn.
    mutating func endTurn() -> Bool {
        var rest = self
        let hasMore = rest.nextCall() != nil
        turn = hasMore ? .queued : .none
        return hasMore
    }

    private mutating func overtake() { if case .queued = turn { turn = .overtaken } }

    mutating func answered() {
        if isHeld { overtake() }
        isHeld = false
    }

    /// The last call waits for one more handler.
    mutating func awaitHandler() { handlersToCome += 1 }
    /// A handler that the last call waits for has returned.
    mutating func handlerReturned() { handlersToCome -= 1 }

    /// As if the delegate had been asked, and not answered yet.
    mutating func hold() { isHeld = failure == nil }

    /// What has come of the body goes into a file, and what will come past this. Held until it is answered again.
    mutating func turn(_ call: Call) {
        turned = call
        isToBeSaved = true
    }

    /// What has come of the body, and whom to wake when it is written.
    mutating func takeBody() -> (Data, UnsafeContinuation<Void, Never>?) {
        defer { (body, waiter) = (Data(), nil) }
        return (body, waiter)
    }

    /// The next call and whom to wake when it is made; `nil` if there is none now.
    mutating func next() -> (call: Call, waiter: UnsafeContinuation<Void, Never>?)? {
        guard let call = nextCall() else {
            turn = .none
            return nil
        }
        guard case .data = call else { return (call, nil) }
        defer { waiter = nil }
        return (call, waiter)
    }

    /// Whom to wake when there is nothing to hear: he waited for an answer, and no data behind it.
    mutating func takeIdle() -> UnsafeContinuation<Void, Never>? {
        guard !isHeld, response == nil, body.isEmpty else { return nil }
        defer { waiter = nil }
        return waiter
    }

    private mutating func nextCall() -> Call? {
        guard !isOver else { return nil }
        if isWaiting {
            isWaiting = false
            return .waiting
        }
        if !informational.isEmpty { return .informational(informational.removeFirst()) }
        if let sent = sent.take() { return .sent(sent) }
        if let place = questions.firstIndex(where: { !$0.comesLast }) { return nextQuestion(place) }
        if let turned = turned.take() { return turned }
        guard !isHeld else { return nil }
        if let response = response.take() {
            isHeld = true
            return .response(response)
        }
        if let (offset, expected) = resumed.take() { return .resumed(offset: offset, expected: expected) }
        if let written = written.take() { return .written(written) }
        if !collects, !body.isEmpty {
            defer { body = Data() }
            return .data(body)
        }
        if !questions.isEmpty { return nextQuestion(0) }
        if !said.isEmpty {
            let call = said.removeFirst()
            switch call {
            case .captured, .becameStream: (isOver, asked) = (true, [])
            default: break
            }
            return call
        }
        guard let outcome, handlersToCome == 0 else { return nil }
        if isToBeSaved, case .some(nil) = self.outcome {
            isToBeSaved = false
            return .saved
        }
        if let metrics = metrics.take() { return .metrics(metrics) }
        isOver = true
        // They refer to their task.
        asked = []
        return .finished(outcome)
    }

    private mutating func nextQuestion(_ place: Int) -> Call {
        let question = questions.remove(at: place)
        asked.append(question)
        return .question(question)
    }

    /// The whole body, for the handler.
    mutating func takeCollected() -> Data {
        defer { body = Data() }
        return body
    }
}
