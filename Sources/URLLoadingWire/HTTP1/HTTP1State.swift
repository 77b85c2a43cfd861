/// Where the message that we receive is.
enum HTTP1Receiving: Sendable, Equatable {
    /// Client: no request is outstanding.
    case idle
    case head
    case fixed(remaining: Int64)
    case chunkHeader
    case chunkData(remaining: Int64)
    case chunkEnd
    case trailers
    case untilClose
    case ended
    /// After a 101 or a 2xx to CONNECT: not ours any more.
    case switched
    case failed
}

/// Where the message that we send is.
enum HTTP1Sending: Sendable, Equatable {
    case idle
    case fixed(remaining: Int64)
    /// Between two chunks.
    case chunked
    /// A chunk was announced: its data follow, then `sendDataEnd`.
    case insideChunk
    case untilClose
    case ended
    case switched
}

/// What the outstanding request means for the answer to it.
struct HTTP1Exchange: Sendable {
    var isHead = false
    var isConnect = false
    var asksUpgrade = false
    var peerVersion = HTTPVersion.http11
    var informationalCount = 0
    /// Empty lines before a request.
    var emptyLineCount = 0
    /// What is left for chunk extensions in this body.
    var extensionAllowance = 0
}
