/// Where frames begin and end in what is received, and how many were of no use. nghttp2 would take any cut; but it
/// answers what it is sent, and what it is sent for nothing is counted here (security 50, 51). Every frame counts; what
/// brings a load further sets the count back (`progressed`), so no kind of frame has to be known to be of no use.
struct HTTP2FrameScanner {
    /// Bytes of the DATA frame going on.
    private var rest = 0
    private var isFirst = true
    /// Of the head going on.
    private var continuations = 0
    private var headBytes = 0
    private var isInHead = false
    private var idleFrames = 0
    /// What may still come, in good faith, on streams that we have ended.
    private var late = 0
    private var second: Int64 = 0

    var isInsideFrame: Bool { rest > 0 || isInHead }
    /// The next piece continues a DATA frame.
    var isInsideData: Bool { rest > 0 }

    /// RFC 9113 4.2: we allow no larger frames than everybody must.
    private static let largestFrame = 16384

    /// A peer that pings now and then for days floods nobody.
    mutating func turn(_ now: Int64) {
        guard now / 10 != second else { return }
        second = now / 10
        idleFrames = 0
    }

    mutating func progressed() { idleFrames = 0 }

    /// We end a stream: what is on its way then is a window's worth of frames at most.
    mutating func ended(window: Int32) { late = min(late + Int(window) + Self.leastCost, Self.mostLate) }

    /// Late frames cost their size, or as much as it takes that many small ones cannot be called late.
    private static let leastCost = 512
    private static let mostLate = 64 << 20

    /// How many bytes nghttp2 may have next: a whole frame, or a piece of DATA; 0 if there must be more first.
    /// - Parameter streams: those that somebody asks for.
    mutating func next(
        _ input: UnsafeRawBufferPointer, at start: Int, _ limits: HTTP2Limits, _ streams: [Int32: HTTP2StreamState]
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

    /// A frame that was sent before its sender knew that we had ended the stream.
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
        // We said that we want none (RFC 9113 8.4).
        case .pushPromise: throw HTTP2Refusal(.http2Violation, "RFC 9113 8.4")
        default: break
        }
    }
}

/// Why a connection ends, and what its peer is told.
struct HTTP2Refusal: Error {
    let violation: WireViolation
    let code: HTTP2ErrorCode

    init(_ violation: WireViolation.Code, _ section: String, _ code: HTTP2ErrorCode = .protocolError) {
        self.violation = .remote(violation, section)
        self.code = code
    }
}

/// The frames of one direction as lines, wherever they are cut.
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
