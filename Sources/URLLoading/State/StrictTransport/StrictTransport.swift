// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import URLLoadingWire

/// The HSTS store and settings of a session, as its loads use them.
struct StrictTransportRules: Sendable {
    let store: HSTSStore
    /// The store was made for this session only.
    let isOwn: Bool
    /// A decision may trust a certificate that fails its checks, which the policy forbids.
    let allowsUntrustedCertificates: Bool

    /// Whether the request may need an upgrade: it uses http, and the store may know hosts.
    func mayConcern(_ request: Request) -> Bool {
        guard store.mayContainHosts, case .success(let destination) = request.destination else { return false }
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

    /// Stores the policy of a response (§8.1).
    /// - Parameter isProven: false if the certificate was not verified, or a decision forced its trust.
    func receive(_ head: HTTPHead, from destination: Destination, isProven: @autoclosure () -> Bool) {
        guard head.headers.contains(.strictTransportSecurity), destination.target.origin.isSecure, isProven() else {
            return
        }
        store.receive(head.headers, from: destination.target.origin.host)
    }

    /// Whether no decision may trust a server that fails its checks; true as well while the store has not been read.
    func forbidsTrust(in name: String, _ load: LoadHandle) async -> Bool {
        guard !allowsUntrustedCertificates, let host = try? Origin.Host(name) else { return false }
        if !store.isReady { await store.load(for: load) }
        return !store.isKnown || store.requiresTLS(host)
    }
}

extension LoadError.Reason {
    /// The server's certificate failed its checks, a decision wanted to trust it, and the server's HSTS policy forbids
    /// that (RFC 6797 §8.4).
    public static let strictTransportSecurity = Self("strictTransportSecurity", -1202)
}
