// SPDX-License-Identifier: Apache-2.0

// Apple's async methods: each creates a task, resumes it and awaits its end. Cancelling the caller cancels the task.

public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension URLSession {
    /// Loads a response body into memory.
    /// - Parameter delegate: the task's delegate; it is notified of redirects, challenges and metrics.
    /// - Throws: `URLError`.
    public func data(for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (
        Data, URLResponse
    ) {
        guard !mayAwaitInPlace(delegate) else { return try await awaited { makeDataTask(request, .awaited($0)) } }
        return try await awaited(delegate) { dataTask(with: request, completionHandler: $0) }
    }

    /// Loads a response body into memory, with GET.
    public func data(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Uploads a file, and loads the response body into memory.
    public func upload(
        for request: URLRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await awaited(delegate) { uploadTask(with: request, fromFile: fileURL, completionHandler: $0) }
    }

    /// Uploads data, and loads the response body into memory.
    public func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        guard !mayAwaitInPlace(delegate) else {
            return try await awaited { makeUpload(request, .data(bodyData), .awaited($0)) }
        }
        return try await awaited(delegate) { uploadTask(with: request, from: bodyData, completionHandler: $0) }
    }

    /// Resumes an upload, and loads the response body into memory; see ``uploadTask(withResumeData:)``.
    public func upload(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await awaited(delegate) { uploadTask(withResumeData: resumeData, completionHandler: $0) }
    }

    /// Loads a response body into a file, which the caller must move or remove.
    public func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await awaited(delegate) { handler in downloadTask(with: request) { handler($0.flatMap(Self.kept), $1, $2) }
        }
    }

    /// Loads a response body into a file, with GET.
    public func download(from url: URL, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (
        URL, URLResponse
    ) {
        try await download(for: URLRequest(url: url), delegate: delegate)
    }

    /// Resumes a download.
    public func download(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await awaited(delegate) { handler in
            downloadTask(withResumeData: resumeData) { handler($0.flatMap(Self.kept), $1, $2) }
        }
    }

    /// Moves the file to another name, because the original is removed when the completion handler returns.
    private static func kept(_ url: URL) -> URL? {
        let other = url.deletingLastPathComponent().appendingPathComponent("URLSession-\(UUID().uuidString)")
        return (try? FileManager.default.moveItem(at: url, to: other)).map { other }
    }

    /// Whether the end of a load may be told to a caller that awaits it where the load ended, without an operation on
    /// the session's own delegate queue: no code of the program runs there. On a queue of the program's the end keeps
    /// its place among the program's operations, and the methods of a subclass make the task themselves.
    private func mayAwaitInPlace(_ delegate: (any URLSessionTaskDelegate)?) -> Bool {
        delegate == nil && !lane.isOfProgram && type(of: self) == URLSession.self
    }

    private func awaited<Value: Sendable>(
        _ delegate: (any URLSessionTaskDelegate)? = nil,
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

/// Awaits a completion handler. A task cancelled during its creation may end before the caller waits.
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
