// A question of a load to its delegate, whose answer the load waits for. It is put on the lane, in order among the calls.

import Synchronization
import URLLoading
import URLLoadingIO

/// A question as the mailbox keeps it.
protocol Question: AnyObject, Sendable {
    /// On the lane.
    func put(to session: URLSession, _ task: URLSessionTask)
    /// The load has ended and does not wait for an answer.
    func withdraw()
    /// Asked when all of the body was delivered.
    var comesLast: Bool { get }
}

final class Inquiry<Reply: Sendable>: Question {
    enum Outcome: Sendable {
        case reply(Reply)
        /// The handler was dropped.
        case dropped
        case withdrawn
    }
    typealias Ask = @Sendable (URLSession, URLSessionTask, Answer<Reply>) -> Void

    private let method: String
    private let ask: Ask
    let comesLast: Bool
    private enum Stage: Sendable {
        case unasked
        case waiting(UnsafeContinuation<Outcome, Never>)
        case answered
    }
    private let stage = Lock(Stage.unasked)

    init(_ method: String, comesLast: Bool, _ ask: @escaping Ask) {
        self.method = method
        self.comesLast = comesLast
        self.ask = ask
    }

    /// - Parameter put: gives it to the mailbox; `false` if there will be no answer.
    func outcome(_ put: (Inquiry) -> Bool) async -> Outcome {
        let outcome = await withUnsafeContinuation { continuation in
            stage.withLock { $0 = .waiting(continuation) }
            if !put(self) { withdraw() }
        }
        // The sanitizer does not see what a continuation orders that was resumed before it was waited for.
        stage.withLock { _ in }
        return outcome
    }

    func put(to session: URLSession, _ task: URLSessionTask) {
        let method = method
        ask(
            session, task,
            Answer { [self] fate in
                switch fate {
                case .given(let reply): settle(.reply(reply))
                case .givenAgain: task.report(.completionHandlerCalledAgain, method)
                case .dropped: if settle(.dropped) { task.report(.completionHandlerDropped, method) }
                }
            })
    }

    func withdraw() { settle(.withdrawn) }

    /// Returns whether the load has waited for it.
    @discardableResult
    private func settle(_ outcome: Outcome) -> Bool {
        let continuation = stage.withLock { stage -> UnsafeContinuation<Outcome, Never>? in
            guard case .waiting(let continuation) = stage else { return nil }
            stage = .answered
            return continuation
        }
        continuation?.resume(returning: outcome)
        return continuation != nil
    }
}

extension URLSessionTask {
    func report(_ kind: URLSessionMisuse.Kind, _ method: String) {
        URLSession.misuseHandler(URLSessionMisuse(kind: kind, method: method, task: self))
    }
}

extension TaskBridge {
    /// Asks on the lane and waits for the answer.
    func inquire<Reply: Sendable>(
        _ method: String, comesLast: Bool = false, _ ask: @escaping Inquiry<Reply>.Ask
    ) async -> Inquiry<Reply>.Outcome {
        await Inquiry(method, comesLast: comesLast, ask).outcome { inquiry in
            guard state.withLock({ $0.mailbox.put(inquiry) }) else { return false }
            schedule()
            return true
        }
    }
}
