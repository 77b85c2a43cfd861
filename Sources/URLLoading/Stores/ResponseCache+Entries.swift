// Everything a cache has on disk, one after the other: for people who want to look inside.

package import FoundationEssentials
import URLLoadingIO
package import URLLoadingWire

extension ResponseCache {
    package struct Entry: Sendable {
        let stored: StoredResponse
        /// The name of the file its body is in; `nil`: in the database.
        package let file: String?

        package var url: String { stored.url }
        package var status: Status { stored.status }
        package var version: HTTPVersion { stored.version }
        package var headers: Headers { stored.headers }
        /// What it was answered to, in the fields that Vary names.
        package var varying: [String: String?] { stored.varying }
        /// Bytes of its body that are there, and whether those are all.
        package var length: Int64 { stored.storedLength }
        package var isWhole: Bool { stored.isWhole }
        /// Seconds since 1970.
        package var received: Double { stored.responseTime }
        /// The URL without the values of secret parameters.
        package var shownURL: String { Secrets.hidden(inURL: url) }
    }

    /// What a request would be answered with now, and why, in one line; `nil` if it is none of http. A field that the
    /// request does not set fits whatever was stored. Blocks.
    package func plan(for request: Request) -> String? {
        guard let key = CacheKey(request) else { return nil }
        return "\(CachePlan.make(CacheQuery(request), storage.variants(key), now: Date().timeIntervalSince1970))"
    }

    /// Calls `each` with what is on disk, in the order it was stored in, until it says false. Blocks.
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

    /// The body of one, as much as there is; `nil` if it is gone or damaged. Blocks.
    package func data(of entry: Entry) -> Data? { storage.body(entry.stored)?.data }

    package func remove(_ entry: Entry) { storage.remove(entry.stored) }
}
