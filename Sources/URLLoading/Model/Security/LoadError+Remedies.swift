// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

extension LoadError {
    /// A setting of ``Configuration/TLS`` with which a failed load could succeed.
    ///
    /// All but the last make connections to the host less safe.
    public enum TLSRemedy: Sendable, Hashable, CustomStringConvertible {
        /// ``Configuration/TLS/UnsafeConcessions/minimumVersion``: the server has no TLS 1.2.
        case minimumVersion
        /// ``Configuration/TLS/UnsafeConcessions/minimumStrength``: a key or a signature is weak.
        case minimumStrength
        /// ``Configuration/TLS/UnsafeConcessions/allowsInsecureRenegotiation``.
        case insecureRenegotiation
        /// ``Configuration/TLS/UnsafeConcessions/allowsMissingCloseNotify``.
        case missingCloseNotify
        /// ``Configuration/TLS/fetchesMissingIssuers``: the certificate names this address of its issuer's.
        case missingIssuer(String)

        /// The setting: `tls.unsafeConcessions with minimumVersion .tls10 accepts it`.
        public var description: String {
            switch self {
            case .minimumVersion: "tls.unsafeConcessions with minimumVersion .tls10 accepts it"
            case .minimumStrength: "tls.unsafeConcessions with minimumStrength .any accepts it"
            case .insecureRenegotiation: "tls.unsafeConcessions with allowsInsecureRenegotiation accepts it"
            case .missingCloseNotify: "tls.unsafeConcessions with allowsMissingCloseNotify accepts it"
            case .missingIssuer(let location): "tls.fetchesMissingIssuers fetches the issuer from \(location)"
            }
        }
    }

    /// Returns this error with settings that could help; unchanged if it has another underlying error.
    func adding(_ remedies: [TLSRemedy]) -> LoadError {
        guard !remedies.isEmpty, underlying == nil else { return self }
        return with(underlying: TrustFailure(trust: nil, remedies: remedies))
    }

    /// The clause about these settings; `nil` without any.
    var remedyWords: String? {
        let cause = (underlying as? any ErrorCarrier)?.cause ?? underlying
        let words = ((cause as? TrustFailure)?.remedies ?? []).map(\.description)
        return words.isEmpty ? nil : words.joined(separator: ", or ")
    }
}

extension LoadError.TLSRemedy {
    init(_ remedy: TLSRemedy) {
        self =
            switch remedy {
            case .version: .minimumVersion
            case .strength: .minimumStrength
            case .renegotiation: .insecureRenegotiation
            case .missingCloseNotify: .missingCloseNotify
            case .missingIssuer(let location): .missingIssuer(location)
            }
    }
}
