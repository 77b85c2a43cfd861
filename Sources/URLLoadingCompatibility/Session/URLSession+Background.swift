// SPDX-License-Identifier: Apache-2.0

// Background sessions: what they refuse, and the tasks for the transfers of earlier programs.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

// MARK: Refused tasks

extension URLSession {
    /// Returns why a background session cannot carry out a task, apart from its request and its body; `nil` if it can.
    final func misuse(in task: URLSessionTask, hasHandler: Bool) -> URLSessionMisuse? {
        let isTransfer = task is URLSessionUploadTask || task is URLSessionDownloadTask
        let kind: URLSessionMisuse.Kind? =
            !isTransfer
            ? .notPossibleInBackground
            : hasHandler ? .completionHandlerInBackground : delegate == nil ? .noDelegateInBackground : nil
        return kind.map { URLSessionMisuse(kind: $0, method: Self.maker(of: task), task: task) }
    }

    private static func maker(of task: URLSessionTask) -> String {
        switch task {
        case is URLSessionUploadTask: "uploadTask"
        case is URLSessionDownloadTask: "downloadTask"
        case is URLSessionWebSocketTask: "webSocketTask"
        case is URLSessionStreamTask: "streamTask"
        default: "dataTask"
        }
    }

    /// Reports a misuse that only the source of the task shows.
    final func misused(_ kind: URLSessionMisuse.Kind, _ bridge: TaskBridge) -> Result<BridgedLoad, LoadError> {
        guard let task = bridge.state.withLock({ $0.task }) else { return .failure(.notInBackground(nil, nil)) }
        let misuse = URLSessionMisuse(kind: kind, method: Self.maker(of: task), task: task)
        Self.misuseHandler(misuse)
        return .failure(.notInBackground(misuse, bridge.original))
    }

    final func uploadingInBackground(
        _ request: Request, _ source: UploadTicket.Source, _ bridge: TaskBridge
    ) -> Result<BridgedLoad, LoadError> {
        guard case .file(let file) = source else { return misused(.notPossibleInBackground, bridge) }
        var request = request
        // For the default Content-Type; the agent sends the file.
        request.setBody(.file(file))
        request.body = nil
        return .success(
            .data(core.backgroundUpload(request, fromFile: file, decisions: bridge.decisions, sink: bridge)))
    }
}

extension LoadError {
    static func notInBackground(_ misuse: URLSessionMisuse?, _ request: URLRequest?) -> LoadError {
        LoadError(
            .notPossibleInBackground, phase: .preparing, party: .local, url: request?.url,
            detail: misuse.map { "\($0.method) \($0.kind.rawValue)" })
    }
}

// MARK: Stored properties of tasks

/// The properties of a task that are stored in ``BackgroundOptions/userData`` of its transfer, for the next run of the
/// program. `taskDescription` is not among them: it is the transfer's label.
struct TransferMemory: Codable, Sendable {
    var taskIdentifier: Int
    var expectsToSend: Int64
    var expectsToReceive: Int64
}

extension URLSessionTask {
    /// The options of the transfer that carries out this task.
    final var transferOptions: BackgroundOptions {
        let memory = TransferMemory(
            taskIdentifier: taskIdentifier, expectsToSend: countOfBytesClientExpectsToSend,
            expectsToReceive: countOfBytesClientExpectsToReceive)
        var options = BackgroundOptions(
            label: taskDescription ?? "", userData: (try? JSONEncoder().encode(memory)) ?? Data())
        options.earliestBegin = earliestBeginDate
        return options
    }

    fileprivate final func restore(_ transfer: BackgroundTransfer, _ memory: TransferMemory?) {
        if !transfer.label.isEmpty { taskDescription = transfer.label }
        guard let memory else { return }
        countOfBytesClientExpectsToSend = memory.expectsToSend
        countOfBytesClientExpectsToReceive = memory.expectsToReceive
    }
}

// MARK: Tasks of an earlier program

extension URLSession {
    /// The identifier before that of the first new task of a background session. Tasks of earlier programs keep theirs,
    /// so those of new tasks begin above them: at the time, in microseconds.
    static func firstIdentifier() -> Int { Int(max(0, Date().timeIntervalSince1970 * 1e6)) }

    /// Creates the tasks of the transfers that earlier programs have begun, and delivers their events.
    final func adoptTransfers() {
        let transfers = core.background
        // Weak, so that a session without references ends (and these calls with it).
        let adopt = { @Sendable [weak self] (transfer: BackgroundTransfer) in self?.adopt(transfer) }
        let adopted = { @Sendable [weak self] in self?.noteAdoption() ?? () }
        let finished = { @Sendable [weak self] in self?.finishEvents() ?? () }
        // Not on the event loop: each adopted task is announced to the delegate, whose method may block.
        Task { await transfers.adopt(adopt, adopted: adopted, finished: finished) }
    }

    private final func finishEvents() {
        lane.append(
            .call { [self] in delegate?.urlSessionDidFinishEvents(forBackgroundURLSession: self) })
    }

    private final func noteAdoption() {
        let waiting = members.withLock { $0.adoption.take() } ?? []
        for call in waiting { call() }
    }

    /// Runs a closure once the session has the tasks of earlier programs.
    final func whenAdopted(_ call: @escaping @Sendable () -> Void) {
        let isDone = members.withLock { members in
            members.adoption?.append(call)
            return members.adoption == nil
        }
        if isDone { call() }
    }

    final func untilAdopted() async {
        await withCheckedContinuation { continuation in whenAdopted { continuation.resume() } }
    }

    private final func adopt(_ transfer: BackgroundTransfer) -> AdoptedLoad? {
        guard let url = transfer.url, !members.withLock({ $0.isInvalid }) else { return nil }
        var request = URLRequest(url: url)
        request.httpMethod = transfer.method.rawValue
        let memory = try? JSONDecoder().decode(TransferMemory.self, from: transfer.userData)
        switch transfer.kind {
        case .download:
            return adopt(transfer, .init(request: request, kind: .download), memory) { URLSessionDownloadTask($0) }
        case .upload: return adopt(transfer, .init(request: request, kind: .data), memory) { URLSessionUploadTask($0) }
        }
    }

    private final func adopt(
        _ transfer: BackgroundTransfer, _ setup: TaskBridge.Setup, _ memory: TransferMemory?,
        _ make: (TaskBridge) -> URLSessionTask
    ) -> AdoptedLoad? {
        var adopted: AdoptedLoad?
        var setup = setup
        setup.identifier = memory?.taskIdentifier
        let task = makeTask(setup, make) { bridge in
            self.requested(setup.request, for: bridge).map { made in
                let load = core.adopt(transfer, made, decisions: bridge.decisions, sink: bridge)
                adopted = load
                return switch load {
                case .download(let load): .download(load)
                case .upload(let load): .data(load)
                }
            }
        }
        task.restore(transfer, memory)
        if transfer.state != .suspended { task.resume() }
        return adopted
    }
}
