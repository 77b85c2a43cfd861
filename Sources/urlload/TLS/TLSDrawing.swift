// SPDX-License-Identifier: Apache-2.0

// Draws a certificate chain and the result of its verification in a few lines.

import FoundationEssentials
import URLLoading

enum TLSDrawing {
    /// The parameters of the connection.
    struct Agreed {
        var version: Configuration.TLS.Version
        var cipherSuite: String?
        var group: String?
        var isPostQuantum: Bool?
        var signature: String?
        var concessions: Set<Configuration.TLS.UnsafeConcessions.Kind> = []

        /// `nil` without TLS.
        init?(_ transaction: LoadMetrics.Transaction) {
            guard let version = transaction.tlsVersion else { return nil }
            (self.version, cipherSuite) = (version, transaction.cipherSuite)
            (group, isPostQuantum) = (transaction.keyExchangeGroup, transaction.isPostQuantum)
            signature = transaction.signatureAlgorithm
            concessions = transaction.tlsConcessions
        }
    }

    static func make(
        _ trust: ServerTrust, _ request: ClientCertificateRequest? = nil, _ agreed: Agreed? = nil,
        _ failure: LoadError?, now: Date
    ) -> String {
        var text = "\(trust.host)\n"
        let chain = trust.chain.isEmpty ? trust.certificates : trust.chain
        for (depth, certificate) in chain.enumerated() {
            let own = trust.failures.filter { $0.depth == depth }
            let origin =
                trust.certificates.contains(certificate)
                ? "sent" : depth == chain.count - 1 ? "trusted root" : "not sent"
            text += "\(depth)  \(certificate.subject)  (\(origin))\n"
            if depth == 0 { text += "   for   \(names(certificate))\n" }
            text += "   key   \(certificate.publicKey), signed \(certificate.signatureAlgorithm)\n"
            text += "   until \(certificate.notAfter.formatted(.iso8601)), \(days(until: certificate.notAfter, now))\n"
            text += "   pin   sha256//\(certificate.publicKeySHA256.base64EncodedString())\n"
            for failure in own { text += "   ✗     \(failure.reason): \(failure.detail)\n" }
        }
        if let last = chain.last, !last.isSelfIssued {
            text += "\(chain.count)  \(last.issuer)  (neither sent nor among the trusted roots)\n"
        }
        for failure in trust.failures where failure.depth >= chain.count {
            text += "✗ \(failure.reason): \(failure.detail)\n"
        }
        let unused = trust.certificates.filter { !chain.contains($0) }
        if !unused.isEmpty {
            text +=
                "   \(unused.count) more sent, of no use: \(unused.map(\.subject).joined(separator: "; "))\n"
        }
        if let request { text += asked(request) }
        if let agreed { text += words(agreed) }
        return text + verdict(trust, failure) + "\n"
    }

    private static func words(_ agreed: Agreed) -> String {
        var text = "TLS \(agreed.version.rawValue / 10).\(agreed.version.rawValue % 10)"
        if let suite = agreed.cipherSuite { text += ", \(suite)" }
        if let group = agreed.group {
            text += ", key exchange \(group) (\(agreed.isPostQuantum == true ? "" : "not ")post-quantum)"
        }
        if let signature = agreed.signature { text += ", signed \(signature)" }
        let conceded = agreed.concessions.map(\.rawValue).sorted()
        return text + (conceded.isEmpty ? "" : ", not safe: conceded \(conceded.joined(separator: ", "))") + "\n"
    }

    private static func asked(_ request: ClientCertificateRequest) -> String {
        let answer =
            request.proposed.map { "it gets \($0.certificates.first?.subject ?? "")" }
            ?? "none is set: --cert names one"
        let issuers =
            request.issuers.isEmpty
            ? "" : ", by \(request.issuers.count == 1 ? "one issuer" : "\(request.issuers.count) issuers")"
        return "asks for a client certificate\(issuers); \(answer)\n"
    }

    private static func verdict(_ trust: ServerTrust, _ failure: LoadError?) -> String {
        guard let failure else { return "✓ trusted" }
        let words = ErrorWords.sentence(failure.reason) ?? failure.detail ?? ""
        let remedy = ErrorWords.remedy(failure).map { "; \($0)" } ?? ""
        return "✗ \(failure.reason)" + (words.isEmpty ? "" : ": \(words)") + remedy
    }

    private static func names(_ certificate: Certificate) -> String {
        let all = certificate.subjectAlternativeNames.map(\.description)
        guard !all.isEmpty else {
            return "no host: it has no subject alternative names"
                + (certificate.commonName.map { " (the common name \($0) does not count)" } ?? "")
        }
        return all.prefix(6).joined(separator: ", ") + (all.count > 6 ? " and \(all.count - 6) more" : "")
    }

    private static func days(until end: Date, _ now: Date) -> String {
        let days = Int((end.timeIntervalSince(now) / 86_400).rounded(.down))
        return days < 0 ? "\(-days) days ago" : "\(days) days left"
    }
}
