// SPDX-License-Identifier: Apache-2.0

// The delegates of a task: its own, and those of its session.

import Foundation
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

    var downloadDelegate: (any URLSessionDownloadDelegate)? {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        if let own = task?.ownDelegate as? any URLSessionDownloadDelegate { return own }
        return session?.delegates.download
    }

    var socketDelegate: (any URLSessionWebSocketDelegate)? {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        if let own = task?.ownDelegate as? any URLSessionWebSocketDelegate { return own }
        return session?.delegates.socket
    }

    var streamDelegate: (any URLSessionStreamDelegate)? {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        if let own = task?.ownDelegate as? any URLSessionStreamDelegate { return own }
        return session?.delegates.stream
    }

    var dataDelegate: (any URLSessionDataDelegate)? {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        if let own = task?.ownDelegate as? any URLSessionDataDelegate { return own }
        return session?.delegates.data
    }
}
