import Foundation
import URLLoading

extension Mailbox {
    /// A call to the delegate or to the completion handler of a task.
    enum Call: Sendable {
        case waiting
        case informational(HTTPURLResponse)
        case sent(TransferProgress)
        case question(any Question)
        case response(URLResponse)
        /// A data task is a download from here on.
        case becameDownload(URLSessionDataTask, URLSessionDownloadTask)
        /// The last call of a data task whose connection is a stream now.
        case becameStream(URLSessionStreamTask)
        case resumed(offset: Int64, expected: Int64?)
        case data(Data)
        case written(TransferProgress)
        /// The file is complete.
        case saved
        case opened(String?)
        case closed(URLSessionWebSocketTask.CloseCode, Data?)
        case readClosed
        case writeClosed
        case betterRoute
        /// The last call of a stream whose connection was given away.
        case captured(CapturedStreams)
        case metrics(LoadMetrics)
        case finished(LoadError?)
    }

    /// Calls that are due. The latest of a kind stands for those before it.
    struct Due: Sendable {
        var isWaiting = false
        var informational: [HTTPURLResponse] = []
        var sent: TransferProgress?
        var turned: Call?
        var resumed: (offset: Int64, expected: Int64?)?
        var written: TransferProgress?
        /// Calls of WebSockets and streams, in their order.
        var said: [Call] = []
    }

    /// Waiters and questions that the mailbox has let go; settled outside of the lock.
    struct Released: Sendable {
        var waiter: UnsafeContinuation<Void, Never>?
        var questions: [any Question] = []

        func settle() {
            waiter?.resume()
            for question in questions { question.withdraw() }
        }
    }
}
