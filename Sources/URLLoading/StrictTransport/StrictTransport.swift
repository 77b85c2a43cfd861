import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension Configuration {
    /// Which servers are known to be spoken to over TLS alone, and where that is kept.
    ///
    /// ```swift
    /// configuration.hsts.storage = .none   // http stays http
    /// ```
    public struct HSTS: Sendable {
        /// Where they are kept: by default in ``HSTSStore/shared``, and of an ephemeral session in a store of its own.
        /// ``Session/hsts`` is that store.
        public var storage = Storage.automatic
        /// Lets a decision trust a certificate that the checks refuse, although its server is known to want none of that
        /// (RFC 6797 §8.4, §12.1). For experiments on a machine of your own.
        public var unsafelyAllowsUntrustedCertificates = false

        public init() {}

        /// Where hosts are kept.
        public enum Storage: Sendable {
            /// In ``HSTSStore/shared``; of an ephemeral session in memory, until it is invalidated.
            case automatic
            /// In this one.
            case store(HSTSStore)
            /// Nowhere: no server is known, and none is noted.
            case none
        }
    }
}

/// What a session knows of such servers, as its loads use it.
struct StrictTransportRules: Sendable {
    let store: HSTSStore
    /// Made for the session, and nobody else's.
    let isOwn: Bool
    private let settings: Configuration.HSTS
    /// Whoever does not check certificates learns nothing from what is said under them.
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

    /// Whether a request is worth a look: it is by http, and somebody may be known.
    func mayConcern(_ request: Request) -> Bool {
        guard store.mayKnow, case .success(let destination) = request.destination else { return false }
        return !destination.target.origin.isSecure
    }

    /// The same request by https, if its server wants to be asked by nothing else (RFC 6797 §8.3); `nil` if it stays.
    @inline(never)
    func upgrade(_ request: Request, _ load: LoadHandle) async -> Request? {
        guard case .success(let destination) = request.destination else { return nil }
        if !store.isReady { await store.load(for: load) }
        guard store.requiresTLS(destination.target.origin.host), let url = Self.secure(request.url) else { return nil }
        var secure = request
        secure.url = url
        // It is its own site still (RFC 6265bis §5.2 compares schemes).
        if let document = request.mainDocumentURL, document.host() == url.host(), let same = Self.secure(document) {
            secure.mainDocumentURL = same
        }
        return secure
    }

    static func secure(_ url: URL) -> URL? {
        (try? URIReference(url.absoluteString))?.securingHTTP.flatMap { URL(string: $0.absoluteString) }
    }

    /// Notes what a server says over a connection whose trust nobody had to force (§8.1).
    func receive(_ head: HTTPHead, from destination: Destination, isForced: Bool) {
        guard notes, !isForced, destination.target.origin.isSecure, head.headers.contains(.strictTransportSecurity)
        else { return }
        store.receive(head.headers, from: destination.target.origin.host)
    }

    /// Whether nobody may be made to trust a server by another way than the checks; so it is while nobody knows.
    func forbidsTrust(in name: String, _ load: LoadHandle) async -> Bool {
        guard !settings.unsafelyAllowsUntrustedCertificates, let host = try? Origin.Host(name) else { return false }
        if !store.isReady { await store.load(for: load) }
        return !store.isLoaded || store.requiresTLS(host)
    }
}

extension LoadError.Reason {
    /// The server's certificate is not to be trusted, a decision wanted to trust it all the same, and the server is known to
    /// forbid that (RFC 6797 §8.4).
    public static let strictTransportSecurity = Self("strictTransportSecurity", -1202)
}
