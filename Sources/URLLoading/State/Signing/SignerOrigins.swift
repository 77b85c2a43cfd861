// SPDX-License-Identifier: Apache-2.0

import URLLoadingWire

/// The origins whose requests a signer signs.
enum SignerOrigins: Sendable {
    /// Wherever the caller's request goes, and not where redirects lead from there.
    case ofCaller
    /// Where all origins of the load are listed: the caller's, and those that redirects have led to. A redirect from
    /// another server must not choose what is signed for a listed one.
    case only(Set<Origin>)

    /// - Parameter texts: scheme, host and port; a path is ignored.
    init(_ texts: [String]) throws(LoadError) {
        var all: Set<Origin> = []
        for text in texts {
            do throws(WireViolation) { all.insert(try Target(text).origin) } catch {
                throw LoadError(error, .preparing)
            }
        }
        self = .only(all)
    }

    func contains(_ request: SigningRequest) -> Bool {
        switch self {
        case .ofCaller: return !request.isForeign
        case .only(let origins):
            return (request.left + [request.origin]).allSatisfy { origin in origin.map(origins.contains) ?? false }
        }
    }
}
