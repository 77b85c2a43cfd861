// SPDX-License-Identifier: Apache-2.0

/// The search for an offer of HTTP/3 in the HTTPS records of an origin (RFC 9460 §9): which name is asked for next, and
/// what comes out. A value without I/O.
///
/// ```swift
/// var lookup = ServiceLookup(host: "www.example.com", port: 443)
/// // …ask for the records of `lookup.name`, then:
/// if let offer = lookup.take(answer) { … } else { /* ask for `lookup.name` */ }
/// ```
package struct ServiceLookup: Sendable {
    /// The name to ask for.
    package private(set) var name: DNSName
    private let host: DNSName
    private let port: UInt16
    private var lifetime = Self.longest
    private var aliases = 0

    private static let mostAliases = 8
    /// The bounds of a lifetime in seconds.
    private static let shortest: Int64 = 60
    private static let longest: Int64 = 86_400

    /// - Parameter host: a name. Returns `nil` for one that cannot be asked for, or whose records are never in the
    ///   global system: one without a dot, those of this machine and of its network (RFC 6761, RFC 6762), and of Tor
    ///   (RFC 7686).
    package init?(host: String, port: UInt16) {
        guard let host = DNSName(host), host.labels.count > 1, let last = host.labels.last,
            !Self.local.contains(String(decoding: last, as: UTF8.self))
        else { return nil }
        (self.host, self.port) = (host, port)
        guard port != 443 else {
            name = host
            return
        }
        // RFC 9460 §9.1.
        guard let own = DNSName(labels: [Array("_\(port)".utf8), Array("_https".utf8)] + host.labels) else {
            return nil
        }
        name = own
    }
    private static let local: Set = ["localhost", "local", "onion", "invalid", "alt"]

    /// Takes the answer for `name`. Returns the result, or `nil` if `name` has changed, and is to be asked for.
    package mutating func take(_ answer: ServiceAnswer) -> ServiceOffer? {
        lifetime = min(lifetime, max(Self.shortest, answer.lifetime))
        switch answer.content {
        case .none: return ServiceOffer(lifetime: lifetime)
        case .services(let records): return ServiceOffer(service: service(records), lifetime: lifetime)
        case .alias(let target):
            aliases += 1
            guard aliases <= Self.mostAliases else { return ServiceOffer(lifetime: lifetime) }
            name = target
            return nil
        }
    }

    /// Returns what the best records that this client can use say of HTTP/3. One that is worse is for clients that do
    /// not reach the best ones.
    private func service(_ records: [ServiceRecord]) -> AlternativeService? {
        let usable = records.filter { !$0.isForOthers && !Self.spoken.isDisjoint(with: $0.protocols) }
        guard let best = usable.map(\.priority).min(),
            let record = usable.first(where: { $0.priority == best && $0.protocols.contains("h3") }),
            let place = record.target.host
        else { return nil }
        let port = record.port ?? self.port
        guard port > 0 else { return nil }
        if record.target == host { return AlternativeService("h3", port: port) }
        return (try? Origin.Host(place)).map { AlternativeService("h3", host: $0, port: port) }
    }
    private static let spoken: Set = ["h3", "h2", "http/1.1"]
}

/// What the HTTPS records of an origin say of HTTP/3.
package struct ServiceOffer: Sendable, Equatable {
    /// `nil` if there is no offer.
    package let service: AlternativeService?
    /// How long that holds, in seconds.
    package let lifetime: Int64

    package init(service: AlternativeService? = nil, lifetime: Int64) {
        (self.service, self.lifetime) = (service, lifetime)
    }
}
