// SPDX-License-Identifier: Apache-2.0

// Decides about redirects: the target and the fields of the next request (RFC 9110 §15.4, §10.2.2). Pure.

import FoundationEssentials
import URLLoadingWire

enum RedirectPlan {
    /// Not a redirect, or one whose Location is missing or empty: the response is the result.
    case deliver
    case follow(Request)
    /// The redirect must not be followed. The decision is called nevertheless, because it may take the response as the
    /// result.
    case refuse(LoadError, Request)

    @inline(never)  // Inlined, it would enlarge the stack frame of every load.
    static func make(_ exchange: any Exchange, _ request: Request, followed: Int, maximum: Int) -> RedirectPlan {
        var answered = request
        // A handler may have sent another request, whose URL is the base of the redirect.
        if let url = exchange.head.map({ _ in exchange.response.url }), url != request.url { answered.url = url }
        if let proposed = exchange.redirect { return make(proposed, answered, followed: followed, maximum: maximum) }
        guard let head = exchange.head else { return .deliver }
        return make(head, answered, followed: followed, maximum: maximum)
    }

    /// Decides about a redirect proposed by a handler, whose request is sent unchanged if it may be sent at all.
    private static func make(_ proposed: Request, _ request: Request, followed: Int, maximum: Int) -> RedirectPlan {
        let (from, to) = (request.url.scheme?.lowercased(), proposed.url.scheme?.lowercased())
        if to == "file" || to == "data", from != to {
            return .refuse(
                LoadError(
                    .redirectRefused, phase: .redirecting, party: .local,
                    detail: "redirects to \(to ?? ""): are followed from \(to ?? ""): URLs only"),
                proposed)
        }
        return followed < maximum ? .follow(proposed) : .refuse(tooMany(followed), proposed)
    }

    private static func tooMany(_ followed: Int) -> LoadError {
        LoadError(.tooManyRedirects, phase: .redirecting, party: .remote, detail: "after \(followed) redirects")
    }

    static func make(_ head: HTTPHead, _ request: Request, followed: Int, maximum: Int) -> RedirectPlan {
        guard isRedirect(head.status), let location = head.headers.values(of: .location).first, !location.isEmpty else {
            return .deliver
        }
        guard let next = resolve(location, request.url, isWebSocket: request.headers[.upgrade] == "websocket") else {
            return .refuse(
                LoadError(.badRedirect, phase: .redirecting, party: .remote, detail: "the Location is not a valid URL"),
                request)
        }
        // A server must not redirect a load to a local file.
        let target: Destination
        switch next.destination {
        case .success(let destination): target = destination
        case .failure(let violation):
            let isScheme = violation.code == .unsupportedScheme
            return .refuse(
                LoadError(
                    isScheme ? .redirectRefused : .badRedirect, phase: .redirecting, party: .remote,
                    detail: isScheme ? "only http and https may be redirected to" : violation.explanation), next)
        }
        // A request without a destination was never sent.
        guard case .success(let origin) = request.destination else { return .deliver }
        var changed = request
        // A redirected main document is its own main document at the new URL.
        if changed.mainDocumentURL == changed.url { changed.mainDocumentURL = next.url }
        changed.url = next.url
        rewriteMethod(&changed, head.status)
        if target.route != origin.route { removeSecrets(&changed) }
        rewriteReferer(&changed, from: origin.route.origin, to: target.route.origin)
        guard followed < maximum else {
            return .refuse(tooMany(followed), changed)
        }
        return .follow(changed)
    }

    private static func isRedirect(_ status: Status) -> Bool {
        switch status.code {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }

    /// Resolves the Location against the request's URL; the fragment is inherited (RFC 9110 §10.2.2).
    private static func resolve(_ location: String, _ base: URL, isWebSocket: Bool) -> Request? {
        guard let reference = try? URIReference(location, repairing: true),
            let base = try? URIReference(base.absoluteString), let next = try? base.resolve(reference)
        else { return nil }
        var text = next.absoluteString
        if next.fragment == nil, let fragment = base.fragment { text += "#" + fragment }
        let url = URL(string: text)
        return (isWebSocket ? url?.openingWebSocket ?? url : url).map { Request(url: $0) }
    }

    /// Changes the method: 303 turns all methods but HEAD into GET; 301 and 302 do so with POST, as every client does
    /// (RFC 9110 §15.4.2, §15.4.3); 307 and 308 keep the method.
    private static func rewriteMethod(_ request: inout Request, _ status: Status) {
        let becomesGet =
            switch status.code {
            case 303: request.method != .head && request.method != .get
            case 301, 302: request.method == .post
            default: false
            }
        guard becomesGet else { return }
        request.method = .get
        request.body = nil
        // The fields that describe the removed body (§15.4).
        for name in Self.contentFields { request.headers.remove(name) }
    }

    private static let contentFields: [FieldName] = [
        .contentType, .contentLength, .contentEncoding, "Content-Language", "Content-Location", "Content-MD5", "Digest",
        .contentDigest, .reprDigest,
        "Last-Modified", .transferEncoding, .trailer, .expect,
    ]

    /// Removes credentials, because another scheme, host or port is another server. They stay removed for later hops,
    /// which start from this request.
    private static func removeSecrets(_ request: inout Request) {
        for name in FieldName.personal { request.headers.remove(name) }
    }

    /// Strips userinfo and fragment from the caller's Referer, and removes it between https and http (RFC 9110
    /// §10.1.3).
    private static func rewriteReferer(_ request: inout Request, from: Origin, to: Origin) {
        guard let value = request.headers[.referer] else { return }
        guard !(from.scheme == "https" && to.scheme == "http"), let reference = try? URIReference(value) else {
            request.headers.remove(.referer)
            return
        }
        request.headers[.referer] = String(reference.removingUserinfo.absoluteString.prefix { $0 != "#" })
    }
}
