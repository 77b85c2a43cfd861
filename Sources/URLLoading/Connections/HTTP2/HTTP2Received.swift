// SPDX-License-Identifier: Apache-2.0

// What an exchange has taken from its stream, as a value: how far the response has come, and how it has ended. It knows
// neither the connection nor the task.
//
//     head   none ──▶ interim ──▶ final         none ──▶ final
//     end    none ──▶ complete                  none ──▶ failed

import URLLoadingWire

struct HTTP2Received: Sendable {
    private(set) var head = Head.none
    private(set) var end = End.none
    /// The pieces of the body that were not consumed.
    private(set) var chunks = ChunkQueue()
    /// The bytes consumed since the last frames were taken: the stream's window grows by them.
    private var used = 0
    /// The number of violations of the response that were reported.
    private var reported = 0

    enum Head: Sendable {
        case none
        /// Only interim responses were received.
        case interim
        case final(HTTP1ResponseHead)
    }

    enum End: Sendable {
        case none
        case complete(trailers: Headers)
        /// What was received before the failure can still be consumed.
        case failed(HTTP2Failure)
    }

    var finalHead: HTTP1ResponseHead? {
        if case .final(let head) = head { head } else { nil }
    }

    /// Whether the head of any response was received, so that the request has reached the server.
    var hasBegun: Bool {
        if case .none = head { false } else { true }
    }

    /// The fields after the body; nil before its end.
    var trailers: Headers? {
        if case .complete(let trailers) = end { trailers } else { nil }
    }

    var failure: HTTP2Failure? {
        if case .failed(let failure) = end { failure } else { nil }
    }

    /// Whether a reader must wait for frames: no piece is left, and the body has not ended. A failure is thrown by the
    /// wait.
    var needsMore: Bool { chunks.isEmpty && trailers == nil }

    /// Whether the body is known to be empty.
    var isEmpty: Bool { chunks.isEmpty && trailers != nil }

    /// Adds frames. Returns whether any of them belongs to the response.
    mutating func add(_ inbox: HTTP2Inbox) -> Bool {
        if !inbox.informational.isEmpty, !hasBegun { head = .interim }
        if let final = inbox.head { head = .final(final) }
        if !inbox.chunks.isEmpty { chunks.append(contentsOf: inbox.chunks) }
        if let trailers = inbox.trailers { end = .complete(trailers: trailers) }
        if let failure = inbox.failure { fail(failure) }
        return inbox.head != nil || !inbox.chunks.isEmpty || inbox.trailers != nil || !inbox.informational.isEmpty
    }

    /// Ends the response, unless it has ended.
    mutating func fail(_ failure: HTTP2Failure) {
        if case .none = end { end = .failed(failure) }
    }

    /// The next piece of the body; nil if more must be received.
    mutating func next(_ phase: LoadError.Phase) throws(LoadError) -> BodyPiece? {
        if let chunk = chunks.popFirst() {
            used += chunk.count
            return .chunk(chunk)
        }
        switch end {
        case .none: return nil
        case .complete: return .end
        case .failed(let failure): throw failure.loadError(phase, hasBegun: hasBegun)
        }
    }

    mutating func takeUsed() -> Int {
        defer { used = 0 }
        return used
    }

    /// The violations of a head that were not returned before: those of an interim head count for the later heads too.
    mutating func unreported(in head: HTTP1ResponseHead) -> ArraySlice<WireViolation> {
        defer { reported = head.violations.all.count }
        return head.violations.all.dropFirst(reported)
    }
}
