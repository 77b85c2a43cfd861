// SPDX-License-Identifier: Apache-2.0

// A stored response without its body. A value without behaviour: `CachePlan` judges it, `CacheStorage` stores it.

import URLLoadingWire

struct StoredResponse: Sendable {
    /// Identifies the response in its storage, for as long as that storage exists; 0 before it is stored.
    var id: Int64 = 0
    /// The stored part of the body.
    var extent = Extent.whole(0)
    /// The response must not be written to a file.
    var isMemoryOnly = false
    /// A copy in memory of a response on disk.
    var isCopy = false
    /// The shared constant part, so that passing the value on counts one reference instead of ten.
    private var head: Head

    init(
        id: Int64 = 0, key: CacheKey, url: String, status: Status, version: HTTPVersion, headers: Headers,
        varying: [String: String?] = [:], requestTime: Double, responseTime: Double
    ) {
        self.id = id
        head = Head(key, url, status, version, headers, varying, requestTime, responseTime)
    }

    var key: CacheKey { head.key }
    /// The hash of the key, in this process.
    var keyHash: Int { head.key.hash }
    /// The URL that callers see, without user and fragment.
    var url: String {
        get { head.url }
        set { changed.url = newValue }
    }
    var status: Status {
        get { head.status }
        set { changed.status = newValue }
    }
    var version: HTTPVersion {
        get { head.version }
        set { changed.version = newValue }
    }
    /// The response's fields, without those of one hop (RFC 9111 §3.1).
    var headers: Headers {
        get { head.headers }
        _modify { yield &changed.headers }
    }
    /// The request's values of the fields that Vary names, by lower-case name, in normal form; `nil` for an absent
    /// field. The owner's marks (`CacheOwner`) stand among them.
    var varying: [String: String?] {
        get { head.varying }
        set { changed.varying = newValue }
    }
    /// Seconds since 1970 by the local clock: when the request was sent, and when the response arrived (§4.2.3).
    var requestTime: Double {
        get { head.requestTime }
        set { changed.requestTime = newValue }
    }
    var responseTime: Double {
        get { head.responseTime }
        set { changed.responseTime = newValue }
    }
    /// The stored body is decoded from its content coding.
    var isDecoded: Bool {
        get { head.isDecoded }
        set { changed.isDecoded = newValue }
    }
    /// The addresses of the servers that it came from.
    var source: AnswerSource {
        get { head.source }
        set { changed.source = newValue }
    }
    /// The caller's data, returned unchanged.
    var userInfo: [UInt8]? {
        get { head.userInfo }
        set { changed.userInfo = newValue }
    }
    /// The freshness rules, computed once so that a hit in memory parses no fields; `nil` to compute them again. Not
    /// stored in files.
    var rules: CacheRules? {
        get { head.rules }
        set { changed.rules = newValue }
    }

    /// The head for a change; copied first if it is shared.
    private var changed: Head {
        mutating get {
            if !isKnownUniquelyReferenced(&head) { head = Head(copying: head) }
            return head
        }
    }

    enum Extent: Sendable, Hashable {
        /// The complete body, of this many bytes.
        case whole(Int64)
        /// The first bytes of a body whose total length may be known; a range request can complete it (RFC 9111 §3.3).
        case beginning(Int64, of: Int64?)
    }

    /// The number of body bytes stored.
    var storedLength: Int64 {
        switch extent {
        case .whole(let length), .beginning(let length, _): length
        }
    }

    private final class Head: @unchecked Sendable {
        // Unchecked: changed only while uniquely referenced.
        let key: CacheKey
        var url: String
        var status: Status
        var version: HTTPVersion
        // The value that owns the head is checked for exclusive access.
        @exclusivity(unchecked)
        var headers: Headers
        var varying: [String: String?]
        var requestTime: Double
        var responseTime: Double
        var isDecoded = false
        var source = AnswerSource.unknown
        var userInfo: [UInt8]?
        var rules: CacheRules?

        init(
            _ key: CacheKey, _ url: String, _ status: Status, _ version: HTTPVersion, _ headers: Headers,
            _ varying: [String: String?], _ requestTime: Double, _ responseTime: Double
        ) {
            (self.key, self.url, self.status, self.version, self.headers) = (key, url, status, version, headers)
            (self.varying, self.requestTime, self.responseTime) = (varying, requestTime, responseTime)
        }

        init(copying other: Head) {
            (key, url, status, version, headers) = (other.key, other.url, other.status, other.version, other.headers)
            (varying, requestTime, responseTime) = (other.varying, other.requestTime, other.responseTime)
            (isDecoded, source, userInfo, rules) = (other.isDecoded, other.source, other.userInfo, other.rules)
        }
    }
}
