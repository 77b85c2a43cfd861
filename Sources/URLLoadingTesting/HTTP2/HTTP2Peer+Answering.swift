// SPDX-License-Identifier: Apache-2.0

// Common sending operations of scripts. They send exactly what they are given, and keep no state except flow-control
// windows.

import Synchronization
import URLLoadingIO
public import URLLoadingWire

extension HTTP2Peer {
    /// Answers a request. The body waits for the client's flow-control windows.
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
        endStream: Bool = true,
        trailers: Headers? = nil
    ) async throws(Failure) {
        let endsAtOnce = body.isEmpty && endStream && trailers == nil
        try await self.headers(stream, HTTP2Fields(status, headers), endStream: endsAtOnce)
        if !body.isEmpty { try await data(stream, body, endStream: endStream && trailers == nil) }
        if let trailers { try await self.headers(stream, HTTP2Fields(trailers), endStream: true) }
    }

    /// Sends a field section, in one frame or several.
    /// - Throws: ``Failure/left``.
    public func headers(
        _ stream: Int, _ fields: HTTP2Fields, endStream: Bool = false, splitInto count: Int = 1
    ) async throws(Failure) {
        try await headers(stream, block: fields.encoded(), endStream: endStream, splitInto: count)
    }

    /// Sends a field section from a block that the test has encoded itself, see ``HPACK``.
    /// - Throws: ``Failure/left``.
    public func headers(_ stream: Int, block: [UInt8], endStream: Bool = false, splitInto count: Int = 1)
        async throws(Failure)
    {
        try await send(HTTP2Frame.section(stream: stream, block, endStream: endStream, splitInto: count))
    }

    /// Sends a body, or a part of one, in frames of the client's maximum size and within its flow-control windows. To
    /// violate them, use `send(.data(…))`.
    /// - Throws: ``Failure``.
    public func data(_ stream: Int, _ bytes: [UInt8], endStream: Bool = false) async throws(Failure) {
        guard !bytes.isEmpty else { return try await send(.data(stream: stream, [], endStream: endStream)) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let wanted = rest.count
            let (size, reset, seen) = input.withLock {
                ($0.takeWindow(stream: stream, upTo: wanted), $0.windows.resets[stream], $0.reads)
            }
            if let reset { throw .streamReset(reset) }
            guard size > 0 else {
                try await awaitInput(since: seen)
                if input.withLock({ $0.isOver }) { throw .left }
                continue
            }
            let part = Array(rest.prefix(size))
            rest = rest.dropFirst(size)
            try await send(.data(stream: stream, part, endStream: endStream && rest.isEmpty))
        }
    }

    /// Sends SETTINGS.
    /// - Throws: ``Failure/left``.
    public func settings(_ settings: HTTP2Frame.Setting...) async throws(Failure) {
        try await send(.settings(settings))
    }

    /// Sends a PING and waits for the reply, which shows that the client has processed everything sent before.
    /// - Throws: ``Failure``, if the reply has other bytes.
    public func ping(_ bytes: [UInt8] = Array("question".utf8)) async throws(Failure) {
        try await send(.ping(bytes))
        let answer = try await expect(.ping, isAck: true)
        guard answer.payload == bytes else { throw complain("expected the PING back, got \(answer.payload)") }
    }

    /// Sends RST_STREAM.
    /// - Throws: ``Failure/left``.
    public func reset(_ stream: Int, _ code: HTTP2Frame.ErrorCode) async throws(Failure) {
        try await send(.resetStream(stream, code))
    }

    /// Sends GOAWAY: streams above `last` were not processed.
    /// - Throws: ``Failure/left``.
    public func goAway(last: Int, _ code: HTTP2Frame.ErrorCode = .noError, debug: String = "") async throws(Failure) {
        try await send(.goAway(last: last, code, debug: Array(debug.utf8)))
    }

    /// Sends WINDOW_UPDATE for the connection or a stream.
    /// - Throws: ``Failure/left``.
    public func windowUpdate(stream: Int = 0, _ increment: Int) async throws(Failure) {
        try await send(.windowUpdate(stream: stream, increment))
    }
}
