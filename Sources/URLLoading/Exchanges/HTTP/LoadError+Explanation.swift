// SPDX-License-Identifier: Apache-2.0

// What only the request or the configuration knows about an error.

import URLLoadingIO
import URLLoadingWire

extension LoadError {
    /// Returns this error with the name of the field that cannot be sent, or with the hosts for which the configuration
    /// has a client certificate.
    func explained(by request: Request, _ configuration: Configuration) -> LoadError {
        switch reason {
        case .malformedFieldName where party == .local, .malformedFieldValue where party == .local:
            request.headers.lastMalformed.map { adding("the field \(String(reflecting: $0.description))") } ?? self
        case .clientCertificateRequired where !configuration.tls.clientIdentities.isEmpty:
            adding(
                "tls.clientIdentities has certificates for "
                    + configuration.tls.clientIdentities.map(\.rule.pattern.text).joined(separator: ", "))
        default: self
        }
    }
}
