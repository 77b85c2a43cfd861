// Waits of a load that are not for its peer: before another try, and for a network. The idle timeout
// stands still, the resource timeout does not; a stop ends them, and what is suspended waits on.

import URLLoadingIO

extension LoadContext {
    /// Waits before another try.
    /// - Parameter hearsPaths: another network ends the wait.
    func backoff(_ retry: Retry, hearsPaths: Bool) async throws(LoadError) {
        events?.retrying(retry)
        let moment = retry.delay > .zero ? clock.now() &+ LoadHandle.nanoseconds(retry.delay) : 0
        do throws(IOFailure) {
            try await (hearsPaths ? sleepHearingPaths(until: moment) : clock.sleep(until: moment, handle))
        } catch {
            throw LoadError(error, retry.phase)
        }
        try await goOn(retry.phase)
    }

    private func sleepHearingPaths(until moment: Int64) async throws(IOFailure) {
        guard clock.now() < moment, let watch = try? PathWatch(core.configuration.networkMonitor, for: handle) else {
            return try await clock.sleep(until: moment, handle)
        }
        // Read before the alarm is set: a test that moves its clock once the load waits changes the network after this.
        var known = watch.path
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

    /// Waits for a network that this load may use; returns `false` at once if the want of one is not
    /// why it could not connect.
    func waitForConnectivity(after error: LoadError, _ access: NetworkAccess) async throws(LoadError) -> Bool {
        guard ConnectivityPlan.mayLackNetwork(error),
            let watch = try? PathWatch(core.configuration.networkMonitor, for: handle)
        else { return false }
        defer { watch.end() }
        switch ConnectivityPlan.make(error, now: watch.path, access) {
        case .fail: return false
        case .tryAgain: return mayTryAgain()
        case .wait: guard mayTryAgain() else { return false }
        }
        events?.waitingForConnectivity()
        do throws(IOFailure) {
            while !watch.path.isSatisfied || access.refusal(of: watch.path) != nil { _ = try await watch.next() }
        } catch {
            throw LoadError(error, .connecting)
        }
        try await goOn(.connecting)
        return true
    }

    /// Whether there may be another try. What was stopped for the peer's silence goes on; but not if a handler
    /// of the caller's waits for the answer, for he has heard of the stop.
    func mayTryAgain() -> Bool {
        guard stopReason != nil else { return true }
        guard handlerScope == nil, handle.forgiveIdle() else { return false }
        // Whoever stopped it looks after it no more.
        core.registry.watch(handle)
        return stopReason == nil
    }

    private func goOn(_ phase: LoadError.Phase) async throws(LoadError) {
        if isSuspended { await handle.untilResumed() }
        if let reason = stopReason { throw LoadError(reason, phase: phase) }
    }
}

extension Retry {
    /// How far the load had come.
    fileprivate var phase: LoadError.Phase {
        if case .failed(let error) = cause { error.phase } else { .waiting }
    }
}
