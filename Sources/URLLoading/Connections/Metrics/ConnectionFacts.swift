// SPDX-License-Identifier: Apache-2.0

// The constant properties of a connection. Determined at their first use, because reading the local address is a system
// call.

import URLLoadingIO

final class ConnectionFacts: Sendable {
    let identifier: Int
    let local: SocketAddress?
    let remote: SocketAddress?
    let tlsVersion: Configuration.TLS.Version?
    let cipherSuite: String?
    let cipherSuiteNumber: UInt16?
    let keyExchangeGroup: String?
    let signatureAlgorithm: String?
    /// The concessions that the handshake used.
    let concessions: TLSConcessions.Used

    convenience init(_ transport: any Transport, _ identifier: Int) {
        self.init(
            local: transport.localAddress, remote: transport.remoteAddress, (transport as? TLSTransport)?.negotiated,
            identifier)
    }

    init(local: SocketAddress?, remote: SocketAddress?, _ agreed: TLSNegotiated?, _ identifier: Int) {
        (self.identifier, self.local, self.remote) = (identifier, local, remote)
        tlsVersion = agreed.map { Configuration.TLS.Version($0.version) }
        concessions = agreed?.concessions ?? []
        cipherSuite = agreed?.cipherSuite
        cipherSuiteNumber = agreed?.cipherSuiteNumber
        (keyExchangeGroup, signatureAlgorithm) = (agreed?.keyExchangeGroup, agreed?.signatureAlgorithm)
    }
}
