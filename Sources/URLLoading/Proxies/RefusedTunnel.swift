// A connection on which a proxy wanted credentials before it opens a tunnel, and which it keeps open: it is asked again
// there. Schemes that prove a connection and not a request (NTLM, Negotiate) know no other way, and the others save a
// connection.
//
// Rule 1: it is the load's that was refused, and nobody else's: what the proxy knows of it was said for that load.
// Rule 2: it has one use. What came of it is a tunnel, or another of these.

import Synchronization
import URLLoadingIO
import URLLoadingWire

struct RefusedTunnel: Sendable {
    let transport: any Transport
    /// The proxies that are passed already.
    let passed: ArraySlice<Proxy>
    /// Who refused.
    let proxy: Proxy
    /// How it refused, as far as that was read.
    var refusal: ProxyOpening.Refusal
    let tap: ProxyTap?

    /// Whether a way begins as this one did. Who asks may be somebody else now.
    func begins(_ way: ProxyChain) -> Bool { way.reaches(proxy, behind: passed) }

    /// What names its connection to a proof for who refused (RFC 5929).
    var binding: [UInt8]? { proxy.kind == .https ? (transport as? TLSTransport)?.endPointBinding : nil }

    func close() { transport.close() }
}

/// The connection that the next attempt over a proxy may use. Made for the attempts of one request, which take turns.
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

    /// No other attempt follows, or it went another way.
    func forget() { take()?.close() }
}

extension ProxyChain {
    /// Whether it goes through these proxies, who are the same to the last word, and then to the place where another is.
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
