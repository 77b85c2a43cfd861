// SPDX-License-Identifier: Apache-2.0

/// Finds the boundaries of received frames and counts frames without effect. nghttp2 accepts input split anywhere, but
/// it replies to many frames, so a flood of useless ones is limited here (CVE-2019-9512 and similar). Every frame
/// counts; progress of a load resets the counter (`progressed`), so useless kinds of frames need not be known.
struct HTTP2FrameScanner {
    /// The bytes left of the current DATA frame.
    private var rest = 0
    private var isFirst = true
    /// Counters of the current header section.
    private var continuations = 0
    private var headBytes = 0
    private var isInHead = false
    private var idleFrames = 0
    /// The bytes that may still legitimately arrive on streams that the client has reset.
    private var late = 0
    private var second: Int64 = 0

    var isInsideFrame: Bool { rest > 0 || isInHead }
    /// Whether the next piece continues a DATA frame.
    var isInsideData: Bool { rest > 0 }

    /// RFC 9113 §4.2: the client allows no frames larger than the default limit.
    private static let largestFrame = 16384

    /// Resets the counter every ten seconds: a peer that sends an occasional PING for days is not flooding.
    mutating func turn(_ now: Int64) {
        guard now / 10 != second else { return }
        second = now / 10
        idleFrames = 0
    }

    mutating func progressed() { idleFrames = 0 }

    /// Records that the client has reset a stream: at most a window's worth of data is then in flight.
    mutating func ended(window: Int32, _ limits: HTTP2Limits) {
        late = min(late + Int(window) + Self.leastCost, max(Self.maximumLate, 2 * Int(limits.connectionWindow)))
    }

    /// The minimum cost of a late frame, so that many small frames cannot pass as late, and the least limit of the sum.
    /// With a larger window of the connection the limit is twice that window.
    private static let leastCost = 512
    private static let maximumLate = 64 << 20

    /// Returns how many bytes to pass to nghttp2 next: a whole frame, or a piece of DATA; 0 if more input is needed.
    /// - Parameter streams: the streams in use.
    mutating func next(
        _ input: UnsafeRawBufferPointer, at start: Int, _ limits: HTTP2Limits,
        _ streams: HTTP2StreamTable<HTTP2StreamState>
    ) throws(HTTP2Refusal) -> Int {
        if rest > 0 {
            let count = min(rest, input.count - start)
            rest -= count
            return count
        }
        if isFirst, input[start] == UInt8(ascii: "H") { throw HTTP2Refusal(.notHTTP2, "RFC 9113 3.4") }
        guard let header = HTTP2FrameHeader(input, at: start) else { return 0 }
        if isFirst {
            guard header.kind == .settings, !header.hasFirstFlag else { throw HTTP2Refusal(.notHTTP2, "RFC 9113 3.4") }
        }
        guard header.length <= Self.largestFrame else {
            throw HTTP2Refusal(.http2Violation, "RFC 9113 4.2", .frameSizeError)
        }
        let size = HTTP2FrameHeader.size + header.length
        let isData = header.kind == .data
        guard isData || input.count - start >= size else { return 0 }
        try check(header, limits)
        if header.stream == 0 || streams[header.stream] != nil || !isLate(header) { try count(limits) }
        isFirst = false
        guard isData else { return size }
        let count = min(size, input.count - start)
        rest = size - count
        return count
    }

    /// Returns whether a frame may have been sent before its sender knew that the client had reset the stream.
    private mutating func isLate(_ header: HTTP2FrameHeader) -> Bool {
        let cost = max(header.length, Self.leastCost)
        guard late >= cost else { return false }
        late -= cost
        return true
    }

    private mutating func count(_ limits: HTTP2Limits) throws(HTTP2Refusal) {
        idleFrames += 1
        guard idleFrames <= limits.idleFrameCount else {
            throw HTTP2Refusal(.http2Flood, "RFC 9113 10.5", .enhanceYourCalm)
        }
    }

    private mutating func check(_ header: HTTP2FrameHeader, _ limits: HTTP2Limits) throws(HTTP2Refusal) {
        switch header.kind {
        case .headers:
            (continuations, headBytes) = (0, header.length)
            isInHead = !header.endsHeaders
        case .continuation:
            continuations += 1
            headBytes += header.length
            if header.endsHeaders { isInHead = false }
            guard continuations <= limits.continuationCount, headBytes <= max(limits.headSize, Self.largestFrame) else {
                throw HTTP2Refusal(.http2Flood, "RFC 9113 10.5.1", .enhanceYourCalm)
            }
        // The client has disabled push (RFC 9113 §8.4).
        case .pushPromise: throw HTTP2Refusal(.http2Violation, "RFC 9113 8.4")
        default: break
        }
    }
}

/// The reason why a connection ends, and the error code sent to the peer.
struct HTTP2Refusal: Error {
    let violation: WireViolation
    let code: HTTP2ErrorCode

    init(_ violation: WireViolation.Code, _ section: String, _ code: HTTP2ErrorCode = .protocolError) {
        self.violation = .remote(violation, section)
        self.code = code
    }
}

/// Describes the frames of one direction as lines, however the bytes are split.
struct HTTP2FrameLines: Sendable {
    private static let preface = 24
    private var skip = 0
    private var partial: [UInt8] = []
    private var hasBegun = false

    mutating func lines(_ bytes: UnsafeRawBufferPointer, skipsPreface: Bool) -> [String] {
        if !hasBegun, skipsPreface { skip = Self.preface }
        hasBegun = true
        var lines: [String] = []
        var index = 0
        while index < bytes.count {
            let jump = min(skip, bytes.count - index)
            skip -= jump
            index += jump
            guard skip == 0, index < bytes.count else { break }
            partial.append(bytes[index])
            index += 1
            guard partial.count == HTTP2FrameHeader.size,
                let header = partial.withUnsafeBytes({ HTTP2FrameHeader($0, at: 0) })
            else { continue }
            partial.removeAll(keepingCapacity: true)
            skip = header.length
            lines.append(header.description)
        }
        return lines
    }
}
