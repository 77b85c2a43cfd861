// What a cache keeps of one response, apart from its body. A value without behaviour: `CachePlan` judges it,
// `CacheStorage` keeps it.

import URLLoadingWire

struct StoredResponse: Sendable {
    /// Names it in its storage, for as long as that storage exists; 0 before it is there.
    var id: Int64 = 0
    let key: CacheKey
    /// As the caller will see it, without user and fragment.
    var url: String
    var status: Status
    var version: HTTPVersion
    /// Of the response: those for one hop are gone (RFC 9111 §3.1).
    var headers: Headers
    /// What the request had in the fields that Vary names, in lower case, in normal form; `nil` where it had none.
    var varying: [String: String?] = [:]
    /// Seconds since 1970 by this machine's clock: when the request was sent, and its response received (§4.2.3).
    var requestTime: Double
    var responseTime: Double
    /// What there is of the body.
    var extent = Extent.whole(0)
    /// The content coding was undone: what is stored is what the caller gets.
    var isDecoded = false
    /// Never in a file.
    var isMemoryOnly = false
    /// Kept in memory in front of a disk that has it too.
    var isCopy = false
    /// The caller's, returned as it was.
    var userInfo: [UInt8]?
    /// What head and times come to, so that a hit in memory parses nothing; `nil` to be worked out again. Not for files.
    var rules: CacheRules?

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
}
