// SPDX-License-Identifier: Apache-2.0

// Reasons of failure of complete responses that do not answer the request, and of malformed bodies.

public import URLLoadingWire

extension LoadError.Reason {
    /// The status is not a success (2xx) although success is required; see ``LoadError/status``. Only loads that
    /// require success (``Response/requireSuccess()``, ``DownloadOptions/requiresSuccess``) and resumed downloads end
    /// with it, because an error page cannot continue a file.
    public static let unacceptableStatus = Self("unacceptableStatus", -1011)
    /// The 206 response to a resumed download is not known to continue the partial file: it does not repeat the
    /// validator, or carries another range (RFC 9110 §15.3.7); see ``LoadError/response``. The partial file is
    /// unchanged. If the error persists, start the download anew.
    public static let resumeMismatch = Self("resumeMismatch", -1011)
    /// The media type of the response is not the expected one.
    public static let unacceptableContentType = Self("unacceptableContentType", -1011)
    /// The body cannot be decoded as the requested type; ``LoadError/underlying`` is the decoder's error.
    public static let undecodableBody = Self("undecodableBody", -1017)

    /// A multipart media type without a boundary, or with an invalid one (RFC 2046 §5.1.1).
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

/// Carries a refused or lost response inside a `LoadError`.
struct RefusedResponse: ErrorCarrier, CustomStringConvertible {
    let response: Response
    /// The status only: header values must not get into logs.
    var description: String { response.http?.status.description ?? "no status" }
}

extension LoadError {
    /// The response that was refused (``Reason/unacceptableStatus``, ``Reason/unacceptableContentType``,
    /// ``Reason/resumeMismatch``), or the response to a background upload whose body the agent could not write
    /// (``Reason/cannotWriteFile``); otherwise `nil`.
    ///
    /// ```swift
    /// if error.reason == .unacceptableStatus { print(error.response?.http?.headers["Retry-After"] ?? "") }
    /// ```
    public var response: Response? { (underlying as? RefusedResponse)?.response }

    /// The status of ``response``; `nil` if there is none.
    public var status: Status? { response?.http?.status }

    /// Returns the error of a body beyond `limit` bytes.
    static func tooLarge(_ limit: Int) -> LoadError {
        LoadError(.bodyTooLarge, phase: .receiving, party: .local, detail: "more than \(limit) bytes")
    }

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
    /// - Returns: this response.
    /// - Throws: ``LoadError/Reason/unacceptableStatus``; the error carries this response.
    @discardableResult
    public func requireSuccess() throws(LoadError) -> Response {
        guard let status = http?.status, status.kind != .successful else { return self }
        throw LoadError(refusing: self, .unacceptableStatus, status.description)
    }
}
