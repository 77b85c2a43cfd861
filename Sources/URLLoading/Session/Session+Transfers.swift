// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

extension Session {
    // MARK: Upload

    /// Sends a body and collects the response: ``data(for:decisions:)`` with a body.
    ///
    /// ```swift
    /// let (answer, response) = try await session.upload(Request(url: url, method: .put), from: .file(file))
    /// ```
    /// - Parameters:
    ///   - request: the request. Its method should be one with a body, such as PUT or POST; its own body is replaced.
    ///   - body: the body to send.
    /// - Throws: the errors of ``data(for:decisions:)``.
    @concurrent
    public nonisolated func upload(
        _ request: Request, from body: RequestBody, decisions: Decisions? = nil
    ) async throws(LoadError) -> (Data, Response) {
        if agent != nil { return try await complete(uploadTask(request, from: body, decisions: decisions)) }
        var request = request
        request.body = body
        return try await data(for: request, decisions: decisions)
    }

    /// Creates a task that sends a body when it is resumed. It is a data task: its response is delivered as usual, and
    /// ``LoadEvent/bodySent(_:)`` reports the progress.
    ///
    /// With the body ``RequestBody/provided``, but without a decision that provides one, the task has already failed
    /// with ``LoadError/Reason/badRequest``.
    public nonisolated func uploadTask(
        _ request: Request, from body: RequestBody, decisions: Decisions? = nil
    ) -> LoadTask<Data> {
        if agent != nil { return backgroundUpload(request, body, BackgroundOptions(), decisions, sink: nil) }
        var request = request
        request.body = body
        let load = TaskDriver(core, request, decisions)
        if case .provided = body.content, (decisions?.bodyProvider ?? core.decisions?.bodyProvider) == nil {
            load.refuse(.noBody(request.url))
        }
        return LoadTask(load, self)
    }

    // MARK: Download

    /// Downloads a body to a file, which appears at its destination only when it is complete.
    ///
    /// ```swift
    /// try await session.download(Request(url: url), to: URL(filePath: "/srv/data.iso"))
    /// ```
    /// The request asks for uncoded content (`Accept-Encoding: identity`, unless it has its own field), because a coded
    /// body cannot be resumed. If a server codes it all the same, the body is decoded, and the download cannot be
    /// resumed. An error status is not an error, and its body is saved: set ``DownloadOptions/requiresSuccess`` to
    /// refuse it.
    /// - Parameters:
    ///   - destination: a `file` URL; its folder must exist. An existing file is replaced.
    ///   - synchronizing: whether content and name are on disk when this returns (`fsync`).
    ///   - decisions: take precedence over the session's own.
    /// - Throws: ``LoadError``, with a ``LoadError/resumeToken`` if the download can be resumed. Cancelling the calling
    ///   task ends the load; when this throws, socket and file are released.
    @concurrent @discardableResult
    public nonisolated func download(
        _ request: Request, to destination: URL, synchronizing: Bool = false, decisions: Decisions? = nil
    ) async throws(LoadError) -> Response {
        let options = DownloadOptions(destination: destination, synchronizes: synchronizing)
        return try await complete(downloadTask(request, options: options, decisions: decisions)).response
    }

    /// Resumes an interrupted download; see ``ResumeToken``. If the content has changed, the server answers 200, and
    /// all of it is loaded. If it sends neither that nor exactly the rest (a 206 that repeats the validator, RFC 9110
    /// §15.3.7), the load fails: the error carries the response (``LoadError/response``) and the token, and the partial
    /// file is kept.
    /// - Parameters:
    ///   - request: supplies the credentials that tokens do not contain, and must have the token's URL; `nil` for the
    ///     request in the token.
    /// - Throws: the errors of ``download(_:to:synchronizing:decisions:)``; ``LoadError/Reason/invalidResumeToken``,
    ///   ``LoadError/Reason/unacceptableStatus``, ``LoadError/Reason/resumeMismatch``.
    @concurrent @discardableResult
    public nonisolated func download(
        resuming token: ResumeToken, request: Request? = nil, to destination: URL, synchronizing: Bool = false,
        decisions: Decisions? = nil
    ) async throws(LoadError) -> Response {
        let options = DownloadOptions(destination: destination, synchronizes: synchronizing)
        return try await complete(
            downloadTask(resuming: token, request: request, options: options, decisions: decisions)
        ).response
    }

    /// Downloads a body to a temporary file and passes it to a closure. The file is removed when the closure returns or
    /// throws, unless it was moved.
    ///
    /// ```swift
    /// try await session.download(request) { file in
    ///     try file.move(to: folder.appending(path: file.response.suggestedFileName))
    /// }
    /// ```
    /// - Parameter use: runs in the caller's isolation.
    /// - Throws: ``LoadError``, or the error of the closure.
    public nonisolated(nonsending) func download<R>(
        _ request: Request, decisions: Decisions? = nil,
        _ use: nonisolated(nonsending) (DownloadedFile) async throws -> R
    ) async throws -> R {
        let task = downloadTask(request, decisions: decisions)
        task.load.background?.waitForClosure()
        let file: DownloadedFile
        do throws(LoadError) { file = try await complete(task) } catch {
            await task.load.background?.closureReturned(isDone: true)
            throw error
        }
        do {
            let result = try await use(file)
            await task.load.background?.closureReturned(isDone: true)
            return result
        } catch {
            await task.load.background?.closureReturned(isDone: false)
            throw error
        }
    }

    /// Creates a task that downloads a body to a file when it is resumed. It needs no reader.
    ///
    /// ```swift
    /// let task = session.downloadTask(request, options: DownloadOptions(destination: place))
    /// let events = task.events
    /// task.resume()
    /// for await case .received(let bytes) in events { bar.update(bytes.total, of: bytes.expected) }
    /// let file = try await task.value
    /// ```
    /// ``LoadEvent/received(_:)`` counts bytes that are in the file. The request may have a body.
    public nonisolated func downloadTask(
        _ request: Request, options: DownloadOptions = DownloadOptions(), decisions: Decisions? = nil
    ) -> LoadTask<DownloadedFile> {
        if agent != nil { return backgroundDownload(request, options, BackgroundOptions(), decisions, sink: nil) }
        let work = DownloadWork(options, nil, core.configuration)
        let asked = DownloadWork.request(request, options)
        return LoadTask(TaskDriver(core, asked, decisions, TaskWork(download: work)), self)
    }

    /// Creates a task that resumes an interrupted download. It emits ``LoadEvent/resumed(offset:expected:)`` before any
    /// ``LoadEvent/received(_:)``.
    /// - Parameter request: see ``download(resuming:request:to:synchronizing:decisions:)``. With another URL, a body or
    ///   another method than GET the task has already failed with ``LoadError/Reason/invalidResumeToken``.
    public nonisolated func downloadTask(
        resuming token: ResumeToken, request: Request? = nil, options: DownloadOptions = DownloadOptions(),
        decisions: Decisions? = nil
    ) -> LoadTask<DownloadedFile> {
        let asked = DownloadWork.request(request ?? token.request, options)
        let task: LoadTask<DownloadedFile>
        if agent == nil {
            let work = DownloadWork(options, token, core.configuration)
            task = LoadTask(TaskDriver(core, asked, decisions, TaskWork(download: work)), self)
        } else {
            task = backgroundDownload(asked, options, BackgroundOptions(), decisions, sink: nil, resuming: token)
        }
        let isSame = token.isFor(asked.url) && asked.method == .get && asked.body == nil
        if !isSame { task.load.refuse(ResumeToken.refused("the token is for another request").at(asked.url)) }
        return task
    }

    /// Creates a download task for the classic API, whose sink holds the session and receives all events.
    package nonisolated func downloadTask(
        _ request: Request, decisions: Decisions?, sink: any LoadSink, inPlaceOf old: LoadTask<DownloadedFile>? = nil
    ) -> LoadTask<DownloadedFile> {
        if agent != nil {
            return backgroundDownload(
                request, DownloadOptions(), BackgroundOptions(), decisions?.challengesOnly, sink: sink)
        }
        let download = DownloadWork(DownloadOptions(), nil, core.configuration)
        let work = TaskWork(sink: sink, download: download, predecessor: old?.load.context)
        return LoadTask(TaskDriver(core, DownloadWork.request(request), decisions, work, holdsSession: true), self)
    }

    package nonisolated func downloadTask(
        resuming token: ResumeToken, request: Request? = nil, decisions: Decisions?, sink: any LoadSink,
        inPlaceOf old: LoadTask<DownloadedFile>? = nil
    ) -> LoadTask<DownloadedFile> {
        let request = DownloadWork.request(request ?? token.request)
        if agent != nil {
            return backgroundDownload(
                request, DownloadOptions(), BackgroundOptions(), decisions?.challengesOnly, sink: sink,
                resuming: token)
        }
        let download = DownloadWork(DownloadOptions(), token, core.configuration, page: .delivered)
        let work = TaskWork(sink: sink, download: download, predecessor: old?.load.context)
        return LoadTask(TaskDriver(core, request, decisions, work, holdsSession: true), self)
    }

    /// Runs a task on behalf of the calling task: cancelling the calling task cancels it.
    @concurrent
    private nonisolated func complete(_ task: LoadTask<DownloadedFile>) async throws(LoadError) -> DownloadedFile {
        task.resume()
        let load = task.load
        let result: Result<DownloadedFile, LoadError> = await withTaskCancellationHandler {
            while true {
                do throws(LoadError) { return .success(try await task.value) } catch {
                    // The wait was cancelled, but the call must not return before the load has ended.
                    guard load.state.withLock({ $0.outcome }) == nil else { return .failure(error) }
                    _ = await Task { try? await load.finished() }.value
                }
            }
        } onCancel: {
            load.stop(.cancelled)
        }
        return try result.get()
    }
}
