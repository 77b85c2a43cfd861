// SPDX-License-Identifier: Apache-2.0

// The creation of upload and download tasks.

public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension URLSession {
    final func makeUpload(_ request: URLRequest, _ source: UploadTicket.Source, _ handler: TaskBridge.Handler?)
        -> URLSessionUploadTask
    {
        makeTask(.init(request: request, kind: .data, handler: handler), { URLSessionUploadTask($0) }) {
            // The body of an upload is not that of its request.
            $0.state.withLock { $0.active?.stream = nil }
            return load(request, $0) { made, bridge in
                values.isBackground ? uploadingInBackground(made, source, bridge) : uploading(made, source, bridge)
            }
        }
    }

    private final func uploading(
        _ request: Request, _ source: UploadTicket.Source, _ bridge: TaskBridge, inPlaceOf old: LoadTask<Data>? = nil
    ) -> Result<BridgedLoad, LoadError> {
        var request = request
        request.setBody(source.body)
        guard let upload = UploadWork(request, source) else { return pushed(request, bridge, inPlaceOf: old) }
        return uploading(upload, .upload(upload), bridge, inPlaceOf: old)
    }

    private final func uploading(
        _ upload: UploadWork, _ origin: TaskBridge.Origin, _ bridge: TaskBridge, inPlaceOf old: LoadTask<Data>? = nil
    ) -> Result<BridgedLoad, LoadError> {
        bridge.state.withLock { $0.active?.origin = origin }
        return .success(.data(core.uploadTask(upload, decisions: bridge.decisions, sink: bridge, inPlaceOf: old)))
    }

    final func makeDownload(_ request: URLRequest, _ handler: TaskBridge.Handler?) -> URLSessionDownloadTask {
        makeTask(.init(request: request, kind: .download, handler: handler), { URLSessionDownloadTask($0) }) {
            load(request, $0) { made, bridge in
                .success(.download(core.downloadTask(made, decisions: bridge.decisions, sink: bridge)))
            }
        }
    }

    final func makeResumed(_ data: Data, _ handler: TaskBridge.Handler?) -> URLSessionDownloadTask {
        let token = Result { () throws(LoadError) in try ResumeToken(data) }
        var request = URLRequest()
        if case .success(let token) = token { request = URLRequest(url: token.url) }
        return makeTask(.init(request: request, kind: .download, handler: handler), { URLSessionDownloadTask($0) }) {
            bridge in
            token.flatMap { resumed($0, bridge) }
        }
    }

    /// Creates a download that resumes with its original request instead of the one stored in the token.
    final func makeDownload(_ request: URLRequest, resuming token: ResumeToken) -> URLSessionDownloadTask {
        makeTask(.init(request: request, kind: .download), { URLSessionDownloadTask($0) }) {
            load(request, $0) { made, bridge in
                .success(
                    .download(
                        core.downloadTask(resuming: token, request: made, decisions: bridge.decisions, sink: bridge)))
            }
        }
    }

    final func makeResumedUpload(_ data: Data, _ handler: TaskBridge.Handler?) -> URLSessionUploadTask {
        let ticket = Result { () throws(LoadError) in try UploadTicket(data) }
        var request = URLRequest()
        if case .success(let ticket) = ticket { request = URLRequest(ticket.request, like: request) }
        return makeTask(.init(request: request, kind: .data, handler: handler), { URLSessionUploadTask($0) }) {
            bridge in
            values.isBackground ? misused(.resumesInBackground, bridge) : ticket.flatMap { resumed($0, bridge) }
        }
    }

    private final func resumed(
        _ token: ResumeToken, _ bridge: TaskBridge, inPlaceOf old: LoadTask<DownloadedFile>? = nil
    ) -> Result<BridgedLoad, LoadError> {
        bridge.state.withLock { $0.active?.origin = .resumedDownload(token) }
        return .success(
            .download(core.downloadTask(resuming: token, decisions: bridge.decisions, sink: bridge, inPlaceOf: old)))
    }

    private final func resumed(
        _ ticket: UploadTicket, _ bridge: TaskBridge, inPlaceOf old: LoadTask<Data>? = nil
    ) -> Result<BridgedLoad, LoadError> {
        let upload = UploadWork(ticket)
        return uploading(upload, .resumedUpload(ticket, upload), bridge, inPlaceOf: old)
    }

    /// Creates another load for a task whose load has not begun, in the place of that load: a session that finishes its
    /// tasks waits for it.
    final func makeLoad(
        _ request: URLRequest, _ bridge: TaskBridge, like task: URLSessionTask, _ old: BridgedLoad
    ) -> Result<BridgedLoad, LoadError> {
        let origin = bridge.state.withLock { $0.active?.origin } ?? .request
        switch (old, origin) {
        case (.download(let load), .resumedDownload(let token)) where request == bridge.original:
            return resumed(token, bridge, inPlaceOf: load)
        case (.data(let load), .resumedUpload(let ticket, _)) where request == bridge.original:
            return resumed(ticket, bridge, inPlaceOf: load)
        default: break
        }
        return requested(request, for: bridge).flatMap { made in
            switch old {
            case .download(let load):
                return .success(
                    .download(core.downloadTask(made, decisions: bridge.decisions, sink: bridge, inPlaceOf: load)))
            case .data(let load):
                if let upload = origin.upload { return uploading(made, upload.source, bridge, inPlaceOf: load) }
                var made = made
                if task is URLSessionUploadTask, let body = load.request.body { made.setBody(body) }
                return pushed(made, bridge, inPlaceOf: load)
            // WebSockets and streams keep their request.
            case .socket, .stream: return .success(old)
            }
        }
    }
}

extension UploadTicket.Source {
    /// The whole body of the upload.
    fileprivate var body: RequestBody {
        switch self {
        case .data(let data): .data(data)
        case .file(let url): .file(url)
        case .provided: .provided
        }
    }
}

/// The key of resume data (`Data`) in the `userInfo` of a failed download's error. Reading it keeps the partial file on
/// the disk; otherwise the file is deleted with the last copy of the error.
public let URLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"
/// Apple's newer name of ``URLSessionDownloadTaskResumeData``.
public let NSURLSessionDownloadTaskResumeData = URLSessionDownloadTaskResumeData
/// The key of resume data (`Data`) in the `userInfo` of a failed upload's error, for
/// ``URLSession/uploadTask(withResumeData:)``.
public let NSURLSessionUploadTaskResumeData = "NSURLSessionUploadTaskResumeData"

extension URLError {
    /// The data with which a failed download can be resumed; `nil` if it would have to restart. Reading it keeps the
    /// partial file until the download is resumed; otherwise the file is deleted with the error.
    public var downloadTaskResumeData: Data? { userInfo[URLSessionDownloadTaskResumeData] as? Data }

    /// The data with which a failed upload can be resumed; `nil` if it would have to restart.
    public var uploadTaskResumeData: Data? { userInfo[NSURLSessionUploadTaskResumeData] as? Data }
}

extension TaskBridge {
    /// Wraps a handler of the program that is called before the task's last call, which waits until the handler has
    /// returned.
    private func beforeLastCall(_ handler: @escaping @Sendable (Data?) -> Void) -> @Sendable (Data?) -> Void {
        state.withLock { $0.mailbox.awaitHandler() }
        // The handler may block, and the load ends on the event loop.
        return { [self] data in
            BlockingThreads.programs.run { [self] in
                handler(data)
                state.withLock { $0.mailbox.handlerReturned() }
                schedule()
            }
        }
    }

    /// Ends the load and passes the data with which it can be resumed to `handler`.
    func cancel(_ handler: @escaping @Sendable (Data?) -> Void) {
        let then = beforeLastCall(handler)
        if let spool { return cancel(spool, then) }
        guard case .download(let load)? = state.withLock({ $0.load }) else {
            // The load has ended or could not begin.
            cancel()
            return then(nil)
        }
        Task.onLoop { [self] in
            let token = await load.cancelProducingResumeToken()
            cancel(cancellation.with(token))
            then(token?.data)
        }
    }
}

extension TaskBridge {
    /// Ends an upload and passes the data with which it can be resumed to `handler`.
    func cancelUpload(_ handler: @escaping @Sendable (Data?) -> Void) {
        let then = beforeLastCall(handler)
        let (upload, load) = state.withLock { state in
            (state.isCanceled || state.mailbox.hasEnded ? nil : state.active?.origin.upload, state.load)
        }
        guard let upload else {
            // The load has ended, could not begin, or cannot be resumed.
            cancel()
            return then(nil)
        }
        // Bytes sent from here on would have to be sent again.
        load?.suspend()
        Task.onLoop { [self] in
            let ticket = await upload.ticket()
            let isOver = state.withLock { state in
                if !state.mailbox.hasEnded, let ticket { state.remainder = .ticket(ticket) }
                return state.mailbox.hasEnded
            }
            cancel()
            then(isOver ? nil : ticket?.data)
        }
    }

    /// Records the end of the load, and the state from which a failed upload can be resumed.
    func finishUpload(_ error: LoadError?) {
        let upload = state.withLock { $0.isCanceled ? nil : $0.active?.origin.upload }
        guard let error, let upload else { return finish(error) }
        Task.onLoop { [self] in
            let ticket = await upload.ticket()
            state.withLock { state in
                if !state.isCanceled, let ticket { state.remainder = .ticket(ticket) }
            }
            finish(error)
        }
    }
}
