// SPDX-License-Identifier: Apache-2.0

// The delegates of a task: its own, and those of its session.

import Synchronization
import URLLoadingIO

extension TaskBridge {
    /// The task's own delegate, or the session's if the task has none.
    var taskDelegate: (any URLSessionTaskDelegate)? {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        return task?.ownDelegate ?? session?.delegates.task
    }

    /// The session's delegate, which receives connection-level challenges.
    var sessionDelegate: (any URLSessionDelegate)? { state.withLock { $0.session }?.delegates.session }

    /// Whether neither the task nor its session has a delegate of any kind.
    var isWithoutDelegate: Bool {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        return task?.ownDelegate == nil && session?.delegates.session == nil
    }

    var downloadDelegate: (any URLSessionDownloadDelegate)? { delegate { $0.download } }
    var socketDelegate: (any URLSessionWebSocketDelegate)? { delegate { $0.socket } }
    var streamDelegate: (any URLSessionStreamDelegate)? { delegate { $0.stream } }
    var dataDelegate: (any URLSessionDataDelegate)? { delegate { $0.data } }

    /// The task's own delegate if it is of this kind, or the session's.
    private func delegate<Kind>(_ ofSession: (URLSession.Delegates) -> Kind?) -> Kind? {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        return task?.ownDelegate as? Kind ?? session.flatMap { ofSession($0.delegates) }
    }
}
