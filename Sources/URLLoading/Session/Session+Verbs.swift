// SPDX-License-Identifier: Apache-2.0

// The public methods that load without a handle. The load runs in the caller's task: no task is made, and cancelling
// the caller ends the load. Typed throws do not pass through a cancellation handler, hence the results.

public import FoundationEssentials
import URLLoadingIO

extension Session {
    /// Loads a request and collects its body, up to ``Configuration/Limits/collectedBodySize``.
    ///
    /// ```swift
    /// let (data, response) = try await session.data(for: Request(url: url))
    /// guard response.http?.status == .ok else { … }
    /// ```
    /// - Parameters:
    ///   - request: the request to load.
    ///   - decisions: take precedence over the session's own.
    /// - Returns: the whole decoded body, and its response.
    /// - Throws: ``LoadError``. Cancelling the calling task ends the load with ``LoadError/Reason/cancelled``; when
    ///   this throws, the load holds no connection any more.
    @concurrent
    public nonisolated func data(
        for request: Request, decisions: Decisions? = nil
    ) async throws(LoadError) -> (Data, Response) {
        let load = try Load.begin(core, request, decisions, consumer: .collector)
        var data = Data()
        let result = await withTaskCancellationHandler {
            await load.collect(request, into: &data)
        } onCancel: {
            load.context.stop(.cancelled)
        }
        return (data, try result.get().response)
    }

    /// Loads a URL with GET; see ``data(for:decisions:)``.
    @concurrent
    public nonisolated func data(from url: URL) async throws(LoadError) -> (Data, Response) {
        try await data(for: Request(url: url))
    }

    /// Loads a request and passes its response and its body to a closure, while the body is still being received. The
    /// body is read no faster than the closure iterates it. The load ends when the closure returns; the unread rest is
    /// not loaded.
    ///
    /// ```swift
    /// let count = try await session.load(request) { response, body in
    ///     var count = 0
    ///     for try await chunk in body { count += chunk.count }
    ///     return count
    /// }
    /// ```
    /// - Parameters:
    ///   - request: the request to load.
    ///   - decisions: take precedence over the session's own.
    ///   - use: runs in the caller's isolation; network work never runs on an actor of the caller's.
    /// - Throws: ``LoadError``, or the error of the closure. Cancelling the calling task ends the load with
    ///   ``LoadError/Reason/cancelled``, also inside the closure's reads.
    public nonisolated(nonsending) func load<R>(
        _ request: Request, decisions: Decisions? = nil,
        _ use: nonisolated(nonsending) (Response, ResponseBody) async throws -> R
    ) async throws -> R {
        let load = try Load.begin(core, request, decisions, consumer: .scope)
        return try await withTaskCancellationHandler {
            var body: ScopedBody?
            do {
                let source = try await load.head(request)
                body = source
                let result = try await use(source.response, ResponseBody(source))
                load.finish(source, nil)
                return result
            } catch {
                load.finish(body, error as? LoadError ?? LoadError(.cancelled, phase: .receiving, party: .local))
                throw error
            }
        } onCancel: {
            load.context.stop(.cancelled)
        }
    }
}
