// SPDX-License-Identifier: Apache-2.0

// Connects the task that reads a connection with the task of a stream. Guarded by the connection's lock, except for the
// slot.

import URLLoadingIO
import URLLoadingWire

final class HTTP2Stream: @unchecked Sendable {
    // Unchecked: guarded by the connection's lock.
    /// The slot in which the stream's task waits while another reads the connection.
    let slot: PollSlot
    /// The urgency of RFC 9218 §4.1.
    var urgency: Int
    var number: Int32 = 0
    var inbox = HTTP2Inbox()
    /// An event has not been seen by the stream's task yet.
    var hasUnseenEvents = false
    /// The stream's task waits on `slot`.
    var isWaiting = false
    /// The position in the queue of streams that may read next.
    var place: Int?
    /// The stream's task was woken by an event and has not run yet.
    var wasWoken = false
    /// The stream's task waits for the body, and takes every piece.
    var readsBody = false
    /// The response is complete.
    var isComplete = false
    var hasSentAll: Bool
    /// The stream carries another protocol; its tasks wait on `slot` to read and to write. See `HTTP2Tunnel`.
    var isTunnel = false
    /// The codec does not know the stream any more.
    var isOver = false
    var window: HTTP2Windows.Window

    init(slot: PollSlot, urgency: Int, window: HTTP2Windows.Window, hasBody: Bool) {
        self.slot = slot
        self.urgency = urgency
        self.window = window
        hasSentAll = !hasBody
    }
}

/// The received frames of a stream that its task has not taken yet. Bounded by the stream's window and by the limits on
/// heads.
struct HTTP2Inbox {
    var informational: [HTTP1ResponseHead] = []
    var head: HTTP1ResponseHead?
    var chunks = ChunkQueue()
    /// The read buffer that pieces refer to; it exists as long as they do.
    var lent: ObjectIdentifier?
    var trailers: Headers?
    var failure: HTTP2Failure?
    /// The bytes of the request's body that were sent.
    var sent = 0
    var hasSentAll = false
    /// The length of the response's body pieces, without framing.
    var dataCount = 0
}

/// Pieces of a body, in order. The first is held in place: most responses that share a connection have a single one.
struct ChunkQueue: Sendable {
    private var first: Chunk?
    private var rest: [Chunk] = []
    /// The number of pieces of `rest` that were taken.
    private var taken = 0

    var isEmpty: Bool { first == nil }
    /// All pieces, the first one first.
    var chunks: [Chunk] { first.map { [$0] + rest[taken...] } ?? [] }

    mutating func append(_ chunk: Chunk) {
        guard first != nil else { return first = chunk }
        // Growing piece by piece allocates five times for the pieces of a read.
        if rest.isEmpty { rest.reserveCapacity(16) }
        rest.append(chunk)
    }

    mutating func append(contentsOf other: ChunkQueue) {
        if isEmpty { self = other } else { rest += other.chunks }
    }

    mutating func popFirst() -> Chunk? {
        guard let chunk = first else { return nil }
        first = taken < rest.count ? rest[taken] : nil
        taken += 1
        if taken >= rest.count { (rest, taken) = ([], 0) }
        return chunk
    }
}

/// The reason why a stream fails.
enum HTTP2Failure: Sendable {
    case io(IOFailure)
    case wire(WireViolation)
    /// The peer closed the connection.
    case closed
    /// The peer did not answer a PING in time.
    case unanswered
    /// The peer reset the stream.
    case reset(HTTP2ErrorCode)
    /// The peer has not processed the request, and will not.
    case unprocessed
    /// The peer closes the connection because of too many requests.
    case enhanceYourCalm
    #if HTTP3
    /// A failure of an HTTP/3 connection, whose streams are received as those of HTTP/2.
    case http3(HTTP3Failure)
    #endif

    func loadError(_ phase: LoadError.Phase, hasBegun: Bool) -> LoadError {
        switch self {
        case .io(let failure): LoadError(failure, phase)
        case .wire(let violation): LoadError(violation, phase)
        case .closed where hasBegun:
            LoadError(.truncated, phase: phase, party: .remote, detail: "the connection was closed")
        case .closed: .closedWithoutAnswer(phase)
        case .unanswered where hasBegun:
            LoadError(.truncated, phase: phase, party: .remote, detail: "no answer to a PING")
        case .unanswered:
            LoadError(.connectionLost, phase: phase, party: .remote, detail: "no answer to a PING")
        case .reset(let code): LoadError(.streamReset, phase: phase, party: .remote, detail: "\(code)")
        case .enhanceYourCalm:
            LoadError(
                .connectionLost, phase: phase, party: .remote,
                detail: "ENHANCE_YOUR_CALM: the server wants fewer requests")
        case .unprocessed:
            LoadError(.connectionLost, phase: phase, party: .remote, detail: "the request was not processed")
        #if HTTP3
        case .http3(let failure): failure.loadError(phase, hasBegun: hasBegun)
        #endif
        }
    }

    var isUnprocessed: Bool {
        switch self {
        case .unprocessed: true
        case .wire(let violation): violation.code == .http2NoStream
        default: false
        }
    }

    var isLostConnection: Bool {
        switch self {
        case .io, .closed, .unanswered: true
        #if HTTP3
        case .http3(let failure): failure.isLostConnection
        #endif
        default: false
        }
    }
}

#if HTTP3

/// The reason why a stream fails, where it is one of HTTP/3 or QUIC.
enum HTTP3Failure: Sendable {
    /// The peer reset the stream.
    case reset(HTTP3ErrorCode)
    /// The connection is over.
    case ended(QUICEnd)

    /// - Parameter hasBegun: whether a part of the response was received.
    func loadError(_ phase: LoadError.Phase, hasBegun: Bool) -> LoadError {
        switch self {
        case .reset(let code): LoadError(.streamReset, phase: phase, party: .remote, detail: "\(code)")
        case .ended(.violation(let violation)): LoadError(violation, phase)
        case .ended(.noCommonVersion):
            LoadError(.notHTTP3, phase: phase, party: .remote, detail: "no common version of QUIC")
        case .ended(.handshakeTimedOut),
            .ended(.idle) where phase == .connecting:
            LoadError(.connectTimeout, phase: phase, party: .remote, detail: "no answer over QUIC")
        case .ended(let end):
            LoadError(hasBegun ? .truncated : .connectionLost, phase: phase, party: .remote, detail: end.words)
        }
    }

    var isLostConnection: Bool { if case .ended = self { true } else { false } }
}

extension QUICEnd {
    /// What happened to the connection, in words.
    fileprivate var words: String {
        switch self {
        case .closedByPeer(.application(HTTP3ErrorCode.noError.rawValue)), .closedHere: "the connection was closed"
        case .closedByPeer(.application(let code)): "the server closed with \(HTTP3ErrorCode(rawValue: code))"
        case .closedByPeer(.transport(let code)): "the server closed with \(code)"
        case .forgottenByPeer: "the server has forgotten the connection"
        case .idle, .handshakeTimedOut: "the server was silent"
        case .handshakeFailed, .noCommonVersion, .violation, .dropped: "the connection is over"
        }
    }
}

#endif
