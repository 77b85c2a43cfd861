// What a load asks its delegate, and waits for. The question is put on the lane, in its place among the calls.

import Synchronization
import URLLoading
import URLLoadingIO

/// A question as the mailbox keeps it.
protocol Question: AnyObject, Sendable {
    /// On the lane.
    func put(to session: URLSession, _ task: URLSessionTask)
    /// The load has ended, and nobody waits for an answer.
    func withdraw()
    /// Asked when all of the body was heard.
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
    private let isAnswered = Atomic<Bool>(false)
    private let continuation: UnsafeContinuation<Outcome, Never>

    init(_ method: String, comesLast: Bool, _ continuation: UnsafeContinuation<Outcome, Never>, _ ask: @escaping Ask) {
        self.method = method
        self.comesLast = comesLast
        self.continuation = continuation
        self.ask = ask
    }

    func put(to session: URLSession, _ task: URLSessionTask) {
        let method = method
        ask(session, task, Answer { [self] fate in
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
        guard !isAnswered.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        continuation.resume(returning: outcome)
        return true
    }
}

extension URLSessionTask {
    func report(_ kind: URLSessionMisuse.Kind, _ method: String) {
        URLSession.misuseHandler(URLSessionMisuse(kind: kind, method: method, task: self))
    }
}

extension TaskBridge {
    /// Asks on the lane, and waits for the answer.
    func inquire<Reply: Sendable>(
        _ method: String, comesLast: Bool = false, _ ask: @escaping Inquiry<Reply>.Ask
    ) async -> Inquiry<Reply>.Outcome {
        await withUnsafeContinuation { continuation in
            let inquiry = Inquiry(method, comesLast: comesLast, continuation, ask)
            guard state.withLock({ $0.mailbox.put(inquiry) }) else { return inquiry.withdraw() }
            schedule()
        }
    }
}
