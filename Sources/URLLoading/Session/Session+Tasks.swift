public import FoundationEssentials

extension Session {
    /// Makes a task that loads a request when it is resumed. Synchronous, from any thread.
    ///
    /// ```swift
    /// let task = session.dataTask(request)
    /// task.resume()
    /// let data = try await task.value
    /// ```
    /// - Parameters:
    ///   - request: what to load.
    ///   - decisions: go before the session's own.
    /// - Returns: a suspended task. If the session was invalidated it is one that has failed with
    ///   ``LoadError/Reason/sessionInvalidated``.
    public nonisolated func dataTask(_ request: Request, decisions: Decisions? = nil) -> LoadTask<Data> {
        LoadTask(TaskDriver(core, request, decisions), self)
    }

    /// Makes a task that loads a URL with GET; see ``dataTask(_:decisions:)``.
    public nonisolated func dataTask(from url: URL) -> LoadTask<Data> { dataTask(Request(url: url)) }

    /// A task for the classic shape: its events and its whole body go into `sink`.
    /// - Parameter holdsSession: `finishTasksAndInvalidate` waits for it even if it was never resumed.
    package nonisolated func dataTask(
        _ request: Request, decisions: Decisions?, sink: any LoadSink, holdsSession: Bool
    ) -> LoadTask<Data> {
        LoadTask(TaskDriver(core, request, decisions, sink: sink, holdsSession: holdsSession), self)
    }

    /// The same for an upload that may be resumed.
    package nonisolated func uploadTask(_ upload: UploadWork, decisions: Decisions?, sink: any LoadSink) -> LoadTask<
        Data
    > {
        LoadTask(TaskDriver(core, upload.request, decisions, sink: sink, upload: upload, holdsSession: true), self)
    }
}
