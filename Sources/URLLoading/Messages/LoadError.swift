public import FoundationEssentials

/// Why a load failed: what went wrong, who caused it, at which stage, for which URL.
///
/// Match on ``reason``; every kind of failure has one of its own. A response with a 4xx or 5xx status
/// is no error: it arrived (checklist 160).
///
/// ```swift
/// do throws(LoadError) {
///     let (data, _) = try await session.data(from: url)
/// } catch where error.reason == .hostNotFound {
///     print("no such host: \(error)")
/// } catch where error.party == .remote {
///     print("the server misbehaved: \(error)")
/// }
/// ```
///
/// The description is one line for people. It never contains credentials, header values or bodies.
public struct LoadError: Error, Sendable, CustomStringConvertible {
    /// What went wrong.
    public let reason: Reason
    /// How far the load had come.
    public let phase: Phase
    /// Who caused it.
    public let party: Party
    /// The URL that was being loaded when it failed: after redirects, the last one.
    public let url: URL?
    /// More about the cause, in words of the layer that met it.
    public let detail: String?
    /// The error a caller's own code threw, if that ended the load; or which proxy it was: ``proxyFailure``.
    public let underlying: (any Error)?

    /// With what a download that failed can go on; `nil` if it would have to begin anew.
    public let resumeToken: ResumeToken?

    /// The number of this reason in Apple's `NSURLErrorDomain`. Many reasons share one number.
    public var code: Int { reason.code }

    package init(
        _ reason: Reason, phase: Phase, party: Party, url: URL? = nil, detail: String? = nil,
        underlying: (any Error)? = nil, resumeToken: ResumeToken? = nil
    ) {
        self.reason = reason
        self.phase = phase
        self.party = party
        self.url = url
        self.detail = detail
        self.underlying = underlying
        self.resumeToken = resumeToken
    }

    /// The stages of a load, in their order. `waiting` lasts until the head of the answer is complete,
    /// `receiving` until its body is.
    public enum Phase: String, Sendable, Hashable {
        case preparing, resolving, connecting, securing, sending, waiting, receiving, decoding, redirecting, deciding
    }

    /// Who caused a failure.
    public enum Party: String, Sendable, Hashable {
        /// This program: a request that cannot be sent, a limit it set, a cancellation.
        case local
        /// The server, or whoever answers in its place.
        case remote
        /// The operating system or the network in between.
        case system
    }

    static func sessionInvalidated(_ url: URL) -> LoadError {
        LoadError(.sessionInvalidated, phase: .preparing, party: .local, url: url)
    }

    func at(_ url: URL?) -> LoadError {
        guard self.url == nil else { return self }
        return LoadError(
            reason, phase: phase, party: party, url: url, detail: detail, underlying: underlying,
            resumeToken: resumeToken)
    }

    package func with(_ resumeToken: ResumeToken?) -> LoadError {
        LoadError(
            reason, phase: phase, party: party, url: url, detail: detail, underlying: underlying,
            resumeToken: resumeToken)
    }

    public var description: String {
        var text = reason.name
        text += url?.shownHost.map { " (\(phase.rawValue), \($0))" } ?? " (\(phase.rawValue))"
        if let detail { text += ": \(detail)" }
        return text
    }
}

extension LoadError {
    /// One kind of failure. New kinds may be added: compare with the ones you handle.
    public struct Reason: Sendable, Hashable, CustomStringConvertible {
        /// A stable name, such as `hostNotFound`.
        public let name: String
        /// Its number in `NSURLErrorDomain`.
        public let code: Int

        package init(_ name: String, _ code: Int) {
            self.name = name
            self.code = code
        }

        public static func == (a: Reason, b: Reason) -> Bool { a.name == b.name }
        public func hash(into hasher: inout Hasher) { hasher.combine(name) }
        public var description: String { name }
    }
}

extension LoadError.Reason {
    // MARK: Ended by this side

    /// The task was cancelled, or the session invalidated with its tasks.
    public static let cancelled = Self("cancelled", -999)
    /// The session was invalidated before; make a new one.
    public static let sessionInvalidated = Self("sessionInvalidated", -999)
    /// A decision closure threw; see ``LoadError/underlying``.
    public static let decisionFailed = Self("decisionFailed", -999)
    /// A protocol handler threw; see ``LoadError/underlying``.
    public static let handlerFailed = Self("handlerFailed", -1002)
    /// A decision answered what cannot be done here; the detail says what.
    public static let badDecision = Self("badDecision", -999)
    /// A decision took longer than its deadline and had no fallback.
    public static let decisionTimeout = Self("decisionTimeout", -1001)
    /// Nothing was heard from the peer for the idle timeout.
    public static let idleTimeout = Self("idleTimeout", -1001)
    /// No connection was established within the connect timeout (``Configuration/connectTimeout``). The phase says how
    /// far the attempt had come: ``LoadError/Phase/resolving``, ``LoadError/Phase/connecting`` or
    /// ``LoadError/Phase/securing``.
    public static let connectTimeout = Self("connectTimeout", -1001)
    /// The load as a whole took longer than the resource timeout.
    public static let resourceTimeout = Self("resourceTimeout", -1001)
    /// The URL cannot be loaded: not absolute, ambiguous, or with characters RFC 3986 does not allow.
    public static let badURL = Self("badURL", -1000)
    /// No handler for the URL's scheme.
    public static let unsupportedScheme = Self("unsupportedScheme", -1002)
    /// The request cannot be sent as it is: a field or method with illegal characters, framing set by hand.
    public static let badRequest = Self("badRequest", -1000)
    /// The body was longer than the limit for collecting it.
    public static let bodyTooLarge = Self("bodyTooLarge", -1103)
    /// The body was already taken by another consumer, or its scope has ended.
    public static let bodyUnavailable = Self("bodyUnavailable", -1008)
    /// The cache was asked for and has no entry.
    public static let notInCache = Self("notInCache", -1008)
    /// The request's body stream failed or had another length than announced.
    public static let requestBodyFailed = Self("requestBodyFailed", -1021)

    // MARK: Names and connections

    /// The host does not exist.
    public static let hostNotFound = Self("hostNotFound", -1003)
    /// The look-up itself failed and may succeed later.
    public static let lookupFailed = Self("lookupFailed", -1006)
    /// The host answered that nothing listens there.
    public static let connectionRefused = Self("connectionRefused", -1004)
    /// The host or its network cannot be reached.
    public static let unreachable = Self("unreachable", -1004)
    /// Another reason not to get a connection, such as no free descriptor.
    public static let cannotConnect = Self("cannotConnect", -1004)
    /// The connection ended, or was reset, before the message was complete.
    public static let connectionLost = Self("connectionLost", -1005)

    // MARK: Files

    /// There is no such file.
    public static let fileNotFound = Self("fileNotFound", -1100)
    /// It is a directory, and the handler lists none.
    public static let fileIsDirectory = Self("fileIsDirectory", -1101)
    /// This process may not read it.
    public static let noPermission = Self("noPermission", -1102)
    /// It cannot be opened or read for another reason; a pipe, socket or device is no file.
    public static let cannotReadFile = Self("cannotReadFile", -3001)
    /// It became shorter while it was read.
    public static let fileChanged = Self("fileChanged", -3001)
    /// No file can be made there.
    public static let cannotCreateFile = Self("cannotCreateFile", -3000)
    /// It cannot be written: the disk is full, for instance.
    public static let cannotWriteFile = Self("cannotWriteFile", -3003)
    /// What was loaded cannot be given its name.
    public static let cannotMoveFile = Self("cannotMoveFile", -3005)
    /// With this token nothing can be resumed: it is damaged, or its file is not what was left.
    public static let invalidResumeToken = Self("invalidResumeToken", -3001)
    /// It has no such range of bytes.
    public static let rangeNotSatisfiable = Self("rangeNotSatisfiable", -1008)

    // MARK: Security

    /// The handshake failed; the detail says where.
    public static let secureConnectionFailed = Self("secureConnectionFailed", -1200)
    /// The peer does not speak TLS.
    public static let notTLS = Self("notTLS", -1200)
    /// No TLS version or cipher in common.
    public static let noCommonTLSVersion = Self("noCommonTLSVersion", -1200)
    /// The certificate is not for this host.
    public static let certificateNameMismatch = Self("certificateNameMismatch", -1202)
    /// The chain does not lead to a trusted root: nobody trusts it, or the server has not shown all of it.
    public static let certificateUntrusted = Self("certificateUntrusted", -1203)
    /// The certificate, or one of its issuers, has expired.
    public static let certificateExpired = Self("certificateExpired", -1201)
    /// The certificate is not valid yet.
    public static let certificateNotYetValid = Self("certificateNotYetValid", -1204)
    /// The certificate may not be used for a server, or breaks its issuer's constraints.
    public static let certificateInvalid = Self("certificateInvalid", -1202)
    /// The certificate was revoked.
    public static let certificateRevoked = Self("certificateRevoked", -1202)
    /// The peer wants a client certificate.
    public static let clientCertificateRequired = Self("clientCertificateRequired", -1206)
    /// The trusted roots cannot be read.
    public static let trustRootsUnavailable = Self("trustRootsUnavailable", -1200)

    // MARK: Redirects

    /// More redirects than the configuration allows.
    public static let tooManyRedirects = Self("tooManyRedirects", -1007)
    /// The Location of a redirect is no URL.
    public static let badRedirect = Self("badRedirect", -1010)
    /// A redirect to a scheme that redirects may not lead to.
    public static let redirectRefused = Self("redirectRefused", -1010)

    // MARK: Messages

    /// What answered does not speak HTTP.
    public static let notHTTP = Self("notHTTP", -1011)
    /// The message ended early.
    public static let truncated = Self("truncated", -1005)
    /// The content coding is damaged.
    public static let contentDecodingFailed = Self("contentDecodingFailed", -1016)
    /// The content expands beyond the limit.
    public static let contentTooLarge = Self("contentTooLarge", -1015)
}
