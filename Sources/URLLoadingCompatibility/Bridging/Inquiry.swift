// SPDX-License-Identifier: Apache-2.0

// A load's question to its delegate. The load waits for the answer; the question is put on the lane, in order with the
// other calls.

import Synchronization
import URLLoadingIO

final class Inquiry<Reply: Sendable>: Question {
    enum Outcome: Sendable {
        case reply(Reply)
        /// The delegate dropped the completion handler without calling it.
        case dropped
        case withdrawn
    }
    typealias Ask = @Sendable (URLSession, URLSessionTask, Answer<Reply>) -> Void

    private let method: String
    private let ask: Ask
    private let bridge: TaskBridge
    let comesLast: Bool
    private enum Stage: Sendable {
        case unasked
        case waiting(UnsafeContinuation<Outcome, Never>)
        case answered
    }
    private let stage = Lock(Stage.unasked)

    init(_ method: String, of bridge: TaskBridge, comesLast: Bool, _ ask: @escaping Ask) {
        self.method = method
        self.bridge = bridge
        self.comesLast = comesLast
        self.ask = ask
    }

    /// - Parameter put: adds the question to the mailbox; returns `false` if it will not be answered.
    func outcome(_ put: (Inquiry) -> Bool) async -> Outcome {
        let outcome = await withUnsafeContinuation { continuation in
            stage.withLock { $0 = .waiting(continuation) }
            if !put(self) { withdraw() }
        }
        // A continuation may be resumed before its task suspends; the thread sanitizer does not see that ordering.
        // Taking the lock makes it visible.
        stage.withLock { _ in }
        return outcome
    }

    func put() {
        let (session, task) = bridge.state.withLock { ($0.session, $0.task) }
        guard let session, let task else { return }
        let method = method
        ask(
            session, task,
            Answer { [self] outcome in
                switch outcome {
                case .given(let reply): settle(.reply(reply))
                case .givenAgain: task.report(.completionHandlerCalledAgain, method)
                case .dropped: if settle(.dropped) { task.report(.completionHandlerDropped, method) }
                }
            })
    }

    func withdraw() { settle(.withdrawn) }

    /// Resumes the waiting load. Returns false if the load was not waiting any more.
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
    /// Puts a question on the lane and waits for the answer.
    func inquire<Reply: Sendable>(
        _ method: String, comesLast: Bool = false, _ ask: @escaping Inquiry<Reply>.Ask
    ) async -> Inquiry<Reply>.Outcome {
        await Inquiry(method, of: self, comesLast: comesLast, ask).outcome { inquiry in
            guard state.withLock({ $0.mailbox.put(inquiry) }) else { return false }
            schedule()
            return true
        }
    }
}
