// SPDX-License-Identifier: Apache-2.0

extension LoadTask {
    /// The durations and byte counts of the load, available once it has ended, successfully or not. Waits until then,
    /// which is forever if the task is neither resumed nor cancelled.
    ///
    /// ```swift
    /// let data = try await task.value
    /// print(try await task.metrics)          // 34.1 ms: 200 in 33.9 ms
    /// ```
    /// A body without a consumer is read to its end, because the load has no end otherwise. It is kept for a consumer
    /// that comes later, up to ``Configuration/Limits/collectedBodySize``; of a larger one nothing is kept, and `value`
    /// throws ``LoadError/Reason/bodyTooLarge``.
    /// - Throws: ``LoadError/Reason/cancelled`` if the calling task is cancelled, which leaves the load as it is.
    ///   A load that failed has metrics, too.
    public var metrics: LoadMetrics {
        get async throws(LoadError) {
            defer { withExtendedLifetime(self) {} }
            return try await load.finalMetrics()
        }
    }
}

extension TaskDriver {
    fileprivate func finalMetrics() async throws(LoadError) -> LoadMetrics {
        requireEnd()
        let metrics = await wait { state, slot -> LoadMetrics? in
            if state.outcome != nil { return state.metrics }
            state.waitForEnd(slot)
            return nil
        }
        guard let metrics else { throw LoadError(.cancelled, phase: .waiting, party: .local).at(original.url) }
        return metrics
    }
}
