// SPDX-License-Identifier: Apache-2.0

// The calls of a task to its delegate or completion handler, made on the lane.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension TaskBridge: LaneCaller {
    /// Makes the calls that are due. Called on the lane, or where the load ended if they are only the library's own.
    func makeCalls() {
        guard state.withLock({ $0.mailbox.beginTurn() }) else { return lane.append(.caller(self)) }
        for _ in 0..<lane.callsPerTurn {
            let (next, idle) = state.withLock { state in
                let next = state.mailbox.next()
                return (next, next == nil ? state.mailbox.takeIdle() : nil)
            }
            guard let (call, waiter) = next else { return idle?.resume() ?? () }
            make(call)
            waiter?.resume()
        }
        let (hasMore, idle) = state.withLock { state in
            let hasMore = state.mailbox.endTurn()
            return (hasMore, hasMore ? nil : state.mailbox.takeIdle())
        }
        idle?.resume()
        if hasMore { lane.append(.caller(self)) }
    }

    private func make(_ call: Mailbox.Call) {
        let (session, task) = state.withLock { ($0.session, $0.task) }
        guard let session, let task else { return }
        switch call {
        case .waiting: taskDelegate?.urlSession(session, taskIsWaitingForConnectivity: task)
        case .informational(let response):
            taskDelegate?.urlSession(session, task: task, didReceiveInformationalResponse: response)
        case .sent(let bytes):
            taskDelegate?.urlSession(
                session, task: task, didSendBodyData: Int64(bytes.count), totalBytesSent: bytes.total,
                totalBytesExpectedToSend: bytes.expected ?? -1)
        case .question(let question): question.put()
        case .response(let response): ask(response, session, task)
        case .resumed(let offset, let expected):
            guard let task = task as? URLSessionDownloadTask else { return }
            downloadDelegate?.urlSession(
                session, downloadTask: task, didResumeAtOffset: offset, expectedTotalBytes: expected ?? -1)
        case .data(let data):
            guard let task = task as? URLSessionDataTask else { return }
            dataDelegate?.urlSession(session, dataTask: task, didReceive: data)
        case .written(let bytes):
            guard let task = task as? URLSessionDownloadTask else { return }
            downloadDelegate?.urlSession(
                session, downloadTask: task, didWriteData: Int64(bytes.count), totalBytesWritten: bytes.total,
                totalBytesExpectedToWrite: bytes.expected ?? -1)
        case .saved:
            guard let task = task as? URLSessionDownloadTask else { return }
            // The file is removed when the task is over, unless the program moves it.
            if let file = savedFile {
                downloadDelegate?.urlSession(session, downloadTask: task, didFinishDownloadingTo: file.url)
            }
        case .becameDownload(let old, let new):
            dataDelegate?.urlSession(session, dataTask: old, didBecome: new)
            // The task may have been cancelled.
            if isHeld { Task.onLoop { await self.openSpool() } }
        case .becameStream(let stream):
            session.announce(stream)
            if let task = task as? URLSessionDataTask {
                dataDelegate?.urlSession(session, dataTask: task, didBecome: stream)
            }
            leave(session, task)
            stream.resume()
            // Not before, so that the delegate has met the task whose end it is notified of.
            if let bridge = stream.bridge, let connection = bridge.stream { bridge.follow(connection) }
        case .opened, .closed: deliver(call, session, task as? URLSessionWebSocketTask)
        case .readClosed, .writeClosed, .betterRoute, .captured: deliver(call, session, task as? URLSessionStreamTask)
        case .metrics(let metrics):
            let path = LazyNetworkPath(session.core.networkMonitor)
            taskDelegate?.urlSession(
                session, task: task, didFinishCollecting: URLSessionTaskMetrics(metrics, original, path))
        case .finished(let error): end(error, session, task)
        }
    }

    /// The task's error; available as soon as the task is over, before the delegate is notified.
    var error: (any Error)? {
        let (error, ticket) = state.withLock { ($0.mailbox.error, $0.remainder.ticket) }
        return error.map { $0.classic(ticket) }
    }

    private func end(_ error: LoadError?, _ session: URLSession, _ task: URLSessionTask) {
        let (ticket, handler, response, body) = state.withLock { state in
            (state.remainder.ticket, state.active?.handler.take(), state.response, state.mailbox.takeCollected())
        }
        let failure = error.map { $0.classic(ticket) }
        // The file is removed when the handler returns, unless the program moves it.
        let file = error == nil ? savedFile : nil
        switch handler {
        case .data(let handler)?, .awaited(let handler)?: handler(error == nil ? body : nil, response, failure)
        case .file(let handler)?: handler(file?.url, response, failure)
        case .bytes(let pipe)?: pipe.finish(failure)
        case nil: taskDelegate?.urlSession(session, task: task, didCompleteWithError: failure)
        }
        withExtendedLifetime(file) {}
        let load = state.withLock { $0.load }
        leave(session, task)
        if isInBackground { load?.delivered() }
    }

    /// Releases the task's references after its last call.
    func leave(_ session: URLSession, _ task: URLSessionTask) {
        let released = state.withLock { $0.leave() }
        withExtendedLifetime(released) {}
        task.forgetDelegate()
        session.left(identifier)
    }
}
