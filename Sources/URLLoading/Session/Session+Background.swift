// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingWire

extension Session {
    /// The transfers of a background session (``Configuration/background(_:)``), their events, and what they survive.
    public nonisolated var background: BackgroundTransfers { BackgroundTransfers(core: core, connection: agent) }

    /// Creates a download task whose transfer outlives this process: ``downloadTask(_:options:decisions:)`` with
    /// options for the background.
    ///
    /// ```swift
    /// let task = session.downloadTask(request, options: .init(destination: place), background: .init(label: "film"))
    /// task.resume()
    /// try await task.accepted
    /// ```
    public nonisolated func downloadTask(
        _ request: Request, options: DownloadOptions = DownloadOptions(), background: BackgroundOptions,
        decisions: Decisions? = nil
    ) -> LoadTask<DownloadedFile> {
        backgroundDownload(request, options, background, decisions, sink: nil)
    }

    /// Creates an upload task whose transfer outlives this process.
    /// - Parameter file: a `file` URL. The file must stay as it is until the task is over.
    public nonisolated func uploadTask(
        _ request: Request, fromFile file: URL, background: BackgroundOptions, decisions: Decisions? = nil
    ) -> LoadTask<Data> {
        backgroundUpload(request, .file(file), background, decisions, sink: nil)
    }

    /// - Parameter sink: the classic task; the event is acknowledged when it was delivered to the program
    ///   (``LoadTask/delivered()``).
    nonisolated func backgroundDownload(
        _ request: Request, _ options: DownloadOptions, _ own: BackgroundOptions, _ decisions: Decisions?,
        sink: (any LoadSink)?, resuming token: ResumeToken? = nil
    ) -> LoadTask<DownloadedFile> {
        let request = DownloadWork.request(request)
        var order = TransferOrder(download: request, options, own, core.configuration)
        order.resumption = token?.data
        let work = DownloadWork(options, nil, core.configuration)
        let load = TaskDriver(
            core, request, decisions,
            TaskWork(sink: sink, download: work, background: agent.map { BackgroundWork($0, order) }),
            holdsSession: sink != nil)
        if sink != nil { load.background?.waitForClosure() }
        check(load, order, decisions)
        if options.resumeFile != nil {
            load.refuse(.notInBackground("resumeFile: the agent keeps what continues a transfer", request.url))
        }
        return LoadTask(load, self)
    }

    /// Creates an upload task for the classic API, whose transfer outlives this process.
    package nonisolated func backgroundUpload(
        _ request: Request, fromFile file: URL, decisions: Decisions?, sink: any LoadSink
    ) -> LoadTask<Data> {
        backgroundUpload(request, .file(file), BackgroundOptions(), decisions?.challengesOnly, sink: sink)
    }

    nonisolated func backgroundUpload(
        _ request: Request, _ body: RequestBody, _ own: BackgroundOptions, _ decisions: Decisions?,
        sink: (any LoadSink)?
    ) -> LoadTask<Data> {
        var request = request
        let file = body.wholeFile
        request.body = file == nil ? body : nil
        if !request.headers.contains(.contentType), let type = body.contentType { request.headers[.contentType] = type }
        let order = TransferOrder(upload: request, file ?? URL(filePath: "/"), own, core.configuration)
        let load = TaskDriver(
            core, request, decisions, TaskWork(sink: sink, background: agent.map { BackgroundWork($0, order) }),
            holdsSession: sink != nil)
        if sink != nil { load.background?.waitForClosure() }
        check(load, order, decisions)
        return LoadTask(load, self)
    }

    /// Fails a task that the agent could not carry out.
    private nonisolated func check(_ load: TaskDriver, _ order: TransferOrder, _ decisions: Decisions?) {
        do throws(LoadError) {
            _ = try background.checked()
            if let problem = BackgroundCrossing.problem(decisions) { throw .notInBackground(problem) }
            try order.check(load.original)
        } catch {
            load.refuse(error.at(load.original.url))
        }
    }

    /// Runs an upload task on behalf of the calling task: cancelling the calling task cancels it.
    @concurrent
    nonisolated func complete(_ task: LoadTask<Data>) async throws(LoadError) -> (Data, Response) {
        task.resume()
        let result: Result<Data, LoadError> = await withTaskCancellationHandler {
            do throws(LoadError) { return .success(try await task.value) } catch { return .failure(error) }
        } onCancel: {
            task.cancel()
        }
        let data = try result.get()
        return (data, try await task.response)
    }
}

extension Decisions {
    /// The decision about challenges alone: the agent asks a delegate for no other.
    var challengesOnly: Decisions {
        var decisions = Decisions()
        decisions.challenge = challenge
        return decisions
    }
}

extension RequestBody {
    /// The file whose whole content is the body; `nil` for other bodies.
    fileprivate var wholeFile: URL? {
        guard case .parts(let parts) = content, parts.count == 1, case .file(let path, nil) = parts[0] else {
            return nil
        }
        return URL(filePath: path)
    }
}
