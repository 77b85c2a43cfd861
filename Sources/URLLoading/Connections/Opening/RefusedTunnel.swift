// SPDX-License-Identifier: Apache-2.0

// A connection to a proxy that demanded credentials for a tunnel and keeps the connection open for another CONNECT.
// Schemes that authenticate a connection (NTLM, Negotiate) require this; the others save a connection.
//
// Rule 1: only the load that was refused uses the connection, because the proxy associates it with that load's
// credentials.
// Rule 2: it is used once. The result is a tunnel, or another refused one.

import Synchronization
import URLLoadingIO

struct RefusedTunnel: Sendable {
    let transport: any Transport
    /// The proxies whose tunnels are open already.
    let passed: ArraySlice<Proxy>
    /// The proxy that refused.
    let proxy: Proxy
    /// The refusal, as far as it has been read.
    var refusal: ProxyOpening.Refusal
    let tap: ProxyTap?

    /// Whether a chain begins with the same proxies; the credentials may differ.
    func begins(_ proxyChain: ProxyChain) -> Bool { proxyChain.reaches(proxy, behind: passed) }

    /// The channel binding of the connection to the refusing proxy (RFC 5929).
    var binding: [UInt8]? { proxy.kind == .https ? (transport as? TLSTransport)?.endPointBinding : nil }

    func close() { transport.close() }
}

/// Keeps the connection that the next attempt through a proxy may use. Made for the sequential attempts of one request.
final class RefusedTunnels: Sendable {
    private let kept = Lock<RefusedTunnel?>(nil)

    deinit { forget() }

    /// Keeps a connection for the next attempt.
    func keep(_ tunnel: RefusedTunnel) {
        let last = kept.withLock { kept in
            defer { kept = tunnel }
            return kept
        }
        last?.close()
    }

    func take() -> RefusedTunnel? { kept.withLock { $0.take() } }

    /// The channel binding of the kept connection.
    var binding: [UInt8]? { kept.withLock { $0?.binding } }

    /// Closes the kept connection when no attempt follows, or another chain is used.
    func forget() { take()?.close() }
}

extension ProxyChain {
    /// Whether the chain passes through exactly these proxies, and then to the address of another.
    func reaches(_ proxy: Proxy, behind passed: ArraySlice<Proxy>) -> Bool {
        guard proxies.count > passed.count, proxies.starts(with: passed) else { return false }
        return proxies[passed.count].isSamePlace(as: proxy)
    }
}

extension Proxy {
    fileprivate func isSamePlace(as other: Proxy) -> Bool {
        (kind, host, port, socketPath) == (other.kind, other.host, other.port, other.socketPath)
    }
}
