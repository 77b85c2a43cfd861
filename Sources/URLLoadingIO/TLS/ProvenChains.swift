// SPDX-License-Identifier: Apache-2.0

// Caches recently verified certificate chains. A server presents the same certificates to every connection, and
// verifying them again costs a sixth of a handshake, or more where an intermediate has an RSA key.
//
// Rule 1: an entry holds for one peer name, exactly these bytes, and one context with its roots, security level and
// purpose. Any other byte, name or context is verified anew.
// Rule 2: only success is cached, and not beyond the expiry of any certificate in the chain or beyond `life`. A program
// that withdraws trust in a root creates a new context; the old one honours its entries until `life` is over.
// Rule 3: pins, stapled status, decisions, and possession of the private key are checked for every connection.

import Synchronization
import URLLoadingCOpenSSL
import URLLoadingCSystem

final class ProvenChains: Sendable {
    /// Seconds. Browsers keep such results for up to half an hour.
    static let life: Int64 = 300
    /// A chain takes some 10 KB, mostly shared with the TLS sessions of its server.
    static let limit = 128

    struct Key: Hashable, Sendable {
        let name: TLSPeerName
        /// SHA-256 of each certificate, in the order in which the server presented them.
        fileprivate let shown: [UInt8]

        init?(_ name: TLSPeerName, shown stack: OpaquePointer?) {
            guard let stack, case let count = c_sk_X509_num(stack), count > 0 else { return nil }
            let size = Int(EVP_MAX_MD_SIZE)
            var digest = [UInt8](repeating: 0, count: size)
            var shown: [UInt8] = []
            shown.reserveCapacity(Int(count) * 32)
            for index in 0..<count {
                var length: UInt32 = 0
                guard let certificate = c_sk_X509_value(stack, index),
                    X509_digest(certificate, EVP_sha256(), &digest, &length) == 1, Int(length) <= size
                else { return nil }
                shown.append(contentsOf: digest[..<Int(length)])
            }
            self.name = name
            self.shown = shown
        }
    }

    private struct Entry: Sendable {
        let chain: [X509Certificate]
        /// Validity of the entry in seconds since 1970: `life`, or less if a certificate expires earlier. A clock set
        /// back before `from` ends it too.
        let from: Int64, until: Int64
    }
    private let entries = Lock<[Key: Entry]>([:])

    /// Gives `store` the chain that was verified for `key`. Returns false if the chain must be verified.
    func recall(_ key: Key, for store: OpaquePointer) -> Bool {
        guard let chain = chain(key) else { return false }
        let pointers: [OpaquePointer?] = chain.map(\.pointer)
        return c_X509_STORE_CTX_set_chain(store, pointers, Int32(pointers.count)) == 1
    }

    func chain(_ key: Key, now: Int64 = csys_wall_clock()) -> [X509Certificate]? {
        guard let entry = entries.withLock({ $0[key] }), entry.from <= now, now < entry.until else { return nil }
        return entry.chain
    }

    /// Caches the chain that `store` has just verified.
    func keep(_ key: Key, from store: OpaquePointer, now: Int64 = csys_wall_clock()) {
        guard let stack = X509_STORE_CTX_get0_chain(store) else { return }
        var until = now + Self.life
        var chain: [X509Certificate] = []
        for index in 0..<max(0, c_sk_X509_num(stack)) {
            guard let certificate = c_sk_X509_value(stack, index) else { return }
            X509_up_ref(certificate)
            chain.append(X509Certificate(adopting: certificate))
            until = min(until, CertificateFacts.seconds(X509_get0_notAfter(certificate)))
        }
        guard !chain.isEmpty, now < until else { return }
        entries.withLock { entries in
            if entries.count >= Self.limit, entries[key] == nil,
                let oldest = entries.min(by: { $0.value.from < $1.value.from })
            {
                entries[oldest.key] = nil
            }
            entries[key] = Entry(chain: chain, from: now, until: until)
        }
    }

    var keys: [Key] { entries.withLock { Array($0.keys) } }
}
