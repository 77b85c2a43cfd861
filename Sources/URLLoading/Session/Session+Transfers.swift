public import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

extension Session {
    // MARK: Upload

    /// Sends a body and collects the answer: ``data(for:decisions:)`` with a body.
    ///
    /// ```swift
    /// let (answer, response) = try await session.upload(Request(url: url, method: .put), from: .file(file))
    /// ```
    /// - Parameters:
    ///   - request: its method should be one with a body, such as PUT or POST; a body it has is replaced.
    ///   - body: what is sent.
    /// - Throws: as ``data(for:decisions:)``.
    @concurrent
    public nonisolated func upload(
        _ request: Request, from body: RequestBody, decisions: Decisions? = nil
    ) async throws(LoadError) -> (Data, Response) {
        var request = request
        request.body = body
        return try await data(for: request, decisions: decisions)
    }

    /// Makes a task that sends a body when it is resumed. It is a data task: what is answered comes the same
    /// way, and ``LoadEvent/bodySent(_:)`` tells how far it is.
    ///
    /// A body that is ``RequestBody/provided``, without a decision that gives one, makes a task that has
    /// failed with ``LoadError/Reason/badRequest`` (checklist 126).
    public nonisolated func uploadTask(
        _ request: Request, from body: RequestBody, decisions: Decisions? = nil
    ) -> LoadTask<Data> {
        var request = request
        request.body = body
        let load = TaskDriver(core, request, decisions)
        if case .provided = body.content, (decisions?.bodyProvider ?? core.decisions?.bodyProvider) == nil {
            load.refuse(.noBody(request.url))
        }
        return LoadTask(load, self)
    }

    // MARK: Download

    /// Loads a body into a file, which appears under its name when it is complete, and not before.
    ///
    /// ```swift
    /// try await session.download(Request(url: url), to: URL(filePath: "/srv/data.iso"))
    /// ```
    /// Content is asked for without a coding (`Accept-Encoding: identity`, unless the request says otherwise), for a
    /// coded body cannot be resumed. If a server codes it all the same, the body is decoded, and the download gives no
    /// token. A response with an error status is a response, and its body is what is saved: see
    /// ``DownloadOptions/requiresSuccess`` to refuse it.
    /// - Parameters:
    ///   - destination: a `file` URL; its folder must exist. A file that is there is replaced.
    ///   - synchronizing: whether content and name are on the disk when this returns (`fsync`).
    ///   - decisions: go before the session's own.
    /// - Throws: ``LoadError``, with a ``LoadError/resumeToken`` if the download can go on later. Cancelling the
    ///   calling task ends the load; when this throws, socket and file are released.
    @concurrent @discardableResult
    public nonisolated func download(
        _ request: Request, to destination: URL, synchronizing: Bool = false, decisions: Decisions? = nil
    ) async throws(LoadError) -> Response {
        let options = DownloadOptions(destination: destination, synchronizes: synchronizing)
        return try await complete(downloadTask(request, options: options, decisions: decisions)).response
    }

    /// Goes on with a download that was interrupted; see ``ResumeToken``. A server that has something else by now says so
    /// with 200, and all of it is loaded. With any other answer than that and the rest itself (a 206 that repeats the
    /// validator, RFC 9110 §15.3.7) the load fails: the error carries the response (``LoadError/response``) and the token,
    /// and what is held stays for another time.
    /// - Parameters:
    ///   - request: brings credentials that tokens do not hold, and must have the token's URL; `nil` for what
    ///     the token says.
    /// - Throws: as ``download(_:to:synchronizing:decisions:)``; ``LoadError/Reason/invalidResumeToken``,
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

    /// Loads a body into a temporary file and lends it. It is removed when the closure returns or throws,
    /// unless it was moved.
    ///
    /// ```swift
    /// try await session.download(request) { file in
    ///     try file.move(to: folder.appending(path: file.response.suggestedFileName))
    /// }
    /// ```
    /// - Parameter use: runs where the caller runs.
    /// - Throws: ``LoadError``, or what the closure throws.
    public nonisolated(nonsending) func download<R>(
        _ request: Request, decisions: Decisions? = nil,
        _ use: nonisolated(nonsending) (DownloadedFile) async throws -> R
    ) async throws -> R {
        try await use(try await complete(downloadTask(request, decisions: decisions)))
    }

    /// Makes a task that loads a body into a file when it is resumed. It runs by itself: nobody has to read.
    ///
    /// ```swift
    /// let task = session.downloadTask(request, options: DownloadOptions(destination: place))
    /// task.resume()
    /// for await case .received(let bytes) in task.events { bar.update(bytes.total, of: bytes.expected) }
    /// let file = try await task.value
    /// ```
    /// ``LoadEvent/received(_:)`` counts bytes that are in the file. The request may have a body.
    public nonisolated func downloadTask(
        _ request: Request, options: DownloadOptions = DownloadOptions(), decisions: Decisions? = nil
    ) -> LoadTask<DownloadedFile> {
        let work = DownloadWork(options, nil, core.configuration)
        return LoadTask(TaskDriver(core, DownloadWork.request(request), decisions, download: work), self)
    }

    /// Makes a task that goes on with a download that was interrupted. Its events have
    /// ``LoadEvent/resumed(offset:expected:)`` before any ``LoadEvent/received(_:)``.
    /// - Parameter request: see ``download(resuming:request:to:synchronizing:decisions:)``. One with another
    ///   URL, a body or another method than GET makes a task that has failed with
    ///   ``LoadError/Reason/invalidResumeToken``.
    public nonisolated func downloadTask(
        resuming token: ResumeToken, request: Request? = nil, options: DownloadOptions = DownloadOptions(),
        decisions: Decisions? = nil
    ) -> LoadTask<DownloadedFile> {
        let work = DownloadWork(options, token, core.configuration)
        let asked = DownloadWork.request(request ?? token.request)
        let load = TaskDriver(core, asked, decisions, download: work)
        let isSame = token.isFor(asked.url) && asked.method == .get && asked.body == nil
        if !isSame { load.refuse(ResumeToken.refused("it is for another request").at(asked.url)) }
        return LoadTask(load, self)
    }

    /// For the classic shape, which holds its session and hears of everything.
    package nonisolated func downloadTask(
        _ request: Request, decisions: Decisions?, sink: any LoadSink
    ) -> LoadTask<DownloadedFile> {
        let work = DownloadWork(DownloadOptions(), nil, core.configuration)
        return LoadTask(
            TaskDriver(core, DownloadWork.request(request), decisions, sink: sink, download: work, holdsSession: true),
            self)
    }

    package nonisolated func downloadTask(
        resuming token: ResumeToken, request: Request? = nil, decisions: Decisions?, sink: any LoadSink
    ) -> LoadTask<DownloadedFile> {
        let work = DownloadWork(DownloadOptions(), token, core.configuration, page: .delivered)
        let request = DownloadWork.request(request ?? token.request)
        return LoadTask(TaskDriver(core, request, decisions, sink: sink, download: work, holdsSession: true), self)
    }

    /// Runs a task as its caller: cancelling one ends the other.
    @concurrent
    private nonisolated func complete(_ task: LoadTask<DownloadedFile>) async throws(LoadError) -> DownloadedFile {
        task.resume()
        let load = task.load
        let result: Result<DownloadedFile, LoadError> = await withTaskCancellationHandler {
            while true {
                do throws(LoadError) { return .success(try await task.value) } catch {
                    // The end of the load is waited for, not only of our wait.
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

extension ResumeToken {
    /// Whether it is for this URL, userinfo aside.
    public func isFor(_ url: URL) -> Bool { self.url.withoutUserinfo == url.withoutUserinfo }

    /// What its download asked for.
    var request: Request {
        var request = Request(url: url)
        for field in record.fields { request.headers.append(FieldName(field[0]), field[1]) }
        return request
    }
}
