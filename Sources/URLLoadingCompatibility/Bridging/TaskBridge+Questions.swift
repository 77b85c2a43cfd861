// What a load waits for its delegate to answer. A redirect is a decision of the core, which waits for
// the answer; a response is held back in the mailbox, so that one that is simply allowed costs no wait.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension TaskBridge {
    /// The decision upon redirects, for the load.
    var decisions: Decisions {
        var decisions = Decisions()
        decisions.redirect = Decision { [self] redirect in try await decide(redirect) }
        return decisions
    }

    private func decide(_ redirect: Redirect) async throws -> RedirectDecision {
        guard taskDelegate != nil, let head = redirect.response.http else { return .follow }
        let response = HTTPURLResponse(redirect.response, head)
        let proposed = state.withLock { URLRequest(redirect.request, like: $0.current) }
        let reply = await withUnsafeContinuation { continuation in
            let question = RedirectQuestion(response, proposed, continuation)
            guard state.withLock({ $0.mailbox.put(question) }) else { return question.withdraw() }
            schedule()
        }
        switch reply {
        case .withdrawn: return .cancel
        case .none: throw DroppedAnswer()
        case .request(nil): return .deliver
        case .request(proposed?): return .follow
        case .request(let other?):
            let request = try Request.make(other).get()
            state.withLock { $0.chosen = other }
            return .instead(request)
        }
    }

    func ask(_ question: RedirectQuestion, _ session: URLSession, _ task: URLSessionDataTask) {
        guard let delegate = taskDelegate else { return _ = question.answer(.request(question.proposed)) }
        let answer = Answer<URLRequest?> { [self] fate in
            switch fate {
            case .given(let request): question.answer(.request(request))
            case .givenAgain: report(.completionHandlerCalledAgain, "willPerformHTTPRedirection", task)
            case .dropped: if question.answer(.none) { report(.completionHandlerDropped, "willPerformHTTPRedirection", task) }
            }
        }
        delegate.urlSession(
            session, task: task, willPerformHTTPRedirection: question.response, newRequest: question.proposed
        ) { answer.give($0) }
    }

    func ask(_ response: URLResponse, _ session: URLSession, _ task: URLSessionDataTask) {
        guard let delegate = dataDelegate else { return allow() }
        let answer = Answer<URLSession.ResponseDisposition> { [self] fate in
            switch fate {
            case .given(.allow): allow()
            case .given(.cancel): if isHeld { cancel() }
            case .givenAgain: report(.completionHandlerCalledAgain, "didReceive response", task)
            case .dropped:
                guard isHeld else { return }
                report(.completionHandlerDropped, "didReceive response", task)
                cancel(LoadError(
                    .decisionFailed, phase: .deciding, party: .local, url: response.url, underlying: DroppedAnswer()))
            }
        }
        delegate.urlSession(session, dataTask: task, didReceive: response) { answer.give($0) }
    }

    private var isHeld: Bool { state.withLock { $0.mailbox.isHeld } }

    private func allow() {
        state.withLock { $0.mailbox.answered() }
        schedule()
    }

    private func report(_ kind: URLSessionMisuse.Kind, _ method: String, _ task: URLSessionTask) {
        URLSession.misuseHandler(URLSessionMisuse(kind: kind, method: method, task: task))
    }
}

/// A delegate has dropped a completion handler.
struct DroppedAnswer: Error, CustomStringConvertible {
    var description: String { "the delegate dropped the completion handler without calling it" }
}
