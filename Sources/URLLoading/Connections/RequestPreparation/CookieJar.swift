// SPDX-License-Identifier: Apache-2.0

// Adds the cookies of a session to its requests, and takes those of its responses.

import FoundationEssentials
import URLLoadingWire

/// The cookies of a session, as its loads use them.
final class CookieJar: Sendable {
    let store: CookieStore
    /// The store was made for this session only.
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

    /// Whether the request's Cookie field comes from the store.
    func mayAttach(to request: Request) -> Bool {
        settings.sendsCookies && request.handlesCookies && !request.headers.contains(.cookie)
    }

    /// Adds the matching cookies to a request. Costs almost nothing if the store is empty.
    func attach(to request: inout PreparedRequest) {
        guard settings.sendsCookies, request.request.handlesCookies, !request.hasOwnCookies else { return }
        guard store.hasCookies else { return request.setCookies(nil) }
        let context = CookieContext(request.destination.target, request.request.mainDocumentURL)
        request.setCookies(store.field(for: context, most: settings.maximumFieldSize))
    }

    /// Stores the cookies of a response.
    func receive(_ head: HTTPHead, to request: PreparedRequest) {
        // A 407 comes from a proxy, which must not set cookies of the server.
        guard request.request.handlesCookies, head.headers.contains(.setCookie),
            head.status != .proxyAuthenticationRequired
        else { return }
        receive(head, CookieContext(request.destination.target, request.request.mainDocumentURL))
    }

    /// Stores the cookies of a response to a transfer of the background agent.
    func receive(_ response: Response) {
        guard let head = response.http, head.headers.contains(.setCookie), head.status != .proxyAuthenticationRequired,
            case .success(let destination) = Request(url: response.url).destination
        else { return }
        receive(head, CookieContext(destination.target, nil))
    }

    private func receive(_ head: HTTPHead, _ context: CookieContext) {
        store.receive(
            head.headers, context, policy: settings.acceptPolicy, otherwise: settings.fallbackPolicy)
    }
}
