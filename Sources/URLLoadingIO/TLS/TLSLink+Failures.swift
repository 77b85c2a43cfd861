// SPDX-License-Identifier: Apache-2.0

// Turns a failed SSL call into an error: a failure of the transport below, of a certificate, or of the peer.

import URLLoadingCOpenSSL
import URLLoadingCSystem

extension TLSLink {
    /// Translates the failure of an SSL call.
    /// - Parameter error: the result of `SSL_get_error`.
    func failure(
        of operation: IOFailure.Operation, _ error: Int32, _ ssl: OpaquePointer, _ name: TLSPeerName?,
        _ limits: TLSLimits?
    ) -> IOFailure {
        let (_, reason, words) = OpenSSLErrors.take()
        if let failure { return IOFailure(failure.code, operation) }
        let kind = kind(operation, error, reason)
        let trust = check?.failure == nil ? nil : check?.trust
        let chain = trust?.shown.map(\.der) ?? PEM.der(stack: SSL_get_peer_cert_chain(ssl))
        var remedies = check?.missingIssuerRemedy.map { [$0] } ?? []
        if operation == .handshake, let limits {
            remedies += TLSRemedy.remedies(kind, limits, isEarly: chain.isEmpty)
        }
        let tls = TLSFailure(
            kind, name: name, detail: detail(reason, words), chain: chain, trust: trust, remedies: remedies)
        return IOFailure(.tls(tls), operation)
    }

    private func kind(_ operation: IOFailure.Operation, _ error: Int32, _ reason: Int32) -> TLSFailure.Kind {
        if let first = firstByte, !(0x14...0x17).contains(first) { return .notTLS }
        if let failure = check?.failure { return failure.kind }
        if hasEnded || error == SSL_ERROR_ZERO_RETURN {
            return operation == .handshake ? .handshakeEndedByPeer : .truncated
        }
        let kind = TLSFailure.Kind(reason: reason)
        return giving?.kind(kind) ?? kind
    }

    private func detail(_ reason: Int32, _ words: String) -> String {
        // OpenSSL's own message would only say that the verification failed.
        check?.failure.map { "\($0.words) at depth \($0.depth)" } ?? TLSFailure.Kind(reason: reason).alertWords ?? words
    }
}

extension IOFailure {
    /// The failure of a step before the handshake, in OpenSSL's words.
    static func handshakeRefusal(_ kind: TLSFailure.Kind, _ name: TLSPeerName?, _ doing: String) -> IOFailure {
        let words = OpenSSLErrors.take().words
        return IOFailure(
            .tls(TLSFailure(kind, name: name, detail: words.isEmpty ? doing : "\(doing): \(words)")), .handshake)
    }
}
