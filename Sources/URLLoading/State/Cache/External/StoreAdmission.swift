// SPDX-License-Identifier: Apache-2.0

// What may leave the program for an external cache, decided before the cache is asked. Pure.

import URLLoadingWire

struct StoreAdmission: Sendable {
    /// Whether the rules of a cache apply that several users share (RFC 9111 §3, §3.5).
    let isShared: Bool

    /// Returns a response as it may be given to the external cache; `nil` if it may not.
    /// - Parameter head: as it was received; `nil` for what was admitted before.
    func admitted(_ response: StoredResponse, _ head: HTTPHead?) -> StoredResponse? {
        guard response.isWhole, head?.headers.contains(.setCookie) != true else { return nil }
        // Connection, `no-cache` and `private` may list fields that a cache does not keep. Those by which it is decided
        // who may have the response are not left out, so such a response is not stored.
        let isLacking = Self.deciding.contains { head?.headers.contains($0) == true && !response.headers.contains($0) }
        guard !isLacking else { return nil }
        let control = CacheControl(response.headers)
        // `private` of single fields counts as well.
        if isShared, control.flags.contains(.private) { return nil }
        var admitted = response
        if let identity = response.varying[Varying.identity] ?? nil {
            guard isOfField(identity), allowsAuthorization(control, response) else { return nil }
            admitted.varying[Varying.identity] = nil
        }
        guard !Self.hasOwner(admitted.varying) else { return nil }
        let rules = rules(of: admitted, control)
        guard rules.isReusable else { return nil }
        (admitted.rules, admitted.isMemoryOnly) = (rules, false)
        return admitted
    }

    /// Returns a response from the external cache as the cache has it for a request; `nil` if the cache must not have
    /// it. To a request with Authorization it is the requester's own, if the server lets everyone have it.
    func adopted(_ response: StoredResponse, _ query: CacheQuery) -> StoredResponse? {
        let control = CacheControl(response.headers)
        guard !Self.hasOwner(response.varying), !(isShared && control.flags.contains(.private)) else { return nil }
        var adopted = response
        adopted.rules = rules(of: response, control)
        if let identity = query.identity, allowsAuthorization(control, response) {
            adopted.varying[Varying.identity] = .some(identity)
        }
        return adopted
    }

    /// RFC 9111 §3.5. `must-revalidate` would do by the letter, but many servers send it with responses for one user.
    private func allowsAuthorization(_ control: CacheControl, _ response: StoredResponse) -> Bool {
        guard isShared, control.flags.contains(.public) || control.sharedMaxAge != nil else { return false }
        if case .names(let names)? = VaryField(response.headers) { return !names.contains(Varying.identity) }
        return true
    }

    private static let deciding: [FieldName] = [.cacheControl, .vary]

    /// Whether the identity is that of an Authorization field: the user of a URL, a login of the session, a client
    /// certificate and a signature have other marks.
    private func isOfField(_ identity: String) -> Bool { identity.hasPrefix("sha256:") }

    /// Whether marks distinguish one owner from others. The checks of the server are no owner: sessions with other
    /// checks have other keys.
    private static func hasOwner(_ varying: [String: String?]) -> Bool {
        CacheOwner.names.subtracting([CacheOwner.trust, CacheOwner.server]).contains { (varying[$0] ?? nil) != nil }
    }

    private func rules(of response: StoredResponse, _ control: CacheControl) -> CacheRules {
        CacheRules(
            response.status, response.headers, isShared ? control.inSharedCache : control,
            requestTime: response.requestTime, responseTime: response.responseTime)
    }
}

extension StoredResponse {
    /// The seconds for which a record of this response is of use, counted from its arrival: while it is fresh, while it
    /// may be served stale, and with a validator for another day.
    var usefulLifetime: Double {
        let rules = knownRules
        let stale = max(rules.control.staleWhileRevalidate ?? 0, rules.control.staleIfError ?? 0)
        let more = max(Double(stale), rules.hasValidator ? 86_400 : 0)
        return min(max(1, rules.lifetime - rules.initialAge + more), 31_536_000)
    }
}
