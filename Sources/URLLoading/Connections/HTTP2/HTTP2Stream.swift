// What lies between the task that reads a connection and the one whose stream it is. Touched under the connection's
// lock, but for the slot.

import URLLoadingIO
import URLLoadingWire

final class HTTP2Stream: @unchecked Sendable {
    /// Where its task waits while another reads the connection.
    let slot: PollSlot
    /// RFC 9218 4.1.
    var urgency: Int
    var number: Int32 = 0
    var inbox = HTTP2Inbox()
    /// Something has happened that its task has not seen.
    var hasNews = false
    /// Its task waits on `slot`.
    var isWaiting = false
    /// In the line of those who may read next.
    var place: Int?
    /// It was woken by news, and its task has not run yet.
    var wasWoken = false
    /// It waits for its body, and takes whatever comes of it.
    var readsBody = false
    /// The answer has come to its end.
    var isComplete = false
    var hasSentAll: Bool
    /// It carries another protocol, for whoever waits on `slot` to read or to write; see `HTTP2Tunnel`.
    var isTunnel = false
    /// The codec knows it no more.
    var isOver = false
    /// What the peer may have on its way, and what was taken of it in all.
    var window: Int32
    var taken: Int64 = 0

    static let widestWindow: Int32 = 4 << 20

    init(slot: PollSlot, urgency: Int, window: Int32, hasBody: Bool) {
        self.slot = slot
        self.urgency = urgency
        self.window = window
        hasSentAll = !hasBody
    }
}

/// What has arrived for a stream and was not taken. Bounded by its window, its limits on heads and their number.
struct HTTP2Inbox {
    var informational: [HTTP1ResponseHead] = []
    var head: HTTP1ResponseHead?
    var chunks: [Chunk] = []
    var trailers: Headers?
    var failure: HTTP2Failure?
    /// Bytes of the request's body that have gone out.
    var sent = 0
    var hasSentAll = false
    /// Of the response, without frames.
    var dataCount = 0
}

/// Why a stream comes to no good end.
enum HTTP2Failure: Sendable {
    case io(IOFailure)
    case wire(WireViolation)
    /// The peer closed the connection.
    case closed
    /// Nothing was heard from it, though it was asked.
    case unanswered
    /// The peer ended the stream.
    case reset(HTTP2ErrorCode)
    /// The peer has not looked at the request, and will not.
    case unprocessed
    /// The peer closes the connection because we ask too much of it.
    case calm

    func loadError(_ phase: LoadError.Phase, hasBegun: Bool) -> LoadError {
        switch self {
        case .io(let failure): LoadError(failure, phase)
        case .wire(let violation): LoadError(violation, phase)
        case .closed where hasBegun:
            LoadError(.truncated, phase: phase, party: .remote, detail: "the connection was closed")
        case .closed: LoadError(.connectionLost, phase: phase, party: .remote, detail: "closed without an answer")
        case .unanswered where hasBegun:
            LoadError(.truncated, phase: phase, party: .remote, detail: "no answer to a PING: the path is dead")
        case .unanswered:
            LoadError(.connectionLost, phase: phase, party: .remote, detail: "no answer to a PING: the path is dead")
        case .reset(let code): LoadError(.streamReset, phase: phase, party: .remote, detail: "\(code)")
        case .calm:
            LoadError(
                .connectionLost, phase: phase, party: .remote,
                detail: "ENHANCE_YOUR_CALM: the server wants fewer requests")
        case .unprocessed:
            LoadError(.connectionLost, phase: phase, party: .remote, detail: "the request was not processed")
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
        default: false
        }
    }
}
