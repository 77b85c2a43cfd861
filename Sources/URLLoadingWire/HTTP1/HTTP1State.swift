// SPDX-License-Identifier: Apache-2.0

/// The state of the message being received.
enum HTTP1Receiving: Sendable, Equatable {
    /// No request is outstanding (client).
    case idle
    case head
    case fixed(remaining: Int64)
    case chunkHeader
    case chunkData(remaining: Int64)
    case chunkEnd
    case trailers
    case untilClose
    case ended
    /// After 101, or 2xx to CONNECT: the bytes belong to another protocol.
    case switched
    case failed
}

/// The state of the message being sent.
enum HTTP1Sending: Sendable, Equatable {
    case idle
    case fixed(remaining: Int64)
    /// Between two chunks.
    case chunked
    /// A chunk was announced: its data follows, then `sendDataEnd`.
    case insideChunk
    case untilClose
    case ended
    case switched
}

/// The properties of the outstanding request that determine how its response is parsed.
struct HTTP1Exchange: Sendable {
    var isHead = false
    var isConnect = false
    var asksUpgrade = false
    var peerVersion = HTTPVersion.http11
    var informationalCount = 0
    /// The rules that interim responses break, and that were tolerated: they count for the final one.
    var violations = WireViolations()
    /// The number of empty lines before a request.
    var emptyLineCount = 0
    /// The bytes that chunk extensions may still use in this body.
    var extensionAllowance = 0
    /// The bytes of a chunked body that were consumed, with the sizes of the chunks.
    var bodyOffset: Int64 = 0
}
