// SPDX-License-Identifier: Apache-2.0

// The members of a session: its delegate and the tasks that are not over. The session ends when both are gone.

import Synchronization
import URLLoadingIO

extension URLSession {
    struct Members: Sendable {
        var delegates: Delegates
        var description: String?
        var tasks: [Int: URLSessionTask] = [:]
        var lastIdentifier = 0
        var isInvalid = false
        var isEmptied = false
        /// The calls that wait until a background session has the tasks of earlier programs; `nil` if none has to.
        var adoption: [@Sendable () -> Void]?
    }

    /// The delegate, cast to each protocol once, because casts are slow.
    struct Delegates: Sendable {
        let session: (any URLSessionDelegate)?
        let task: (any URLSessionTaskDelegate)?
        let data: (any URLSessionDataDelegate)?
        let download: (any URLSessionDownloadDelegate)?
        let socket: (any URLSessionWebSocketDelegate)?
        let stream: (any URLSessionStreamDelegate)?

        init(_ delegate: (any URLSessionDelegate)?) {
            session = delegate
            task = delegate as? any URLSessionTaskDelegate
            data = delegate as? any URLSessionDataDelegate
            download = delegate as? any URLSessionDownloadDelegate
            socket = delegate as? any URLSessionWebSocketDelegate
            stream = delegate as? any URLSessionStreamDelegate
        }
    }

    // MARK: Tasks

    /// The tasks that are neither over nor cancelled, by kind: data, upload, download.
    public var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async {
            await untilAdopted()
            return Self.byKind(currentTasks)
        }
    }

    static func byKind(
        _ tasks: [URLSessionTask]
    ) -> ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        let uploads = tasks.compactMap { $0 as? URLSessionUploadTask }
        let others = tasks.filter { !($0 is URLSessionUploadTask) }
        return (
            others.compactMap { $0 as? URLSessionDataTask }, uploads, tasks.compactMap { $0 as? URLSessionDownloadTask }
        )
    }

    /// All tasks that are neither over nor cancelled.
    public var allTasks: [URLSessionTask] {
        get async {
            await untilAdopted()
            return currentTasks
        }
    }

    /// The tasks that are neither over nor cancelled, in the order of their creation. A cancelled task is a member
    /// until its last call was made.
    final var currentTasks: [URLSessionTask] {
        let tasks = members.withLock { $0.tasks }
        return tasks.sorted { $0.key < $1.key }.map(\.value).filter { [.running, .suspended].contains($0.state) }
    }

    // MARK: The end

    /// Removes a task that has made its last call.
    final func left(_ identifier: Int) {
        let isInvalid = members.withLock { members in
            members.tasks[identifier] = nil
            return members.isInvalid
        }
        if isInvalid { settle() }
    }

    /// Makes the delegate's last call, after that of every task.
    final func settle() {
        let isEmptied = members.withLock { members in
            guard members.isInvalid, members.tasks.isEmpty, !members.isEmptied else { return false }
            members.isEmptied = true
            return true
        }
        guard isEmptied else { return }
        lane.append(
            .call { [self] in
                delegate?.urlSession(self, didBecomeInvalidWithError: nil)
                let delegates = members.withLock { members in
                    defer { members.delegates = Delegates(nil) }
                    return members.delegates
                }
                withExtendedLifetime(delegates) {}  // Its deinit may run code of the program: not under the lock.
            })
    }
}
