// SPDX-License-Identifier: Apache-2.0

// One of the requests that a load sends, and its purpose.

import URLLoadingWire

/// One of the requests a load sends: the caller's, or one that a redirect led to.
struct Hop: Sendable {
    var request: Request
    var purpose = RequestPurpose.plain
    /// The number of redirects that led to it.
    var followed = 0
    /// The origins that redirects have left, the caller's first; nil for one that is not of http or https. Empty as
    /// long as the request goes to the caller's origin.
    var left: [Origin?] = []
    /// True once a redirect has left the caller's origin: fields and credentials meant for that origin are not sent.
    var isForeign: Bool { !left.isEmpty }
    /// The calls into handlers while it is attempted; nil unless a handler asks for one.
    var calls: AttemptCalls?

    /// The hop that a redirect leads to.
    func next(_ request: Request) -> Hop {
        var next = Hop(request: self.request, purpose: purpose, followed: followed + 1, left: left)
        next.lead(to: request)
        return next
    }

    /// Replaces the request, and notes the origin that it leaves.
    mutating func lead(to next: Request) {
        if !next.goes(where: request) { left.append(request.origin) }
        request = next
    }
}

/// The purpose of a request, where it changes how the request is sent.
enum RequestPurpose: Sendable {
    case plain
    /// Fetches anew what the cache served stale (RFC 5861 §3).
    case refresh
    /// Opens a WebSocket (RFC 6455 §4.1, RFC 8441 §5).
    case webSocket(WebSocketOffer)
    /// One of the requests of a resumable upload.
    case resumableUpload(any UploadSteps)
    /// Fetches a part of a file that is downloaded in several parts at once.
    case part

    var webSocketOffer: WebSocketOffer? { if case .webSocket(let offer) = self { offer } else { nil } }
    var opensWebSocket: Bool { webSocketOffer != nil }
    /// Whether the cache neither answers the request nor stores its response.
    var skipsCache: Bool {
        switch self {
        case .webSocket, .part: true
        case .plain, .refresh, .resumableUpload: false
        }
    }
    var isPart: Bool { if case .part = self { true } else { false } }
    var isRefresh: Bool { if case .refresh = self { true } else { false } }
}

/// The requests of a resumable upload, one after the other.
protocol UploadSteps: AnyObject, Sendable {
    /// Adds the fields of the step to a request with a body that is about to be sent.
    func complete(_ request: inout PreparedRequest) throws(LoadError)
    /// Returns the request that follows a response; nil if the response is the result.
    func next(after head: HTTPHead?, to sent: Request) throws(LoadError) -> Request?
}
