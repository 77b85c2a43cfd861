public import Foundation

/// Hears of streams.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {
    /// Nothing more is read: the peer's end was read, or ``URLSessionStreamTask/closeRead()`` was called.
    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask)

    /// Nothing more is written, after ``URLSessionStreamTask/closeWrite()``.
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask)

    /// The networks of this machine have changed (links, addresses, default routes), and the peer would now be reached by another of its addresses than the
    /// stream's. The stream stays where it is; whoever wants the other way makes a new one.
    func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask)

    /// The answer to ``URLSessionStreamTask/captureStreams()``: the last call about the task. Both streams are to be opened,
    /// and block whoever reads or writes; the connection ends when both are closed or gone.
    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
        outputStream: OutputStream)
}

extension URLSessionStreamDelegate {
    public func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {
        nextDelegate(session, streamTask)?.urlSession(session, readClosedFor: streamTask)
    }

    public func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) {
        nextDelegate(session, streamTask)?.urlSession(session, writeClosedFor: streamTask)
    }

    public func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask) {
        nextDelegate(session, streamTask)?.urlSession(session, betterRouteDiscoveredFor: streamTask)
    }

    public func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
        outputStream: OutputStream
    ) {
        nextDelegate(session, streamTask)?.urlSession(
            session, streamTask: streamTask, didBecome: inputStream, outputStream: outputStream)
    }

    private func nextDelegate(_ session: URLSession, _ task: URLSessionTask) -> (any URLSessionStreamDelegate)? {
        next(in: session, task) as? any URLSessionStreamDelegate
    }
}
