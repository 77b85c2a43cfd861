// SPDX-License-Identifier: Apache-2.0

// The state of an HTTP/1.1 connection as a value: its codec, the response of the current exchange, and whether another
// exchange may follow. It knows neither sockets nor tasks; `HTTP1Connection` acts on it.
//
//     response  awaited ──▶ begun ──▶ body ──▶ ended ──▶ awaited         begun ──▶ early ──▶ body
//     use       anonymous ──▶ authenticated ──▶ last                     anonymous ──▶ last

import URLLoadingWire

/// What is inlined is so because a call would copy the whole state, which an object holds.
struct HTTP1State: Sendable {
    var codec: HTTP1Codec
    private(set) var response = ResponsePhase.awaited
    private(set) var use = Use.anonymous
    /// The number of exchanges begun.
    private(set) var exchanges = 0
    /// Whether the peer sends no more. The codec may not have seen all bytes yet.
    private(set) var isInputOver = false
    /// The number of violations of the current response that were reported.
    private var reported = 0
    private var acknowledgement = Acknowledgement.prompt

    init(_ codec: HTTP1Codec) { self.codec = codec }

    enum ResponsePhase: Sendable {
        /// Nothing was received in the current exchange, or none has begun.
        case awaited
        /// Bytes were received, and no final head.
        case begun
        /// The final head was received while the request was being sent, and waits for its exchange.
        indirect case early(HTTP1ResponseHead)
        case body
        /// The response is complete.
        case ended(trailers: Headers)
    }

    enum Use: Sendable {
        case anonymous
        /// The route's login has authenticated the connection.
        case authenticated
        /// No exchange follows: the server would read the next request as the missing rest of one that was cut short,
        /// or it does not accept the login.
        case last
    }

    /// How the system acknowledges what is received: at once, until the client has answered something on the
    /// connection.
    private enum Acknowledgement { case prompt, delayed, requested }

    // MARK: Questions

    /// Whether nothing but the codec forbids another exchange.
    @inline(__always)
    var allowsNext: Bool { use != .last && !isInputOver }

    /// Whether anything was received in the current exchange.
    @inline(__always)
    var hasReceived: Bool {
        if case .awaited = response { false } else { true }
    }

    /// Whether the final head was received. A failed write then ends the request only: a peer that rejects the rest of
    /// a body may close the connection after its response.
    @inline(__always)
    var hasFinalHead: Bool {
        switch response {
        case .awaited, .begun: false
        case .early, .body, .ended: true
        }
    }

    /// Whether the next event needs bytes: the peer may send more, and the final head was not received.
    @inline(__always)
    var awaitsHead: Bool { !isInputOver && !hasFinalHead }

    /// The status of a final head that waits for its exchange.
    @inline(__always)
    var earlyStatus: Status? {
        if case .early(let head) = response { head.status } else { nil }
    }

    /// The phase of a failure to receive: `waiting` until the exchange has the head of its response.
    @inline(__always)
    var phase: LoadError.Phase {
        switch response {
        case .awaited, .begun, .early: .waiting
        case .body, .ended: .receiving
        }
    }

    /// The fields after a chunked body, once it has ended.
    @inline(__always)
    var trailers: Headers {
        if case .ended(let trailers) = response { trailers } else { Headers() }
    }

    /// Whether a reader waits before its first read, unless the transport may hold bytes that nothing announces: a
    /// response takes time, so that a read at once would find nothing and cost a system call. The same holds after a
    /// read that left nothing, while data gathers.
    @inline(__always)
    func waitsFirst(isGathering: Bool) -> Bool { !hasReceived || isGathering }

    // The questions below reach the codec in place. They change nothing, and are mutating all the same: a read of a
    // property of an object copies the whole codec before it is asked.

    /// The length of the body in bytes; zero without a body, `nil` if unknown.
    mutating func bodyLength() -> Int64? { codec.isReceiveComplete ? 0 : codec.remainingLength }

    /// The bytes of the body that the codec has not seen; `nil` if unknown.
    mutating func remainingLength() -> Int64? { codec.remainingLength }

    /// Whether the protocol allows another exchange.
    mutating func isReusable() -> Bool { allowsNext && codec.reuse == .yes }

    // MARK: Transitions

    /// Begins an exchange. After an error nothing has changed.
    mutating func begin() throws(WireViolation) {
        guard allowsNext else { throw WireViolation(.local, .illegalState, section: "RFC 9112 9.3") }
        try codec.startNextExchange()
        exchanges += 1
        (response, reported, acknowledgement) = (.awaited, 0, exchanges > 1 ? .delayed : .prompt)
    }

    /// Whether what was received is to be acknowledged before the wait for the rest, once after a request and after an
    /// interim response, which a body may have answered (100, Continue). A server that writes head and body apart sends
    /// the body only then (Nagle's algorithm, RFC 896), and the system delays its acknowledgements by 40 ms.
    mutating func acknowledges() -> Bool {
        guard acknowledgement == .delayed, hasReceived else { return false }
        acknowledgement = .requested
        return true
    }

    /// Bytes were received.
    @inline(__always)
    mutating func received() {
        if case .awaited = response { response = .begun }
    }

    mutating func receivedEnd() { isInputOver = true }

    /// The next event of the response; nil if more must be received.
    @inline(__always)
    mutating func next(_ bytes: UnsafeRawBufferPointer, consumed: inout Int) throws(LoadError) -> HTTP1Event? {
        do throws(WireViolation) {
            if let event = try codec.next(bytes, consumed: &consumed) {
                note(event)
                return event
            }
            guard isInputOver else { return nil }
            if hasReceived {
                let event = try codec.receiveEnd()
                if let event { note(event) }
                return event
            }
        } catch { throw LoadError(error, phase) }
        throw .closedWithoutAnswer(.waiting)
    }

    @inline(__always)
    private mutating func note(_ event: HTTP1Event) {
        switch event {
        case .response, .upgraded: response = .body
        case .end(let trailers): response = .ended(trailers: trailers)
        case .informational: acknowledgement = .delayed
        case .data, .request: break
        }
    }

    /// Keeps a final head that `next` has returned, until its exchange takes it.
    mutating func holdEarly(_ head: HTTP1ResponseHead) { response = .early(head) }

    mutating func takeEarly() -> HTTP1ResponseHead? {
        guard case .early(let head) = response else { return nil }
        response = .body
        return head
    }

    /// The violations of a head that were not returned before: those of an interim head count for the later heads too.
    mutating func unreported(in head: HTTP1ResponseHead) -> ArraySlice<WireViolation> {
        defer { reported = head.violations.all.count }
        return head.violations.all.dropFirst(reported)
    }

    mutating func authenticated() {
        if use != .last { use = .authenticated }
    }

    /// The current exchange is the last one.
    mutating func endUse() { use = .last }
}
