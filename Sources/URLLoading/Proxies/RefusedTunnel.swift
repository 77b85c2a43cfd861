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

extension LoadControl {
    /// Keeps a connection for the next try of this load.
    final func keep(_ tunnel: RefusedTunnel) {
        let last = refusedTunnel.withLock { kept in
            defer { kept = tunnel }
            return kept
        }
        last?.close()
    }

    final func takeRefusedTunnel() -> RefusedTunnel? { refusedTunnel.withLock { $0.take() } }

    /// What names the kept connection to a proof.
    final var refusedBinding: [UInt8]? { refusedTunnel.withLock { $0?.binding } }

    /// No other try follows, or it went another way.
    final func forgetRefusedTunnel() { takeRefusedTunnel()?.close() }
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
