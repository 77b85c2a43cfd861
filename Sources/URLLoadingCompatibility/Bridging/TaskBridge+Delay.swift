// SPDX-License-Identifier: Apache-2.0

// Tasks with an `earliestBeginDate`: when the date has come, the delegate is asked which request to send, and the load
// begins.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension TaskBridge {
    /// Whether the task was resumed and waits for its date or for the delegate's answer.
    var isWaitingToBegin: Bool {
        state.withLock { if case .waiting = $0.beginning { !$0.isSuspended } else { false } }
    }

    func resume(_ priority: Float, notBefore date: Date?) {
        // The background agent waits for the date itself.
        let date = isInBackground ? nil : date
        let delay = date?.timeIntervalSinceNow ?? 0
        let begins = state.withLock { state -> Bool in
            state.isSuspended = state.task?.isSuspended ?? false
            guard !state.isSuspended else { return false }
            switch state.beginning {
            case .begun, .due: return true
            case .waiting: return false
            case .resting where date == nil || state.isCanceled:
                state.beginning = .due
                return true
            case .resting:
                state.beginning = .waiting(waiting(max(0, delay)), priority)
                return false
            }
        }
        if begins { begin(priority) }
    }

    /// Stops waiting for the date, because the task is over.
    func stopWaiting() {
        let waiting = state.withLock { state -> Task<Void, Never>? in
            guard case .waiting(let task, _) = state.beginning else { return nil }
            state.beginning = .due
            return task
        }
        waiting?.cancel()
    }

    private func waiting(_ delay: TimeInterval) -> Task<Void, Never> {
        Task.onLoop { [weak self] in
            do { try await Task.sleep(for: .seconds(min(delay, 1e9))) } catch { return }
            await self?.beginDelayed()
        }
    }

    private func beginDelayed() async {
        let outcome: Inquiry<Plan>.Outcome = await inquire("willBeginDelayedRequest") { [self] session, task, answer in
            guard let delegate = taskDelegate else {
                return answer.give(Plan(disposition: .continueLoading, request: nil))
            }
            delegate.urlSession(session, task: task, willBeginDelayedRequest: original) {
                answer.give(Plan(disposition: $0, request: $1))
            }
        }
        switch outcome {
        case .withdrawn: return
        case .dropped:
            return cancel(
                LoadError(
                    .decisionFailed, phase: .deciding, party: .local, url: original.url, underlying: DroppedAnswer()))
        case .reply(let plan) where plan.disposition == .cancel: return cancel()
        case .reply(let plan):
            if plan.disposition == .useNewRequest, let request = plan.request { replace(request) }
        }
        let priority = state.withLock { state -> Float? in
            guard case .waiting(_, let priority) = state.beginning else { return nil }
            state.beginning = .due
            return state.isSuspended ? nil : priority
        }
        if let priority { begin(priority) }
    }

    private struct Plan: Sendable {
        let disposition: URLSession.DelayedRequestDisposition
        let request: URLRequest?
    }

    /// Replaces a request that was not sent yet. The body of an upload stays.
    func replace(_ request: URLRequest) {
        let (session, task, old) = state.withLock { ($0.session, $0.task, $0.load) }
        guard let session, let task, let old else { return }
        switch old {
        case .data, .download: break
        // WebSockets and streams keep their request.
        case .socket, .stream: return
        }
        let made = session.makeLoad(request, self, like: task, old)
        state.withLock { state in
            state.work = .replaced(old)
            state.active?.stream = task is URLSessionUploadTask ? nil : request.httpBodyStream
            state.current = request
        }
        // The replaced load never began, so it ends at once, without events for the task.
        old.cancel()
        let stopped = state.withLock { state -> BridgedLoad? in
            let work = Work(made)
            state.work = work
            return state.isCanceled ? work.load : nil
        }
        stopped?.cancel()
    }
}
