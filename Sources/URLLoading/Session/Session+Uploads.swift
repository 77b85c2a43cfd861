public import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension Session {
    /// Uploads so that a lost connection costs no byte the server has already taken, by the IETF's
    /// resumable uploads (draft-ietf-httpbis-resumable-upload-12).
    ///
    /// ```swift
    /// let request = Request(url: url, method: .post, headers: [.authorization: key])
    /// let (data, response) = try await session.uploadResumably(request, from: .file(film), resuming: saved) { event in
    ///     if case .created(let token) = event { try await store.save(token.text) }
    /// }
    /// ```
    /// The request is sent with all of the content and the offer to resume (§4.2.1). A server that accepts
    /// says at once where the upload lies: that is the token. When the connection is lost or the server has
    /// a failure of its own, it is asked how far it came (§4.3) and the rest is appended (§4.4), after a wait
    /// that grows, up to ``UploadOptions/maximumAttempts`` times without progress. Limits the server states
    /// are kept (§4.1.4): a whole that is too large is given up, a request that is too large is parted. A
    /// server without support takes the first request as the plain upload it is.
    ///
    /// Each request is a load of its own, with the session's timeouts.
    /// - Parameters:
    ///   - request: where to and as whom; the method must be one with content. Its fields go with every
    ///     request, those that describe the content with the first only. Its body is not used.
    ///   - source: what to send.
    ///   - token: of an earlier attempt; `nil` begins anew. It must be of the same request and the same
    ///     content.
    ///   - options: parts and attempts.
    ///   - decisions: go before the session's own. ``Decisions/redirect`` is asked about the first request
    ///     only: the upload resource may move within the request's origin and nowhere else, nor is it used if it
    ///     lies elsewhere.
    ///   - hear: hears what happens, in order, while the upload goes on; an error it throws ends the upload
    ///     with ``LoadError/Reason/decisionFailed``.
    /// - Returns: the answer to the whole upload. If the server has it all but its answer was lost for good,
    ///   the response in which it says so.
    /// - Throws: ``LoadError``, with a ``LoadError/uploadToken`` inside if the upload can go on. Cancelling the
    ///   calling task ends it with ``LoadError/Reason/cancelled``; what the server has it keeps, for
    ///   ``cancelUpload(_:of:decisions:)`` or another attempt.
    @concurrent
    public nonisolated func uploadResumably(
        _ request: Request, from source: UploadSource, resuming token: UploadToken? = nil,
        options: UploadOptions = UploadOptions(), decisions: Decisions? = nil,
        _ hear: @escaping @Sendable (UploadEvent) async throws -> Void = { _ in }
    ) async throws(LoadError) -> (Data, Response) {
        try Self.checkUpload(request)
        if let token { try token.check(request) }
        let identity: UploadIdentity
        do throws(LoadError) { identity = try await source.identity(.never) } catch {
            throw error.carrying(token).at(request.url)
        }
        if let token, !token.identity.matches(identity) {
            let changed = LoadError(.uploadSourceChanged, phase: .preparing, party: .local, url: request.url)
            throw changed.carrying(token)
        }
        let upload = ResumableUpload(core, request, source, identity, token, options, decisions, hear)
        do throws(LoadError) { return try await upload.run() } catch {
            throw error.at(request.url).carrying(upload.token)
        }
    }

    /// Tells the server that an upload will not be gone on with, so that it can forget what it has (§4.5).
    ///
    /// ```swift
    /// try await session.cancelUpload(token, of: request)
    /// ```
    /// - Parameters:
    ///   - token: of the upload.
    ///   - request: that of the upload.
    ///   - decisions: go before the session's own.
    /// - Throws: ``LoadError``; ``LoadError/Reason/uploadRefused`` if the server will not. That it does not
    ///   know the upload is no error. Cancelling the calling task ends it with
    ///   ``LoadError/Reason/cancelled``.
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
    /// A token leads credentials to its URL: it must be of this request.
    fileprivate func check(_ request: Request) throws(LoadError) {
        guard target == Self.target(of: request), Request(url: url).goes(where: request) else {
            throw LoadError(
                .uploadTokenMismatch, phase: .preparing, party: .local, url: request.url,
                detail: "the token is of another request")
        }
    }
}
