// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension Session {
    /// Creates a task that loads a request when it is resumed. Synchronous; may be called from any thread.
    ///
    /// ```swift
    /// let task = session.dataTask(request)
    /// task.resume()
    /// let data = try await task.value
    /// ```
    /// - Parameters:
    ///   - request: the request to load.
    ///   - decisions: take precedence over the session's own.
    /// - Returns: a suspended task. If the session was invalidated, it has already failed with
    ///   ``LoadError/Reason/sessionInvalidated``.
    public nonisolated func dataTask(_ request: Request, decisions: Decisions? = nil) -> LoadTask<Data> {
        LoadTask(TaskDriver(core, request, decisions), self)
    }

    /// Creates a task that loads a URL with GET; see ``dataTask(_:decisions:)``.
    public nonisolated func dataTask(from url: URL) -> LoadTask<Data> { dataTask(Request(url: url)) }

    /// Creates a data task for the classic API, whose events and whole body go to `sink`.
    /// - Parameter holdsSession: true if `finishTasksAndInvalidate` waits for it even if it was never resumed.
    package nonisolated func dataTask(
        _ request: Request, decisions: Decisions?, sink: any LoadSink, holdsSession: Bool,
        inPlaceOf old: LoadTask<Data>? = nil
    ) -> LoadTask<Data> {
        let work = TaskWork(sink: sink, predecessor: old?.load.context)
        return LoadTask(TaskDriver(core, request, decisions, work, holdsSession: holdsSession), self)
    }

    /// Creates a task for the classic API whose upload may be resumable.
    package nonisolated func uploadTask(
        _ upload: UploadWork, decisions: Decisions?, sink: any LoadSink, inPlaceOf old: LoadTask<Data>? = nil
    ) -> LoadTask<Data> {
        let work = TaskWork(sink: sink, upload: upload, predecessor: old?.load.context)
        return LoadTask(TaskDriver(core, upload.request, decisions, work, holdsSession: true), self)
    }
}
