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
            key, key.hashValue,
            Fields(
                url: url, status: status, version: version, headers: headers, varying: varying,
                requestTime: requestTime, responseTime: responseTime))
    }

    var key: CacheKey { head.key }
    /// The hash of the key, in this process.
    var keyHash: Int { head.keyHash }
    /// The URL that callers see, without user and fragment.
    var url: String {
        get { head.fields.url }
        set { changed.fields.url = newValue }
    }
    var status: Status {
        get { head.fields.status }
        set { changed.fields.status = newValue }
    }
    var version: HTTPVersion {
        get { head.fields.version }
        set { changed.fields.version = newValue }
    }
    /// The response's fields, without those of one hop (RFC 9111 §3.1).
    var headers: Headers {
        get { head.fields.headers }
        _modify { yield &changed.fields.headers }
    }
    /// The request's values of the fields that Vary names, by lower-case name, in normal form; `nil` for an absent
    /// field. The owner's marks (`CacheOwner`) stand among them.
    var varying: [String: String?] {
        get { head.fields.varying }
        set { changed.fields.varying = newValue }
    }
    /// Seconds since 1970 by the local clock: when the request was sent, and when the response arrived (§4.2.3).
    var requestTime: Double {
        get { head.fields.requestTime }
        set { changed.fields.requestTime = newValue }
    }
    var responseTime: Double {
        get { head.fields.responseTime }
        set { changed.fields.responseTime = newValue }
    }
    /// The stored body is decoded from its content coding.
    var isDecoded: Bool {
        get { head.fields.isDecoded }
        set { changed.fields.isDecoded = newValue }
    }
    /// The addresses of the servers that it came from.
    var source: AnswerSource {
        get { head.fields.source }
        set { changed.fields.source = newValue }
    }
    /// The caller's data, returned unchanged.
    var userInfo: [UInt8]? {
        get { head.fields.userInfo }
        set { changed.fields.userInfo = newValue }
    }
    /// The freshness rules, computed once so that a hit in memory parses no fields; `nil` to compute them again. Not
    /// stored in files.
    var rules: CacheRules? {
        get { head.fields.rules }
        set { changed.fields.rules = newValue }
    }

    /// The head for a change; copied first if it is shared.
    private var changed: Head {
        mutating get {
            if !isKnownUniquelyReferenced(&head) { head = Head(head.key, head.keyHash, head.fields) }
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

    private struct Fields: Sendable {
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

    private final class Head: @unchecked Sendable {
        // Unchecked: changed only while uniquely referenced.
        let key: CacheKey
        let keyHash: Int
        var fields: Fields

        init(_ key: CacheKey, _ keyHash: Int, _ fields: Fields) {
            (self.key, self.keyHash, self.fields) = (key, keyHash, fields)
        }
    }
}
