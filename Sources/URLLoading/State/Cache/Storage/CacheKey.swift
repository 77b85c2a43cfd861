// SPDX-License-Identifier: Apache-2.0

import URLLoadingWire

/// The key under which responses are stored (RFC 9111 §2): the URL in normal form, without user and fragment.
/// ``StoredResponse/varying`` distinguishes the variants of a key, among other things by a Host field of the caller's.
/// The key contains the URL's authority only, so that a server cannot store responses for a host that was merely named
/// in a Host field.
struct CacheKey: Hashable, Sendable {
    let text: String

    init(text: String) { self.text = text }

    init(_ target: Target) { self.init(target.origin.scheme, target.hostField, target.originForm) }

    init(_ scheme: String, _ authority: [UInt8], _ path: [UInt8]) {
        text = String(unsafeUninitializedCapacity: scheme.utf8.count + 3 + authority.count + path.count) { room in
            var count = 0
            for byte in scheme.utf8 { (room[count], count) = (byte, count + 1) }
            for byte in "://".utf8 { (room[count], count) = (byte, count + 1) }
            for byte in authority { (room[count], count) = (byte, count + 1) }
            for byte in path { (room[count], count) = (byte, count + 1) }
            return count
        }
    }

    /// Fails for requests that are not http or https, which are never stored.
    init?(_ request: Request) {
        guard case .success(let destination) = request.destination else { return nil }
        self.init(destination.target)
    }
}
