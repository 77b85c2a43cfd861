// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// Is notified of the events of streams.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {
    /// The read side is closed: a read has found that the peer has ended its side, or
    /// ``URLSessionStreamTask/closeRead()`` was called. Called once.
    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask)

    /// The write side is closed, after ``URLSessionStreamTask/closeWrite()``. Called once.
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask)

    /// The networks of this machine have changed (links, addresses, default routes), and the peer would now be reached
    /// through another local address than the stream's. The stream stays on its connection; create a new task to use
    /// the better route.
    func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask)

    /// The answer to ``URLSessionStreamTask/captureStreams()``; the last call about the task. The delegate opens both
    /// streams. They block the threads that read and write; the connection ends when both are closed or released.
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
