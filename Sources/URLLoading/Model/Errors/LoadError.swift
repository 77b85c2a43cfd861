// SPDX-License-Identifier: Apache-2.0

// In this folder: the error of a load, and what the errors of lower layers become

public import FoundationEssentials

/// The failure of a load: its reason, the responsible party, the phase, and the URL.
///
/// Match on ``reason``; every kind of failure has its own. A response with a 4xx or 5xx status is not an error, because
/// it is a complete answer of the server.
///
/// ```swift
/// do throws(LoadError) {
///     let (data, _) = try await session.data(from: url)
/// } catch {
///     switch error.reason {
///     case .hostNotFound: print("no such host: \(error)")
///     case _ where error.party == .remote: print("the server misbehaved: \(error)")
///     default: throw error
///     }
/// }
/// ```
/// Write one `catch` without a pattern, as here: Swift 6.3.1 crashes at some `do` statements whose calls all throw
/// `LoadError` and whose `catch` has one.
///
/// The description is one line for people: reason, phase, URL without query, details, and the underlying error, where
/// it says more. The library puts no credentials, header values or bodies into it.
public struct LoadError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public var reason: Reason { facts.reason }
    /// The phase the load had reached.
    public var phase: Phase { facts.phase }
    /// The party that caused the failure.
    public var party: Party { facts.party }
    /// The URL that was being loaded when it failed: after redirects, the last one. It is the whole URL, so that the
    /// load can be repeated: its query may contain secrets. ``description`` leaves the query out.
    public var url: URL? { facts.url }
    /// Details of the cause, from the module that detected it.
    public var detail: String? { facts.detail }
    /// The error thrown by the caller's own code, if that ended the load, the error of a file that cannot be read, or
    /// the cause of ``proxyFailure`` and ``serverTrust``.
    public var underlying: (any Error)? { facts.underlying }
    /// What tells this error from others of the same reason, for decisions of this package. Decisions never compare
    /// ``detail``, whose words may change.
    package var kind: Kind? { facts.kind }

    /// The token that resumes a failed download; `nil` if the download would have to start anew.
    public var resumeToken: ResumeToken? { facts.resumeToken }

    /// The number of this reason in Apple's `NSURLErrorDomain`. Many reasons share one number.
    public var code: Int { reason.code }

    /// One reference, because each async function of a load has room for an error in its frame, and few loads fail
    /// (docs/internals/scale.md).
    private let facts: Facts

    private final class Facts: Sendable {
        let reason: Reason
        let phase: Phase
        let party: Party
        let url: URL?
        let detail: String?
        let underlying: (any Error)?
        let resumeToken: ResumeToken?
        let kind: Kind?

        init(
            _ reason: Reason, _ phase: Phase, _ party: Party, _ url: URL?, _ detail: String?,
            underlying: (any Error)?, resumeToken: ResumeToken?, kind: Kind?
        ) {
            (self.reason, self.phase, self.party, self.url, self.detail) = (reason, phase, party, url, detail)
            (self.underlying, self.resumeToken, self.kind) = (underlying, resumeToken, kind)
        }
    }

    package init(
        _ reason: Reason, phase: Phase, party: Party, url: URL? = nil, detail: String? = nil,
        underlying: (any Error)? = nil, resumeToken: ResumeToken? = nil, kind: Kind? = nil
    ) {
        facts = Facts(
            reason, phase, party, url, detail, underlying: underlying, resumeToken: resumeToken, kind: kind)
    }

    /// Distinguishes errors of one reason.
    package enum Kind: String, Sendable {
        /// Of `connectionLost`: the server closed the connection before the first byte of an answer.
        case unanswered
        /// Of `invalidResumeToken`: another download uses the partial file.
        case partialFileInUse
    }

    /// The phases of a load, in order. `waiting` lasts until the head of the response is complete, `receiving` until
    /// its body is.
    public enum Phase: String, Sendable, Hashable {
        /// Checking the request, opening its files, looking into stores.
        case preparing
        /// Resolving a host name.
        case resolving
        /// Connecting, to the server or through proxies.
        case connecting
        /// The TLS handshake.
        case securing
        /// Sending the request.
        case sending
        /// Waiting for the head of the response, for a connection or for a network.
        case waiting
        /// Receiving the response.
        case receiving
        /// Decoding the body.
        case decoding
        /// Following a redirect.
        case redirecting
        /// Waiting for a decision or a handler of the caller.
        case deciding
    }

    /// The party that caused a failure.
    public enum Party: String, Sendable, Hashable {
        /// This program: an invalid request, a limit that it set, a cancellation.
        case local
        /// The server, or an intermediary that answers in its place.
        case remote
        /// The operating system or the network in between.
        case system
    }

    static func sessionInvalidated(_ url: URL) -> LoadError {
        LoadError(.sessionInvalidated, phase: .preparing, party: .local, url: url)
    }

    package func at(_ url: URL?) -> LoadError { self.url == nil ? with(url: url) : self }

    package func with(_ resumeToken: ResumeToken?) -> LoadError {
        LoadError(
            reason, phase: phase, party: party, url: url, detail: detail, underlying: underlying,
            resumeToken: resumeToken, kind: kind)
    }

    /// Returns this error with the given facts; those that are `nil` stay as they are.
    func with(
        phase: Phase? = nil, url: URL? = nil, detail: String? = nil, underlying: (any Error)? = nil
    ) -> LoadError {
        LoadError(
            reason, phase: phase ?? self.phase, party: party, url: url ?? self.url, detail: detail ?? self.detail,
            underlying: underlying ?? self.underlying, resumeToken: resumeToken, kind: kind)
    }

    public var description: String {
        var text = "\(reason.name) (\(phase.rawValue)"
        text += url.map { ", \($0.withoutSecrets))" } ?? ")"
        if let words = explanationWithRemedies { text += ": \(words)" }
        if let words = cause(beneath: text) { text += ": \(words)" }
        return text
    }
}

extension LoadError {
    /// A kind of failure. New kinds may be added: compare with those that your code handles.
    public struct Reason: Sendable, Hashable, CustomStringConvertible {
        /// A stable name, such as `hostNotFound`.
        public let name: String
        /// The code in `NSURLErrorDomain`.
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
    /// The session was invalidated before the load began; create a new session.
    public static let sessionInvalidated = Self("sessionInvalidated", -999)
    /// A decision closure threw; see ``LoadError/underlying``.
    public static let decisionFailed = Self("decisionFailed", -999)
    /// A protocol handler threw; see ``LoadError/underlying``.
    public static let handlerFailed = Self("handlerFailed", -1002)
    /// A decision returned a value that is not possible here; the detail says which.
    public static let badDecision = Self("badDecision", -999)
    /// A decision took longer than its deadline and had no fallback.
    public static let decisionTimeout = Self("decisionTimeout", -1001)
    /// No byte was received from or accepted by the peer for the idle timeout.
    public static let idleTimeout = Self("idleTimeout", -1001)
    /// No connection was established within the connect timeout (``Configuration/Timeouts/connect``). The phase shows
    /// the attempt's progress: ``LoadError/Phase/resolving``, ``LoadError/Phase/connecting`` or
    /// ``LoadError/Phase/securing``.
    public static let connectTimeout = Self("connectTimeout", -1001)
    /// The load as a whole took longer than the resource timeout.
    public static let resourceTimeout = Self("resourceTimeout", -1001)
    /// The URL cannot be loaded: not absolute, ambiguous, or with characters RFC 3986 does not allow.
    public static let badURL = Self("badURL", -1000)
    /// The URL's scheme has no handler.
    public static let unsupportedScheme = Self("unsupportedScheme", -1002)
    /// The request cannot be sent: it has a field or method with illegal characters, or framing fields set by hand.
    public static let badRequest = Self("badRequest", -1000)
    /// The body was longer than the limit for collecting it.
    public static let bodyTooLarge = Self("bodyTooLarge", -1103)
    /// The body was already taken by another consumer, or its scope has ended.
    public static let bodyUnavailable = Self("bodyUnavailable", -1008)
    /// The cache policy allows stored responses only, and the cache has none.
    public static let notInCache = Self("notInCache", -1008)
    /// The request's body stream failed or had another length than announced.
    public static let requestBodyFailed = Self("requestBodyFailed", -1021)

    // MARK: Names and connections

    /// The host does not exist.
    public static let hostNotFound = Self("hostNotFound", -1003)
    /// The name resolution failed temporarily; a retry may succeed.
    public static let lookupFailed = Self("lookupFailed", -1006)
    /// The host refused the connection: no program listens on the port. Of a Unix socket: it does not exist, or no
    /// program listens on it; the detail names it.
    public static let connectionRefused = Self("connectionRefused", -1004)
    /// The host or its network cannot be reached.
    public static let unreachable = Self("unreachable", -1004)
    /// A connection could not be created for another reason, such as no free file descriptor.
    public static let cannotConnect = Self("cannotConnect", -1004)
    /// The interface or address of ``Configuration/Networks/interface`` does not exist, or has no address of the host's
    /// families.
    public static let interfaceUnavailable = Self("interfaceUnavailable", -1004)
    /// The connection ended, or was reset, before the message was complete.
    public static let connectionLost = Self("connectionLost", -1005)

    // MARK: Files

    /// The file does not exist.
    public static let fileNotFound = Self("fileNotFound", -1100)
    /// The URL names a directory, and the handler does not list directories.
    public static let fileIsDirectory = Self("fileIsDirectory", -1101)
    /// This process may not read the file.
    public static let noPermission = Self("noPermission", -1102)
    /// The file cannot be opened or read for another reason, such as being a pipe, a socket or a device.
    public static let cannotReadFile = Self("cannotReadFile", -3001)
    /// The file became shorter while it was read.
    public static let fileChanged = Self("fileChanged", -3001)
    /// The file cannot be created at the destination.
    public static let cannotCreateFile = Self("cannotCreateFile", -3000)
    /// The file cannot be written, for instance because the disk is full.
    public static let cannotWriteFile = Self("cannotWriteFile", -3003)
    /// The downloaded file cannot be moved to its destination.
    public static let cannotMoveFile = Self("cannotMoveFile", -3005)
    /// The resume token is damaged, or its partial file has changed or is gone.
    public static let invalidResumeToken = Self("invalidResumeToken", -3001)
    /// The file does not have the requested range of bytes.
    public static let rangeNotSatisfiable = Self("rangeNotSatisfiable", -1008)

    // MARK: Security

    /// The TLS handshake failed; the detail names the step.
    public static let secureConnectionFailed = Self("secureConnectionFailed", -1200)
    /// The peer does not speak TLS.
    public static let notTLS = Self("notTLS", -1200)
    /// The client and the server have no TLS version or cipher suite in common.
    public static let noCommonTLSVersion = Self("noCommonTLSVersion", -1200)
    /// The certificate does not name this host.
    public static let certificateNameMismatch = Self("certificateNameMismatch", -1202)
    /// The certificate chain does not lead to a trusted root: the root is unknown, or the server did not send the whole
    /// chain.
    public static let certificateUntrusted = Self("certificateUntrusted", -1203)
    /// The certificate, or one of its issuers, has expired.
    public static let certificateExpired = Self("certificateExpired", -1201)
    /// The certificate is not valid yet.
    public static let certificateNotYetValid = Self("certificateNotYetValid", -1204)
    /// The certificate may not be used for a server, or breaks its issuer's constraints.
    public static let certificateInvalid = Self("certificateInvalid", -1202)
    /// The certificate was revoked.
    public static let certificateRevoked = Self("certificateRevoked", -1202)
    /// The server requires a client certificate.
    public static let clientCertificateRequired = Self("clientCertificateRequired", -1206)
    /// The trusted roots cannot be read.
    public static let trustRootsUnavailable = Self("trustRootsUnavailable", -1200)
    /// Plaintext bytes were waiting when TLS was to begin. A machine-in-the-middle may have injected them, so that they
    /// would be read as if TLS protected them (CVE-2011-0411).
    public static let unexpectedPlaintext = Self("unexpectedPlaintext", -1200)

    // MARK: Redirects

    /// More redirects than the configuration allows.
    public static let tooManyRedirects = Self("tooManyRedirects", -1007)
    /// The Location of a redirect is not a valid URL.
    public static let badRedirect = Self("badRedirect", -1010)
    /// A redirect to a scheme that redirects may not lead to.
    public static let redirectRefused = Self("redirectRefused", -1010)

    // MARK: Messages

    /// The peer does not speak HTTP.
    public static let notHTTP = Self("notHTTP", -1011)
    /// The message ended before it was complete.
    public static let truncated = Self("truncated", -1005)
    /// The content coding is damaged.
    public static let contentDecodingFailed = Self("contentDecodingFailed", -1015)
    /// The content expands beyond the limit.
    public static let contentTooLarge = Self("contentTooLarge", -1015)
}
