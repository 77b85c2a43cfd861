// What a cache keeps of one response, apart from its body. A value without behaviour: `CachePlan` judges it,
// `CacheStorage` keeps it.

import URLLoadingWire

struct StoredResponse: Sendable {
    /// Names it in its storage, for as long as that storage exists; 0 before it is there.
    var id: Int64 = 0
    /// What there is of the body.
    var extent = Extent.whole(0)
    /// Never in a file.
    var isMemoryOnly = false
    /// Kept in memory in front of a disk that has it too.
    var isCopy = false
    /// All that stays the same while it goes from hand to hand: one reference to count, not ten.
    private var head: Head

    init(
        id: Int64 = 0, key: CacheKey, url: String, status: Status, version: HTTPVersion, headers: Headers,
        varying: [String: String?] = [:], requestTime: Double, responseTime: Double
    ) {
        self.id = id
        head = Head(key, url, status, version, headers, varying, requestTime, responseTime)
    }

    var key: CacheKey { head.key }
    /// Of the key, in this process.
    var keyHash: Int { head.keyHash }
    /// As the caller will see it, without user and fragment.
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
    /// Of the response: those for one hop are gone (RFC 9111 §3.1).
    var headers: Headers {
        get { head.headers }
        _modify { yield &changed.headers }
    }
    /// What the request had in the fields that Vary names, in lower case, in normal form; `nil` where it had none.
    var varying: [String: String?] {
        get { head.varying }
        set { changed.varying = newValue }
    }
    /// Seconds since 1970 by this machine's clock: when the request was sent, and its response received (§4.2.3).
    var requestTime: Double {
        get { head.requestTime }
        set { changed.requestTime = newValue }
    }
    var responseTime: Double {
        get { head.responseTime }
        set { changed.responseTime = newValue }
    }
    /// The content coding was undone: what is stored is what the caller gets.
    var isDecoded: Bool {
        get { head.isDecoded }
        set { changed.isDecoded = newValue }
    }
    /// The addresses it came from.
    var source: AnswerSource {
        get { head.source }
        set { changed.source = newValue }
    }
    /// The caller's, returned as it was.
    var userInfo: [UInt8]? {
        get { head.userInfo }
        set { changed.userInfo = newValue }
    }
    /// What head and times come to, so that a hit in memory parses nothing; `nil` to be worked out again. Not for files.
    var rules: CacheRules? {
        get { head.rules }
        set { changed.rules = newValue }
    }

    /// For a change: a copy, if others have it too.
    private var changed: Head {
        mutating get {
            if !isKnownUniquelyReferenced(&head) { head = Head(copying: head) }
            return head
        }
    }

    enum Extent: Sendable, Hashable {
        /// All of it: so many bytes.
        case whole(Int64)
        /// From its first byte, so many of a length that may be known; a range can complete it (RFC 9111 §3.3).
        case beginning(Int64, of: Int64?)
    }

    /// Bytes of the body that are there.
    var storedLength: Int64 {
        switch extent {
        case .whole(let length), .beginning(let length, _): length
        }
    }

    private final class Head: @unchecked Sendable {
        // Unchecked: changed only by who alone has it.
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

        init(
            _ key: CacheKey, _ url: String, _ status: Status, _ version: HTTPVersion, _ headers: Headers,
            _ varying: [String: String?], _ requestTime: Double, _ responseTime: Double
        ) {
            (self.key, self.url, self.status, self.version, self.headers) = (key, url, status, version, headers)
            (self.varying, self.requestTime, self.responseTime) = (varying, requestTime, responseTime)
            keyHash = key.hashValue
        }

        init(copying other: Head) {
            (key, keyHash, url, status, version, headers) = (
                other.key, other.keyHash, other.url, other.status, other.version, other.headers
            )
            (varying, requestTime, responseTime) = (other.varying, other.requestTime, other.responseTime)
            (isDecoded, source, userInfo, rules) = (other.isDecoded, other.source, other.userInfo, other.rules)
        }
    }
}
