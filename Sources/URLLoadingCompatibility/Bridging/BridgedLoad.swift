// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// The core's load behind a task, for every kind of task.
enum BridgedLoad: Sendable {
    case data(LoadTask<Data>)
    case download(LoadTask<DownloadedFile>)
    case socket(WebSocketTask)
    case stream(StreamTask)

    func resume(_ priority: TaskPriority?) {
        switch self {
        case .data(let load): load.resume(priority: priority)
        case .download(let load): load.resume(priority: priority)
        case .socket(let socket): socket.resume()
        case .stream(let stream): stream.resume()
        }
    }

    /// Sets the load's decisions. To be called before the load begins.
    func decide(by decisions: Decisions) {
        switch self {
        case .data(let load): load.decide(by: decisions)
        case .download(let load): load.decide(by: decisions)
        case .socket(let socket): socket.decide(by: decisions)
        case .stream(let stream): stream.decide(by: decisions)
        }
    }

    /// Sets the options of a transfer of the background agent. To be called before the load begins.
    func setBackground(_ options: BackgroundOptions) {
        switch self {
        case .data(let load): load.setBackground(options)
        case .download(let load): load.setBackground(options)
        case .socket, .stream: break
        }
    }

    /// Acknowledges the end of a transfer of the background agent: the delegate's calls have returned.
    func delivered() {
        switch self {
        case .data(let load): load.delivered()
        case .download(let load): load.delivered()
        case .socket, .stream: break
        }
    }

    func prioritize(_ priority: TaskPriority) {
        switch self {
        case .data(let load): load.prioritize(priority)
        case .download(let load): load.prioritize(priority)
        case .socket, .stream: break
        }
    }

    func suspend() {
        switch self {
        case .data(let load): load.suspend()
        case .download(let load): load.suspend()
        // An open WebSocket reads only on request, so there is nothing to suspend.
        case .socket: break
        case .stream(let stream): stream.suspend()
        }
    }

    func cancel() {
        switch self {
        case .data(let load): load.cancel()
        case .download(let load): load.cancel()
        case .socket(let socket): socket.cancel()
        case .stream(let stream): stream.cancel()
        }
    }

    var snapshot: LoadSnapshot {
        switch self {
        case .data(let load): load.snapshot
        case .download(let load): load.snapshot
        case .socket(let socket): socket.snapshot
        case .stream(let stream): stream.snapshot
        }
    }
}
