import Foundation
import URLLoading

/// The load behind a task, whatever comes of it.
enum BridgedLoad: Sendable {
    case data(LoadTask<Data>)
    case download(LoadTask<DownloadedFile>)

    func resume(_ priority: TaskPriority?) {
        switch self {
        case .data(let load): load.resume(priority: priority)
        case .download(let load): load.resume(priority: priority)
        }
    }

    func prioritize(_ priority: TaskPriority) {
        switch self {
        case .data(let load): load.prioritize(priority)
        case .download(let load): load.prioritize(priority)
        }
    }

    func suspend() {
        switch self {
        case .data(let load): load.suspend()
        case .download(let load): load.suspend()
        }
    }

    func cancel() {
        switch self {
        case .data(let load): load.cancel()
        case .download(let load): load.cancel()
        }
    }

    var snapshot: LoadSnapshot {
        switch self {
        case .data(let load): load.snapshot
        case .download(let load): load.snapshot
        }
    }
}
