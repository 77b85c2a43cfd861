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
    private var head: CopyOnWrite<Head>

    init(
        id: Int64 = 0, key: CacheKey, url: String, status: Status, version: HTTPVersion, headers: Headers,
        varying: [String: String?] = [:], requestTime: Double, responseTime: Double
    ) {
        self.id = id
        head = CopyOnWrite(
            Head(
                key: key, keyHash: key.hashValue, url: url, status: status, version: version, headers: headers,
                varying: varying, requestTime: requestTime, responseTime: responseTime))
    }

    var key: CacheKey { head.value.key }
    /// The hash of the key, in this process.
    var keyHash: Int { head.value.keyHash }
    /// The URL that callers see, without user and fragment.
    var url: String {
        get { head.value.url }
        set { head.value.url = newValue }
    }
    var status: Status {
        get { head.value.status }
        set { head.value.status = newValue }
    }
    var version: HTTPVersion {
        get { head.value.version }
        set { head.value.version = newValue }
    }
    /// The response's fields, without those of one hop (RFC 9111 §3.1).
    var headers: Headers {
        get { head.value.headers }
        _modify { yield &head.value.headers }
    }
    /// The request's values of the fields that Vary names, by lower-case name, in normal form; `nil` for an absent
    /// field. The owner's marks (`CacheOwner`) stand among them.
    var varying: [String: String?] {
        get { head.value.varying }
        set { head.value.varying = newValue }
    }
    /// Seconds since 1970 by the local clock: when the request was sent, and when the response arrived (§4.2.3).
    var requestTime: Double {
        get { head.value.requestTime }
        set { head.value.requestTime = newValue }
    }
    var responseTime: Double {
        get { head.value.responseTime }
        set { head.value.responseTime = newValue }
    }
    /// The stored body is decoded from its content coding.
    var isDecoded: Bool {
        get { head.value.isDecoded }
        set { head.value.isDecoded = newValue }
    }
    /// The addresses of the servers that it came from.
    var source: AnswerSource {
        get { head.value.source }
        set { head.value.source = newValue }
    }
    /// The caller's data, returned unchanged.
    var userInfo: [UInt8]? {
        get { head.value.userInfo }
        set { head.value.userInfo = newValue }
    }
    /// The freshness rules, computed once so that a hit in memory parses no fields; `nil` to compute them again. Not
    /// stored in files.
    var rules: CacheRules? {
        get { head.value.rules }
        set { head.value.rules = newValue }
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

    private struct Head: Sendable {
        let key: CacheKey
        let keyHash: Int
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
