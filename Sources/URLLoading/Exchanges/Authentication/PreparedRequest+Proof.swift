// SPDX-License-Identifier: Apache-2.0

// Computes the digest of a request body, for proxies and origins that require auth-int (RFC 7616 §3.4.3).

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension PreparedRequest {
    mutating func prove(to proxy: Proxy, _ load: LoadContext) async throws(LoadError) {
        guard proxy.authorization == nil, let challenge = proxy.login?.digestChallenge, challenge.needsBody else {
            return
        }
        provedBody = try await bodyHash(Login.kind(challenge.hash), load)
    }

    /// Returns the hexadecimal digest; `nil` if the body could not be read. Reads files a second time, and asks a
    /// sequence or a body decision for a second body.
    func bodyHash(_ kind: DigestHash, _ load: LoadContext) async throws(LoadError) -> String? {
        switch body {
        case nil: return kind.hex([])
        case .data(let data)?: return kind.hex(Array(data))
        case .stream?:
            guard let content = request.body?.content else { return nil }
            if case .stream(_, _, let make) = content { return await OutgoingBody.hash(of: make, kind, load.handle) }
            return try await hashOfFreshBody(kind, load)
        case .parts(let parts)?:
            return await BlockingThreads.files.call(load.handle) { OutgoingBody.hash(of: parts, kind, load.handle) }
                ?? nil
        }
    }

    /// Digests another body of the decision, because the first may only be readable once.
    private func hashOfFreshBody(_ kind: DigestHash, _ load: LoadContext) async throws(LoadError) -> String? {
        var other = self
        other.body = try await OutgoingBody.open(
            try await load.demandBody(Hop(request: request), .challenge), load.handle)
        guard case .stream(_, _, let pieces)? = other.body else { return try await other.bodyHash(kind, load) }
        return await OutgoingBody.hash(of: { pieces }, kind, load.handle)
    }
}
