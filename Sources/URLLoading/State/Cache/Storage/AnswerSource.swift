// SPDX-License-Identifier: Apache-2.0

// The servers whose answers make up a response.

import URLLoadingIO
import URLLoadingWire

/// The addresses of the servers that a stored response came from: of its body, and of later answers that updated its
/// fields.
enum AnswerSource: Sendable, Hashable {
    /// The address is unknown: behind a proxy or a Unix socket, stored by a program, or stored by a version that kept
    /// no addresses.
    case unknown
    case one(SocketAddress)
    /// Up to ``most`` addresses.
    case several([SocketAddress])

    /// More addresses than this count as unknown.
    static let most = 8

    /// The address of a connection's peer, if the peer is the server itself.
    init(_ transport: any Transport, _ route: Route) {
        guard route.proxyChain.isDirect, let peer = transport.remoteAddress, peer.family != .unix else {
            self = .unknown
            return
        }
        self = .one(peer)
    }

    init(_ addresses: [SocketAddress]) {
        switch addresses.count {
        case 1: self = .one(addresses[0])
        case 2...Self.most: self = .several(addresses)
        default: self = .unknown
        }
    }

    var addresses: [SocketAddress] {
        switch self {
        case .unknown: []
        case .one(let address): [address]
        case .several(let addresses): addresses
        }
    }

    /// Returns the source of a response that was made of two answers.
    func united(with other: AnswerSource) -> AnswerSource {
        guard self != other else { return self }
        guard self != .unknown, other != .unknown else { return .unknown }
        let own = addresses
        return AnswerSource(own + other.addresses.filter { !own.contains($0) })
    }

    /// Whether a policy allows a connection to every one of the addresses; false if they are unknown.
    func isAllowed(by policy: AddressPolicy, to host: Origin.Host) -> Bool {
        self != .unknown && addresses.allSatisfy { policy.allows(ResolvedAddress($0, of: host)) }
    }
}
