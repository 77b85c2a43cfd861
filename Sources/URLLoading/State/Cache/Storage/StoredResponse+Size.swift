// SPDX-License-Identifier: Apache-2.0

// The size and the identifier of a stored response.

import Synchronization
import URLLoadingIO

/// Unpredictable identifiers, drawn many at a time, because each draw is a system call.
private enum StoredIDs {
    private static let drawn = Lock([Int64]())
    private static let most = 512

    static func next() -> Int64 {
        drawn.withLock { drawn in
            if let id = drawn.popLast() { return id }
            drawn.append(contentsOf: RandomWords.draw(most).map { max(1, Int64($0 >> 1)) })
            return drawn.popLast() ?? Int64.random(in: 1...Int64.max)
        }
    }
}

extension StoredResponse {
    /// Returns an unpredictable identifier; never 0, and the same in all tiers of a storage.
    static func newID() -> Int64 { StoredIDs.next() }

    /// The approximate size of the head in bytes; the constant covers allocator and tables.
    var headSize: Int {
        var size = 256 + key.text.utf8.count + url.utf8.count + (userInfo?.count ?? 0)
        headers.forEachRaw { size += $0.count + $1.count + 20 }
        for (name, value) in varying { size += name.utf8.count + (value?.utf8.count ?? 0) + 64 }
        return size
    }

    /// Whether this response replaces another: same key, same varying fields (RFC 9111 §4.1).
    func replaces(_ other: StoredResponse) -> Bool {
        key == other.key && varying == other.varying
    }

    var isWhole: Bool {
        if case .whole = extent { true } else { false }
    }
}
