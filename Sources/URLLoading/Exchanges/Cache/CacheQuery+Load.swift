// SPDX-License-Identifier: Apache-2.0

// Builds the cache query of a load's request, and gives the cache the facts about the load's session.

import URLLoadingWire

extension CacheQuery {
    init(_ hop: Hop, _ load: LoadContext) {
        let core = load.core
        self.init(
            hop.request, isForeign: hop.isForeign, policy: hop.request.cachePolicy ?? core.requestDefaults.cachePolicy,
            core.defaultFields, configured: hop.isForeign ? nil : core.configuration.headers, load)
        checks = core.cache?.checks
        sessionAcceptsAnyAge = core.requestDefaults.storesForAnyAge
        if load.handshakeDecision != nil, policy != .onlyIfCached, !control.flags.contains(.onlyIfCached) {
            acceptedCertificates = Self.acceptedCertificates(hop, load)
        }
        // The store's cookies are read when the request is sent; by then they may belong to another user.
        guard ownCookie == nil, let jar = core.cookies, jar.mayAttach(to: hop.request) else { return }
        (knowsCookies, cookies) = (false, jar.store.mark)
    }

    private static func acceptedCertificates(_ hop: Hop, _ load: LoadContext) -> Set<String>? {
        guard let decision = load.handshakeDecision, case .success(let destination) = hop.request.destination,
            destination.target.origin.isSecure, load.decidesServerTrust
        else { return nil }
        return load.core.cache?.acceptedCertificates(by: decision.group, destination.target.origin)
    }
}

extension LoadContext: CacheUser {
    var cacheMark: String { core.cacheMark }
    var addressPolicy: AddressPolicy { core.configuration.networks.addressPolicy }
    var hasAddressPolicy: Bool { !core.configuration.networks.addressPolicy.isOpen }
    func connectedHost(of origin: Origin) -> Origin.Host {
        core.configuration.networks.addressOverrides.target(of: origin).host
    }
    var trustMark: String { "\(core.pool.connector.secure.generation)/\(handshakeDecision?.group ?? 0)" }
    var signerMark: Int? { signDecision?.identity }
    func preemptiveCredential(for destination: Destination) -> Credential? {
        core.authenticator.isInUse ? core.authenticator.preemptiveCredential(for: destination) : nil
    }
}
