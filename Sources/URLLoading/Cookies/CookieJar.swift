// The cookies of a session on the way into requests and out of responses.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

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
