// SPDX-License-Identifier: Apache-2.0

// The sending operations of scripts. They send exactly what they are given.

#if HTTP3

import URLLoadingIO
public import URLLoadingWire

extension HTTP3Peer {
    /// Opens the connection as most scripts do: waits for the handshake, opens the three streams of a server with their
    /// types, and sends SETTINGS (RFC 9114 §3.2, §6.2).
    ///
    /// ```swift
    /// try await peer.start(.maxFieldSectionSize(1_000))
    /// ```
    /// - Throws: ``Failure``.
    public func start(_ settings: HTTP3Frame.Setting...) async throws(Failure) { try await start(settings) }

    func start(_ settings: [HTTP3Frame.Setting]) async throws(Failure) {
        try await sendRaw([0] + HTTP3Frame.settings(settings).bytes, on: try await control())
        let streams = try await streams()
        try await sendRaw([2], on: streams.encoder)
        try await sendRaw([3], on: streams.decoder)
    }

    /// Waits for the handshake, and returns the stream for the server's control frames.
    /// - Throws: ``Failure``.
    public func control() async throws(Failure) -> Int { try await streams().control }

    /// Waits for the handshake, and returns the streams that a server has for the instructions of QPACK.
    /// - Throws: ``Failure``.
    public func qpackStreams() async throws(Failure) -> (encoder: Int, decoder: Int) {
        let streams = try await streams()
        return (streams.encoder, streams.decoder)
    }

    private func streams() async throws(Failure) -> (control: Int, encoder: Int, decoder: Int) {
        let limit = WaitTimedOut.usualLimit
        let found = try await wait(until: Poller.now() + limit.inNanoseconds) { state in
            if case .open(let control, let encoder, let decoder) = state.phase {
                (control: Int(control), encoder: Int(encoder), decoder: Int(decoder))
            } else {
                nil
            }
        }
        guard let found else { throw complain("expected the end of the handshake within \(limit)") }
        return found
    }

    /// Opens a stream in one direction, with a type of any number (RFC 9114 §6.2).
    /// - Returns: its number.
    /// - Throws: ``Failure/unexpected(_:)`` if the client permits no more streams; ``Failure/left``.
    public func openStream(type: UInt64) async throws(Failure) -> Int {
        _ = try await streams()
        guard let stream = change({ $0.openStream() }) else { throw complain("the client permits no more streams") }
        try await sendRaw(QUICInteger.bytes(type), on: Int(stream))
        return Int(stream)
    }

    /// Sends frames, after those that were sent on the stream before. Does not wait for the client's windows: the
    /// frames are kept until they permit them.
    /// - Parameter endStream: whether nothing follows on the stream.
    /// - Throws: ``Failure/left``.
    public func send(_ frames: HTTP3Frame..., on stream: Int, endStream: Bool = false) async throws(Failure) {
        try await sendRaw(frames.flatMap(\.bytes), on: stream, endStream: endStream)
    }

    /// Sends bytes that need not be frames.
    /// - Throws: ``Failure/left``.
    public func sendRaw(_ bytes: [UInt8], on stream: Int, endStream: Bool = false) async throws(Failure) {
        let isOver = change { state in
            state.send(bytes, endStream: endStream, on: Int64(stream))
            return state.isOver
        }
        if isOver { throw .left }
    }

    /// Sends instructions for the client's table, see ``QPACK``.
    /// - Throws: ``Failure/left``.
    public func sendEncoder(_ instructions: [UInt8]) async throws(Failure) {
        try await sendRaw(instructions, on: try await qpackStreams().encoder)
    }

    /// Answers a request. A body larger than 256 KiB waits until the client has received some of it.
    ///
    /// ```swift
    /// try await peer.respond(to: request.stream, .ok, ["content-type": "text/plain"], body: Array("hi".utf8))
    /// ```
    /// - Parameters:
    ///   - headers: sent after `:status`, with names in lower case; no content-length is added.
    ///   - endStream: whether the response ends here, if it has no trailers.
    ///   - trailers: sent after the body.
    /// - Throws: ``Failure``.
    public func respond(
        to stream: Int, _ status: Status = .ok, _ headers: Headers = Headers(), body: [UInt8] = [],
        endStream: Bool = true, trailers: Headers? = nil
    ) async throws(Failure) {
        let endsAtOnce = body.isEmpty && endStream && trailers == nil
        try await send(.headers(HTTP2Fields(status, headers)), on: stream, endStream: endsAtOnce)
        if !body.isEmpty { try await data(stream, body, endStream: endStream && trailers == nil) }
        if let trailers { try await send(.headers(HTTP2Fields(trailers)), on: stream, endStream: true) }
    }

    /// Sends a body, or a part of one, in DATA frames of at most 64 KiB. Waits while the client has not received the
    /// 256 KiB before.
    /// - Throws: ``Failure``; ``Failure/streamReset`` if the client has reset the stream or wants no more of it.
    public func data(_ stream: Int, _ bytes: [UInt8], endStream: Bool = false) async throws(Failure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            try await room(on: stream)
            let part = Array(rest.prefix(64 * 1024))
            rest = rest.dropFirst(part.count)
            try await send(.data(part), on: stream, endStream: endStream && rest.isEmpty)
        }
        if bytes.isEmpty, endStream { try await sendRaw([], on: stream, endStream: true) }
    }

    // MARK: Ending

    /// Ends the server's direction of a stream (RESET_STREAM, RFC 9000 §19.4). Bytes that the client has not received
    /// are lost: see ``drain()``.
    public func reset(_ stream: Int, _ code: HTTP3Frame.ErrorCode) { change { $0.reset(stream, code) } }

    /// Asks the client to send no more on a stream (STOP_SENDING, RFC 9000 §19.5).
    public func stopReceiving(_ stream: Int, _ code: HTTP3Frame.ErrorCode) {
        change { $0.stopReceiving(stream, code) }
    }

    /// Closes the connection with an error code of HTTP/3 (RFC 9114 §8). Bytes that the client has not received are
    /// lost: see ``drain()``.
    public func close(_ code: HTTP3Frame.ErrorCode = .noError) { change { $0.close(code) } }

    /// Closes the connection with an error code of QUIC (RFC 9000 §20.1), at most 2^62 - 1.
    public func closeTransport(_ code: UInt64) {
        change { $0.close(.transport(QUICTransportError(rawValue: code & QUICInteger.largest))) }
    }

    /// Neither receives nor sends anything on this connection from now on, as a machine that has crashed. The script
    /// goes on; the connection counts as open until it returns or the server stops.
    public func fallSilent() { change { $0.isSilent = true } }

    /// Sends a PING after each so much time without another packet; `nil` for none (RFC 9000 §19.2).
    public func ping(each interval: Duration?) {
        change { $0.keepAlive(after: interval.map { max(1, $0.inNanoseconds) }) }
    }
}

#endif
