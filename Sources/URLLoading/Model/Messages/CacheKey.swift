// SPDX-License-Identifier: Apache-2.0

import URLLoadingWire

/// The key under which responses are stored (RFC 9111 §2): the URL in normal form, without user and fragment.
/// `StoredResponse.varying` distinguishes the variants of a key, among other things by a Host field of the caller's.
/// The key contains the URL's authority only, so that a server cannot store responses for a host that was merely named
/// in a Host field.
struct CacheKey: Hashable, Sendable {
    /// One object with the hashes, because each load looks its key up in several tables.
    final class Storage: Sendable {
        let text: String
        let hash: Int
        let hash64: Int64

        init(text: String) {
            self.text = text
            hash = text.hashValue
            hash64 = StableHash.of(text)
        }
    }
    let storage: Storage

    var text: String { storage.text }
    /// A hash that differs between processes.
    var hash: Int { storage.hash }
    /// A hash that is equal in every process.
    var hash64: Int64 { storage.hash64 }

    init(_ storage: Storage) { self.storage = storage }
    init(text: String) { storage = Storage(text: text) }

    init(_ target: Target) { self.init(target.origin.scheme, target.hostField, target.originForm) }

    init(_ scheme: String, _ authority: [UInt8], _ path: [UInt8]) {
        self.init(
            text: String(unsafeUninitializedCapacity: scheme.utf8.count + 3 + authority.count + path.count) { room in
                var count = 0
                for byte in scheme.utf8 { (room[count], count) = (byte, count + 1) }
                for byte in "://".utf8 { (room[count], count) = (byte, count + 1) }
                func add(_ bytes: [UInt8]) {
                    _ = UnsafeMutableBufferPointer(rebasing: room[count...]).initialize(fromContentsOf: bytes)
                    count += bytes.count
                }
                add(authority)
                add(path)
                return count
            })
    }

    /// Fails for requests that are not http or https, which are never stored.
    init?(_ request: Request) {
        guard case .success(let destination) = request.destination else { return nil }
        self = destination.cacheKey
    }

    static func == (first: CacheKey, second: CacheKey) -> Bool {
        first.storage === second.storage || first.hash == second.hash && first.text == second.text
    }

    func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

/// A hash that is equal in every process, for lookups on disk. Collisions are possible, so every lookup also compares
/// the key.
struct StableHash: Sendable {
    private var value: UInt64 = 0x9E37_79B9_7F4A_7C15

    static func of(_ text: String) -> Int64 {
        var hash = StableHash()
        hash.add(text)
        return hash.result
    }

    mutating func add(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            var offset = 0
            while bytes.count - offset >= 8 {
                mix(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
                offset += 8
            }
            var rest: UInt64 = 0
            while offset < bytes.count {
                rest = rest << 8 | UInt64(bytes[offset])
                offset += 1
            }
            mix(rest)
            mix(UInt64(bytes.count))
        }
    }

    private mutating func mix(_ word: UInt64) {
        let product = (value ^ word).multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
        value = product.high ^ product.low &+ 0x9E37_79B9_7F4A_7C15
    }

    var result: Int64 { Int64(bitPattern: value ^ value >> 32) }
}
