// How tasks are made that send bodies, and those that load files.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension URLSession {
    final func makeUpload(_ request: URLRequest, _ body: RequestBody, _ handler: TaskBridge.Handler?) -> URLSessionUploadTask {
        makeTask(request, .data, handler, { URLSessionUploadTask($0) }) {
            load(request, $0) { made, bridge in
                var made = made
                made.setBody(body)
                return pushed(made, bridge)
            }
        }
    }

    final func makeDownload(_ request: URLRequest, _ handler: TaskBridge.Handler?) -> URLSessionDownloadTask {
        makeTask(request, .download, handler, { URLSessionDownloadTask($0) }) {
            load(request, $0) { made, bridge in
                .success(.download(core.downloadTask(made, decisions: bridge.decisions, sink: bridge)))
            }
        }
    }

    final func makeResumed(_ data: Data, _ handler: TaskBridge.Handler?) -> URLSessionDownloadTask {
        let token = Result { () throws(LoadError) in try ResumeToken(data) }
        var request = URLRequest()
        if case .success(let token) = token { request = URLRequest(url: token.url) }
        return makeTask(request, .download, handler, { URLSessionDownloadTask($0) }) { bridge in
            bridge.state.withLock { $0.isResumption = true }
            return token.map { .download(core.downloadTask(resuming: $0, decisions: bridge.decisions, sink: bridge)) }
        }
    }

    /// Another load for a task whose own has not begun.
    final func makeLoad(
        _ request: URLRequest, _ bridge: TaskBridge, like task: URLSessionTask, _ old: BridgedLoad
    ) -> Result<BridgedLoad, LoadError> {
        requested(request, for: bridge).flatMap { made in
            switch old {
            case .download: return .success(.download(core.downloadTask(made, decisions: bridge.decisions, sink: bridge)))
            case .data(let load):
                var made = made
                if task is URLSessionUploadTask, let body = load.request.body { made.setBody(body) }
                return pushed(made, bridge)
            // What is no HTTP any more keeps its request.
            case .socket, .stream: return .success(old)
            }
        }
    }
}

/// In the `userInfo` of the error of a download that can be gone on with: `Data`.
public let URLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"
/// Apple's newer name of ``URLSessionDownloadTaskResumeData``.
public let NSURLSessionDownloadTaskResumeData = URLSessionDownloadTaskResumeData

extension TaskBridge {
    /// Ends the load; `then` hears what is needed to go on with it.
    func cancel(_ then: @escaping @Sendable (Data?) -> Void) {
        if let spool { return cancel(spool, then) }
        guard case .download(let load)? = state.withLock({ $0.load }) else {
            // Over, or unable to begin.
            cancel()
            return then(nil)
        }
        Task {
            let token = await load.cancelProducingResumeToken()
            cancel(LoadError(.cancelled, phase: .deciding, party: .local, url: original.url).with(token))
            then(token?.data)
        }
    }
}
