// The verbs of Apple's async surface: a task is made, resumed and awaited. Cancelling the caller cancels the task.

public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension URLSession {
    /// Loads into memory.
    /// - Parameter delegate: of the task; hears of redirects, challenges and metrics.
    /// - Throws: `URLError`.
    public func data(for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (
        Data, URLResponse
    ) {
        try await awaited(delegate) { dataTask(with: request, completionHandler: $0) }
    }

    /// Loads into memory, with GET.
    public func data(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Sends a file, and loads the answer into memory.
    public func upload(
        for request: URLRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await awaited(delegate) { uploadTask(with: request, fromFile: fileURL, completionHandler: $0) }
    }

    /// Sends these bytes, and loads the answer into memory.
    public func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await awaited(delegate) { uploadTask(with: request, from: bodyData, completionHandler: $0) }
    }

    /// Goes on with an upload, and loads the answer into memory; see ``uploadTask(withResumeData:)``.
    public func upload(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await awaited(delegate) { uploadTask(withResumeData: resumeData, completionHandler: $0) }
    }

    /// Loads into a file, which is the caller's: to be moved, or removed.
    public func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await awaited(delegate) { handler in downloadTask(with: request) { handler($0.flatMap(Self.kept), $1, $2) }
        }
    }

    /// Loads into a file, with GET.
    public func download(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (
        URL, URLResponse
    ) {
        try await download(for: URLRequest(url: url), delegate: delegate)
    }

    /// Goes on with a download.
    public func download(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await awaited(delegate) { handler in
            downloadTask(withResumeData: resumeData) { handler($0.flatMap(Self.kept), $1, $2) }
        }
    }

    /// The file under another name: its own is removed when the completion handler returns.
    private static func kept(_ url: URL) -> URL? {
        let other = url.deletingLastPathComponent().appendingPathComponent("URLSession-\(UUID().uuidString)")
        return (try? FileManager.default.moveItem(at: url, to: other)).map { other }
    }

    private func awaited<Value: Sendable>(
        _ delegate: (any URLSessionTaskDelegate)?,
        _ make: (@escaping @Sendable (Value?, URLResponse?, (any Error)?) -> Void) -> URLSessionTask
    ) async throws -> (Value, URLResponse) {
        let call = AsyncCall<Value>()
        let task = Self.$awaitedDelegate.withValue(delegate) {
            make { value, response, error in
                if let value, let response, error == nil {
                    call.end(.success((value, response)))
                } else {
                    call.end(.failure(error ?? URLError.described(.cannotCreateFile)))
                }
            }
        }
        return try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { continuation in
                call.begin(continuation)
                task.resume()
                if Task.isCancelled { task.cancel() }
            }
        } onCancel: {
            task.cancel()
        }
    }
}

/// What waits for a completion handler. A task that was cancelled while it was made may be over before anybody waits.
private final class AsyncCall<Value: Sendable>: Sendable {
    typealias Outcome = Result<(Value, URLResponse), any Error>
    typealias Continuation = UnsafeContinuation<(Value, URLResponse), any Error>
    private struct State: Sendable {
        var waiting: Continuation?
        var early: Outcome?
    }
    private let state = Lock(State())

    func begin(_ continuation: Continuation) {
        let early = state.withLock { state in
            if state.early == nil { state.waiting = continuation }
            return state.early.take()
        }
        if let early { continuation.resume(with: early) }
    }

    func end(_ outcome: Outcome) {
        let waiting = state.withLock { state in
            if state.waiting == nil { state.early = outcome }
            return state.waiting.take()
        }
        waiting?.resume(with: outcome)
    }
}
