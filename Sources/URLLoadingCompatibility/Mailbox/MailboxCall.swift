// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

extension Mailbox {
    /// A call to the delegate or the completion handler of a task.
    enum Call: Sendable {
        case waiting
        case informational(HTTPURLResponse)
        case sent(TransferProgress)
        case question(any Question)
        case response(URLResponse)
        /// A data task has become a download task.
        case becameDownload(URLSessionDataTask, URLSessionDownloadTask)
        /// The last call of a data task whose connection has become a stream task.
        case becameStream(URLSessionStreamTask)
        case resumed(offset: Int64, expected: Int64?)
        case data(Data)
        case written(TransferProgress)
        /// The downloaded file is complete.
        case saved
        case opened(String?)
        case closed(URLSessionWebSocketTask.CloseCode, Data?)
        case readClosed
        case writeClosed
        case betterRoute
        /// The last call of a stream task whose connection was captured.
        case captured(CapturedStreams)
        case metrics(LoadMetrics)
        case finished(LoadError?)
    }

    /// Calls that are due. The latest call of a kind replaces earlier ones.
    struct DueCalls: Sendable {
        /// An informational (1xx) response, and the bytes whose sending was reported before it.
        struct Informational: Sendable {
            var sentBefore: TransferProgress?
            let response: HTTPURLResponse
        }

        var isWaiting = false
        var informational: [Informational] = []
        /// Reported after the last informational response.
        var sent: TransferProgress?
        var turned: Call?
        var resumed: (offset: Int64, expected: Int64?)?
        var written: TransferProgress?
        /// Calls of WebSockets and streams, in order.
        var conversation: [Call] = []
    }

    /// Waiters and questions removed from the mailbox, to be settled outside of the lock.
    struct Released: Sendable {
        var waiter: UnsafeContinuation<Void, Never>?
        var questions: [any Question] = []
        /// The stream that the cancelled task has become.
        var successor: URLSessionStreamTask?

        func settle() {
            waiter?.resume()
            successor?.cancel()
            for question in questions { question.withdraw() }
        }
    }
}
