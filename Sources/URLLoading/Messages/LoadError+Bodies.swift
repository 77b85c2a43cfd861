// Answers that came whole and are not what was asked for, and bodies that are not what they say.

public import URLLoadingWire

extension LoadError.Reason {
    /// The status is no success where one is required; see ``LoadError/status``. Loads end with it only where they were
    /// told to (``Response/requireSuccess()``, ``DownloadOptions/requiresSuccess``), and downloads that are resumed, for an
    /// error's page is no rest of anything.
    public static let unacceptableStatus = Self("unacceptableStatus", -1011)
    /// The server answered a resumed download with a 206 that is not known to be the rest of what is held: it does not
    /// repeat the validator, or carries another part (RFC 9110 §15.3.7); see ``LoadError/response``. What is held is as it
    /// was. If it stays so, begin anew.
    public static let resumeMismatch = Self("resumeMismatch", -1011)
    /// The response has another media type than the one it is read as.
    public static let unacceptableContentType = Self("unacceptableContentType", -1011)
    /// The body is not what it was decoded as; ``LoadError/underlying`` is the decoder's error.
    public static let undecodableBody = Self("undecodableBody", -1017)

    /// A multipart type without a boundary, or with one that cannot be (RFC 2046 §5.1.1).
    public static let malformedBoundary = Self(.malformedBoundary)
    /// More parts than ``Configuration/Limits/partCount``.
    public static let tooManyParts = Self(.tooManyParts)
    /// A multipart body without its closing delimiter (RFC 2046 §5.1.1).
    public static let truncatedMultipart = Self(.truncatedMultipart)
    /// More than 64 KiB before the first part.
    public static let multipartPreambleTooLarge = Self(.multipartPreambleTooLarge)
    /// More than 64 KiB after the last part.
    public static let multipartEpilogueTooLarge = Self(.multipartEpilogueTooLarge)

    /// A line of server-sent events beyond ``Configuration/Limits/eventLineSize``.
    public static let eventLineTooLong = Self(.eventLineTooLong)
    /// A server-sent event beyond ``Configuration/Limits/eventSize``.
    public static let eventTooLarge = Self(.eventTooLarge)
}

/// What an error of a response carries of it.
private struct RefusedResponse: Error, CustomStringConvertible {
    let response: Response
    /// Nothing of its fields.
    var description: String { response.http?.status.description ?? "no status" }
}

extension LoadError {
    /// The response that was refused (``Reason/unacceptableStatus``, ``Reason/unacceptableContentType``,
    /// ``Reason/resumeMismatch``); otherwise `nil`.
    ///
    /// ```swift
    /// catch where error.reason == .unacceptableStatus {
    ///     let wait = error.response?.http?.headers["Retry-After"]
    /// }
    /// ```
    public var response: Response? { (underlying as? RefusedResponse)?.response }

    /// The status of ``response``.
    public var status: Status? { response?.http?.status }

    init(refusing response: Response, _ reason: Reason, _ detail: String) {
        self.init(
            reason, phase: .receiving, party: .remote, url: response.url, detail: detail,
            underlying: RefusedResponse(response: response))
    }
}

extension Response {
    /// Throws unless the status is 2xx. Responses without a status (files, `data:`) pass.
    ///
    /// ```swift
    /// let (data, response) = try await session.data(for: request)
    /// try response.requireSuccess()
    /// ```
    /// - Returns: itself.
    /// - Throws: ``LoadError/Reason/unacceptableStatus``; the error carries this response.
    @discardableResult
    public func requireSuccess() throws(LoadError) -> Response {
        guard let status = http?.status, status.kind != .successful else { return self }
        throw LoadError(refusing: self, .unacceptableStatus, status.description)
    }
}
