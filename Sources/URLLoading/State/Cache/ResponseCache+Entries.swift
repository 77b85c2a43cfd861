// SPDX-License-Identifier: Apache-2.0

// Lists the entries on disk, for tools that inspect a cache.

package import FoundationEssentials
import URLLoadingIO
package import URLLoadingWire

extension ResponseCache {
    package struct Entry: Sendable {
        let stored: StoredResponse
        /// The name of the file that contains the body; `nil` for an empty body.
        package let file: String?
        /// Whether that file contains other bodies, too.
        package var isInPack: Bool { file.map { DiskPack.isPack($0) } ?? false }

        package var url: String { stored.url }
        package var status: Status { stored.status }
        package var version: HTTPVersion { stored.version }
        package var headers: Headers { stored.headers }
        /// The length of the stored body in bytes, and whether it is complete.
        package var length: Int64 { stored.storedLength }
        package var isWhole: Bool { stored.isWhole }
        /// Seconds since 1970.
        package var received: Double { stored.responseTime }
        /// The age of the response and its freshness lifetime, in seconds (RFC 9111 §4.2): it is fresh while the age is
        /// less. The age is infinite if the clock was set back.
        package func freshness(_ now: Double) -> (age: Double, lifetime: Double) {
            (stored.knownRules.age(now), stored.knownRules.lifetime)
        }
        /// The URL with the values of secret parameters hidden.
        package var shownURL: String { Secrets.hidden(inURL: url) }
    }

    /// Returns how the cache would answer a request now, and why, in one line; `nil` for a scheme other than http and
    /// https. A field that the request does not set matches any stored value. Blocks.
    package func plan(for request: Request) -> String? {
        guard let key = CacheKey(request) else { return nil }
        return "\(CachePlan.make(CacheQuery(request), storage.variants(key), now: Date().timeIntervalSince1970))"
    }

    /// Calls `each` with the entries on disk, in the order in which they were stored, until it returns false. Blocks.
    package func forEachEntry(_ each: (Entry) -> Bool) {
        guard let disk else { return }
        disk.flush()
        var last: Int64 = 0
        while true {
            let page = disk.reading { tables throws(DatabaseFailure) in try tables.page(after: last, atMost: 256) }
            guard let page, !page.rows.isEmpty else { return }
            for row in page.rows {
                guard let head = row.head else { continue }
                if !each(Entry(stored: head.response, file: head.file)) { return }
            }
            last = page.last
        }
    }

    /// Returns the stored body of an entry, complete or not; `nil` if it is gone or damaged. Blocks.
    package func data(of entry: Entry) -> Data? { storage.body(entry.stored)?.data }

    package func remove(_ entry: Entry) { storage.remove(entry.stored) }
}
