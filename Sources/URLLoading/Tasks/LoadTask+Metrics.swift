import URLLoadingIO

extension LoadTask {
    /// What the load did with its time and bytes, once it is over, well or not. Waits for ever if nobody resumes
    /// or cancels the task.
    ///
    /// ```swift
    /// let data = try await task.value
    /// print(try await task.metrics)          // 34.1 ms: 200 in 33.9 ms
    /// ```
    /// - Throws: ``LoadError/Reason/cancelled`` if the calling task is cancelled, which leaves the load as it is.
    ///   A load that failed has metrics, too.
    public var metrics: LoadMetrics {
        get async throws(LoadError) { try await load.finalMetrics() }
    }
}

extension TaskDriver {
    fileprivate func finalMetrics() async throws(LoadError) -> LoadMetrics {
        let metrics = await wait { state, slot -> LoadMetrics? in
            if state.outcome != nil { return state.metrics }
            state.waitForEnd(slot)
            return nil
        }
        guard let metrics else { throw LoadError(.cancelled, phase: .waiting, party: .local).at(original.url) }
        return metrics
    }
}
