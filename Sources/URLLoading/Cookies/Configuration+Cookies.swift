extension Configuration {
    /// Which cookies go with requests, and where they are kept.
    ///
    /// ```swift
    /// configuration.cookies.storage = .store(CookieStore())   // shared with whoever else is given it
    /// configuration.cookies.acceptPolicy = .never             // send what is there, take nothing new
    /// ```
    public struct Cookies: Sendable {
        /// Where they are kept: by default in ``CookieStore/shared``, and of an ephemeral session in a store of its own.
        /// ``Session/cookies`` is that store.
        public var storage = Storage.automatic
        /// Which cookies of servers are taken; `nil`, the default, leaves it to the store
        /// (``CookieStore/acceptPolicy``), where it can be changed at any time.
        public var acceptPolicy: CookieStore.AcceptPolicy?
        /// The same, where neither this nor the store has been told any.
        package var fallbackPolicy = CookieStore.AcceptPolicy.always
        /// Whether cookies of the store go with requests.
        public var sendsCookies = true
        /// Bytes of a Cookie field, at least 0. Servers commonly refuse more than 8 KiB of fields; cookies that do not fit are
        /// left out, the more general first.
        public var maximumFieldSize = 8 * 1024

        public init() {}

        /// Where cookies are kept.
        public enum Storage: Sendable {
            /// In ``CookieStore/shared``; of an ephemeral session in memory, until it is invalidated.
            case automatic
            /// In this one.
            case store(CookieStore)
            /// Nowhere: none is sent, none is taken.
            case none
        }
    }
}

/// The cookies of a session, as its loads use them.
struct CookieJar: Sendable {
    let store: CookieStore
    /// Made for the session, and nobody else's.
    let isOwn: Bool
    private let settings: Configuration.Cookies

    init?(_ configuration: Configuration) {
        settings = configuration.cookies
        switch settings.storage {
        case .none: return nil
        case .store(let store): (self.store, isOwn) = (store, false)
        case .automatic where configuration.isEphemeral: (store, isOwn) = (CookieStore(), true)
        case .automatic: (store, isOwn) = (.shared, false)
        }
    }

    /// Whether the Cookie that is sent is the store's.
    func mayAttach(to request: Request) -> Bool {
        settings.sendsCookies && request.handlesCookies && !request.headers.contains(.cookie)
    }

    /// Puts the cookies for a request into it. A jar without a cookie costs next to nothing.
    func attach(to request: inout PreparedRequest) {
        guard settings.sendsCookies, request.request.handlesCookies, !request.hasOwnCookies else { return }
        guard store.hasCookies else { return request.setCookies(nil) }
        let context = CookieContext(request.destination.target, request.request.mainDocumentURL)
        request.setCookies(store.field(for: context, most: settings.maximumFieldSize))
    }

    /// Takes those of an answer.
    func receive(_ head: HTTPHead, to request: PreparedRequest) {
        // A proxy speaks for itself when it asks who we are, and is not the server.
        guard request.request.handlesCookies, head.headers.contains(.setCookie),
            head.status != .proxyAuthenticationRequired
        else { return }
        store.receive(
            head.headers, CookieContext(request.destination.target, request.request.mainDocumentURL),
            policy: settings.acceptPolicy, otherwise: settings.fallbackPolicy)
    }
}

extension Session {
    /// Where the session keeps its cookies; `nil` if it keeps none.
    public nonisolated var cookies: CookieStore? { core.cookies?.store }
}
