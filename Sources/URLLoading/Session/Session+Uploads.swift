// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension Session {
    /// Uploads with resumption: after a lost connection, only the bytes that the server has not received are sent again
    /// (draft-ietf-httpbis-resumable-upload-12).
    ///
    /// ```swift
    /// let request = Request(url: url, method: .post, headers: [.authorization: key])
    /// let (data, response) = try await session.uploadResumably(request, from: .file(film), resuming: saved) { event in
    ///     if case .created(let token) = event { try await store.save(token.text) }
    /// }
    /// ```
    /// The request is sent with the whole content and the offer to resume (§4.2.1). A supporting server answers at once
    /// with the location of the upload: that is the token. When the connection is lost or the server fails, its offset
    /// is queried (§4.3) and the rest is appended (§4.4), after growing delays, up to ``UploadOptions/maximumAttempts``
    /// times without progress. The server's limits are respected (§4.1.4): content that is too large fails, a request
    /// that is too large is split. A server without support takes the first request as a plain upload.
    ///
    /// Each request is a load of its own, with the session's timeouts.
    /// - Parameters:
    ///   - request: the target and the credentials; the method must be one with content. Its fields are sent with every
    ///     request, those that describe the content with the first only. Its body is not used.
    ///   - source: the content to send.
    ///   - token: the token of an earlier attempt; `nil` starts a new upload. It must be of the same request and the
    ///     same content.
    ///   - options: part size and retries.
    ///   - decisions: take precedence over the session's own. ``Decisions/redirect`` is called for the first request
    ///     only: the upload resource must be in the request's origin, and may be redirected only within it.
    ///   - onEvent: receives the events, in order, while the upload continues; an error it throws ends the upload with
    ///     ``LoadError/Reason/decisionFailed``.
    /// - Returns: the response to the whole upload. If the server has everything but its response was lost for good,
    ///   the response that confirms this.
    /// - Throws: ``LoadError``, with a ``LoadError/uploadToken`` inside if the upload can be resumed. Cancelling the
    ///   calling task ends it with ``LoadError/Reason/cancelled``; the server keeps the received bytes for another
    ///   attempt, until ``cancelUpload(_:of:decisions:)``.
    @concurrent
    public nonisolated func uploadResumably(
        _ request: Request, from source: UploadSource, resuming token: UploadToken? = nil,
        options: UploadOptions = UploadOptions(), decisions: Decisions? = nil,
        _ onEvent: @escaping @Sendable (UploadEvent) async throws -> Void = { _ in }
    ) async throws(LoadError) -> (Data, Response) {
        try Self.checkUpload(request)
        if let token { try token.check(request) }
        let identity: UploadIdentity
        do throws(LoadError) { identity = try await source.identity(in: core, at: request.url) } catch {
            throw error.carrying(token).at(request.url)
        }
        if let token, !token.identity.matches(identity) {
            throw LoadError.sourceChanged(source.path, request.url).carrying(token)
        }
        let upload = ResumableUpload(
            core, request, source: source, identity: identity, token: token,
            .init(options: options, decisions: decisions, report: onEvent))
        do throws(LoadError) { return try await upload.run() } catch {
            throw error.at(request.url).carrying(upload.token)
        }
    }

    /// Cancels an upload on the server, which may then delete the received bytes (§4.5).
    ///
    /// ```swift
    /// try await session.cancelUpload(token, of: request)
    /// ```
    /// - Parameters:
    ///   - token: the token of the upload.
    ///   - request: the request of the upload.
    ///   - decisions: take precedence over the session's own.
    /// - Throws: ``LoadError``; ``LoadError/Reason/uploadRefused`` if the server refuses. An upload that the server
    ///   does not know is not an error. Cancelling the calling task ends it with ``LoadError/Reason/cancelled``.
    @concurrent
    public nonisolated func cancelUpload(
        _ token: UploadToken, of request: Request, decisions: Decisions? = nil
    ) async throws(LoadError) {
        try token.check(request)
        try await UploadCancellation.send(core, request, token, decisions)
    }

    private static func checkUpload(_ request: Request) throws(LoadError) {
        guard request.method != .get, request.method != .head else {
            throw LoadError(
                .badRequest, phase: .preparing, party: .local, url: request.url,
                detail: "an upload needs a method with content, such as POST or PUT")
        }
        if case .failure(let violation) = request.destination { throw LoadError(violation, .preparing).at(request.url) }
    }
}

extension UploadToken {
    /// Checks that the token is for this request, because credentials are sent to the token's URL.
    fileprivate func check(_ request: Request) throws(LoadError) {
        guard target == Self.target(of: request), Request(url: url).goes(where: request) else {
            throw LoadError(
                .uploadTokenMismatch, phase: .preparing, party: .local, url: request.url,
                detail: "the token is for another request")
        }
    }
}
