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
        head = Head(
            Values(
                key: key, url: url, status: status, version: version, headers: headers, varying: varying,
                requestTime: requestTime, responseTime: responseTime))
    }

    var key: CacheKey { head.values.key }
    /// The hash of the key, in this process.
    var keyHash: Int { head.values.key.hash }
    /// The URL that callers see, without user and fragment.
    var url: String {
        get { head.values.url }
        set { changed.values.url = newValue }
    }
    var status: Status {
        get { head.values.status }
        set { changed.values.status = newValue }
    }
    var version: HTTPVersion {
        get { head.values.version }
        set { changed.values.version = newValue }
    }
    /// The response's fields, without those of one hop (RFC 9111 §3.1).
    var headers: Headers {
        get { head.values.headers }
        _modify { yield &changed.values.headers }
    }
    /// The request's values of the fields that Vary names, by lower-case name, in normal form; `nil` for an absent
    /// field. The owner's marks (`CacheOwner`) stand among them.
    var varying: [String: String?] {
        get { head.values.varying }
        set { changed.values.varying = newValue }
    }
    /// Seconds since 1970 by the local clock: when the request was sent, and when the response arrived (§4.2.3).
    var requestTime: Double {
        get { head.values.requestTime }
        set { changed.values.requestTime = newValue }
    }
    var responseTime: Double {
        get { head.values.responseTime }
        set { changed.values.responseTime = newValue }
    }
    /// The stored body is decoded from its content coding.
    var isDecoded: Bool {
        get { head.values.isDecoded }
        set { changed.values.isDecoded = newValue }
    }
    /// The addresses of the servers that it came from.
    var source: AnswerSource {
        get { head.values.source }
        set { changed.values.source = newValue }
    }
    /// The caller's data, returned unchanged.
    var userInfo: [UInt8]? {
        get { head.values.userInfo }
        set { changed.values.userInfo = newValue }
    }
    /// The freshness rules, computed once so that a hit in memory parses no fields; `nil` to compute them again. Not
    /// stored in files.
    var rules: CacheRules? {
        get { head.values.rules }
        set { changed.values.rules = newValue }
    }

    /// The head for a change; copied first if it is shared.
    private var changed: Head {
        mutating get {
            if !isKnownUniquelyReferenced(&head) { head = Head(head.values) }
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
        // Unchecked: changed only while uniquely referenced. The value that owns the head is checked for exclusive
        // access.
        @exclusivity(unchecked)
        var values: Values
        init(_ values: Values) { self.values = values }
    }

    private struct Values: Sendable {
        let key: CacheKey
        var url: String
        var status: Status
        var version: HTTPVersion
        var headers: Headers
        var varying: [String: String?]
        var requestTime: Double
        var responseTime: Double
        var isDecoded = false
        var source = AnswerSource.unknown
        var userInfo: [UInt8]?
        var rules: CacheRules?
    }
}
