import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension Configuration {
    /// HTTP Strict Transport Security: the known servers that demand TLS, and where they are stored.
    ///
    /// ```swift
    /// configuration.hsts.storage = .none   // http stays http
    /// ```
    public struct HSTS: Sendable {
        /// The HSTS store. By default ``HSTSStore/shared``; an ephemeral session has a store of its own.
        /// ``Session/hsts`` is that store.
        public var storage = Storage.automatic
        /// Allows a decision to trust a certificate that fails its checks although the server has an HSTS policy, which
        /// forbids that (RFC 6797 §8.4, §12.1). For experiments on a machine of your own; `false` by default.
        public var unsafelyAllowsUntrustedCertificates = false

        public init() {}

        /// The place where hosts are stored.
        public enum Storage: Sendable {
            /// In ``HSTSStore/shared``; for an ephemeral session in memory, until it is invalidated.
            case automatic
            /// In this store.
            case store(HSTSStore)
            /// No store: no server is known, and none is remembered.
            case none
        }
    }
}

/// The HSTS store and settings of a session, as its loads use them.
struct StrictTransportRules: Sendable {
    let store: HSTSStore
    /// The store was made for this session only.
    let isOwn: Bool
    private let settings: Configuration.HSTS
    /// False if certificates are not verified: policies received without verification are not trustworthy.
    private let notes: Bool

    init?(_ configuration: Configuration) {
        settings = configuration.hsts
        notes = !configuration.tls.unsafelySkipsVerification
        switch settings.storage {
        case .none: return nil
        case .store(let store): (self.store, isOwn) = (store, false)
        case .automatic where configuration.isEphemeral: (store, isOwn) = (HSTSStore(), true)
        case .automatic: (store, isOwn) = (.shared, false)
        }
    }

    /// Whether the request may need an upgrade: it uses http, and the store may know hosts.
    func mayConcern(_ request: Request) -> Bool {
        guard store.mayKnow, case .success(let destination) = request.destination else { return false }
        return !destination.target.origin.isSecure
    }

    /// Returns the request changed to https if its server demands TLS (RFC 6797 §8.3); `nil` otherwise.
    @inline(never)
    func upgrade(_ request: Request, _ load: LoadHandle) async -> Request? {
        guard case .success(let destination) = request.destination else { return nil }
        if !store.isReady { await store.load(for: load) }
        guard store.requiresTLS(destination.target.origin.host), let url = Self.secure(request.url) else { return nil }
        var secure = request
        secure.url = url
        // The main document changes with it, so that the request stays same-site (RFC 6265bis §5.2 compares schemes).
        if let document = request.mainDocumentURL, document.host() == url.host(), let same = Self.secure(document) {
            secure.mainDocumentURL = same
        }
        return secure
    }

    static func secure(_ url: URL) -> URL? {
        (try? URIReference(url.absoluteString))?.securingHTTP.flatMap { URL(string: $0.absoluteString) }
    }

    /// Stores the policy of a response, unless a decision forced the connection's trust (§8.1).
    func receive(_ head: HTTPHead, from destination: Destination, isForced: Bool) {
        guard notes, !isForced, destination.target.origin.isSecure, head.headers.contains(.strictTransportSecurity)
        else { return }
        store.receive(head.headers, from: destination.target.origin.host)
    }

    /// Whether no decision may trust a server that fails its checks; true as well while the store has not been read.
    func forbidsTrust(in name: String, _ load: LoadHandle) async -> Bool {
        guard !settings.unsafelyAllowsUntrustedCertificates, let host = try? Origin.Host(name) else { return false }
        if !store.isReady { await store.load(for: load) }
        return !store.isLoaded || store.requiresTLS(host)
    }
}

extension LoadError.Reason {
    /// The server's certificate failed its checks, a decision wanted to trust it, and the server's HSTS policy forbids
    /// that (RFC 6797 §8.4).
    public static let strictTransportSecurity = Self("strictTransportSecurity", -1202)
}
