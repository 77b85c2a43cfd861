// SPDX-License-Identifier: Apache-2.0

// Waits of a load for a retry and for a network, not for its peer. The idle timeout is suspended, the resource timeout
// runs on; a stop ends the wait, and a suspended load waits until it is resumed.

import URLLoadingIO

extension LoadContext {
    /// Waits before a retry.
    /// - Parameter endsOnPathChange: true if a change of the network ends the wait.
    func backoff(_ retry: Retry, endsOnPathChange: Bool) async throws(LoadError) {
        // Watched before the retry is announced, because the network may change as soon as an observer knows of it.
        let watch =
            endsOnPathChange && retry.delay > .zero
            ? try? PathWatch(core.configuration.networkMonitor, for: handle) : nil
        let known = watch?.path
        events?.retrying(retry)
        let moment = retry.delay > .zero ? clock.now() &+ LoadHandle.nanoseconds(retry.delay) : 0
        do throws(IOFailure) {
            if let watch, let known {
                try await sleep(until: moment, orChangeOf: known, watch)
            } else {
                try await clock.sleep(until: moment, handle)
            }
        } catch {
            throw LoadError(error, retry.phase)
        }
        try await checkStillRunning(retry.phase)
    }

    private func sleep(
        until moment: Int64, orChangeOf path: NetworkPath, _ watch: PathWatch
    ) async throws(IOFailure) {
        var known = path
        let alarm = Alarm(clock, at: moment, handle)
        defer {
            alarm.off()
            watch.end()
        }
        while clock.now() < moment {
            let path = try await watch.next { clock.now() >= moment }
            if path != known, path.isSatisfied { return }
            known = path
        }
    }

    /// Waits for a network that this load may use. Returns `false` at once if the connection failed for another reason.
    func waitForConnectivity(after error: LoadError, _ access: NetworkAccess) async throws(LoadError) -> Bool {
        guard ConnectivityPlan.mayLackNetwork(error),
            let watch = try? PathWatch(core.configuration.networkMonitor, for: handle)
        else { return false }
        defer { watch.end() }
        switch ConnectivityPlan.make(error, now: watch.path, access) {
        case .fail: return false
        case .tryAgain: return mayRetry()
        case .wait: guard mayRetry() else { return false }
        }
        events?.waitingForConnectivity()
        do throws(IOFailure) {
            while !watch.path.isSatisfied || access.refusal(of: watch.path) != nil { _ = try await watch.next() }
        } catch {
            throw LoadError(error, .connecting)
        }
        try await checkStillRunning(.connecting)
        return true
    }

    /// Returns whether the load may be retried. An idle timeout is revoked for the retry, except while a custom handler
    /// waits for the response, because the handler was already cancelled.
    func mayRetry() -> Bool {
        guard stopReason != nil else { return true }
        guard handlerScope == nil, revokeIdleStop() else { return false }
        return stopReason == nil
    }

    /// Revokes an idle stop. Returns false if the load was stopped for another reason or not at all.
    @discardableResult
    func revokeIdleStop() -> Bool {
        guard handle.clearIdleStop() else { return false }
        // The registry stops observing a load that it has stopped, so register the load again.
        core.registry.watch(handle)
        return true
    }

    private func checkStillRunning(_ phase: LoadError.Phase) async throws(LoadError) {
        if isSuspended { await handle.untilResumed() }
        if let reason = stopReason { throw LoadError(reason, phase: phase) }
    }
}

extension Retry {
    /// The phase of the failure that is retried.
    fileprivate var phase: LoadError.Phase {
        if case .failed(let error) = cause { error.phase } else { .waiting }
    }
}
