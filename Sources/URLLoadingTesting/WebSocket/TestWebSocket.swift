// SPDX-License-Identifier: Apache-2.0

// In this folder: a test server of WebSockets

import FoundationEssentials
public import URLLoading
import URLLoadingIO
public import URLLoadingWire

/// The server's end of a WebSocket, controlled by a ``WebSocketTestServer/Script``, which may send anything.
///
/// ```swift
/// origin.webSocket("/") { socket in
///     try await socket.send(bytes: [0x81, 0x80, 1, 2, 3, 4])   // a masked frame, which no server may send
///     let close = try await socket.untilClose()                // 1002
/// }
/// ```
/// Used only by the task of its script. Its methods throw when the client has closed the connection, or the test ends.
public final class TestWebSocket: @unchecked Sendable {
    // Unchecked: used by the task of its script only.
    /// The request of the opening handshake.
    public let request: HTTPTestServer.RecordedRequest
    /// The payloads of the received pongs.
    public private(set) var pongs: [[UInt8]] = []
    /// Whether received pings are answered.
    public var answersPings = true
    /// The client's close frame; ``/URLLoading/WebSocketClose/Code/noStatus`` if it had no status.
    public private(set) var receivedClose: WebSocketClose?

    private let stream: any WebSocketByteStream
    private var output: [UInt8] = []
    private var codec: WebSocketCodec
    private var reader: WebSocketMessageReader
    private let deflater: MessageDeflater?
    private var input: [UInt8]
    private var message = Data()
    private var kind = WebSocketCodec.Kind.binary

    init(_ request: HTTPTestServer.RecordedRequest, _ stream: any WebSocketByteStream, _ deflate: MessageDeflate?) {
        self.request = request
        self.stream = stream
        input = stream.takeReceived()
        codec = WebSocketCodec(role: .server, allowsCompression: deflate != nil)
        reader = WebSocketMessageReader(role: .server, limit: .max, deflate: deflate)
        deflater = deflate.flatMap {
            MessageDeflater(windowBits: $0.serverWindowBits, forgets: $0.serverNoContextTakeover)
        }
    }

    // MARK: Sending

    /// Sends a correct message, in frames with at most `frameSize` bytes of payload.
    public func send(_ message: WebSocketMessage, frameSize: Int = .max) async throws {
        let (kind, bytes): (WebSocketCodec.Kind, [UInt8]) =
            switch message {
            case .text(let text): (.text, Array(text.utf8))
            case .data(let data): (.binary, Array(data))
            }
        let payload = try deflater.map { deflater in try bytes.withUnsafeBytes { try deflater.deflate($0) } } ?? bytes
        var offset = 0
        repeat {
            let end = offset + min(max(1, frameSize), payload.count - offset)
            try payload.withUnsafeBytes { all in
                try codec.send(
                    kind, UnsafeRawBufferPointer(rebasing: all[offset..<end]),
                    at: .init(isFirst: offset == 0, isLast: end == payload.count),
                    isCompressed: deflater != nil, mask: 0, into: &output)
            }
            offset = end
        } while offset < payload.count
        try await flush()
    }

    /// Sends any bytes.
    public func send(bytes: [UInt8]) async throws {
        output += bytes
        try await flush()
    }

    /// Sends a ping with at most 125 bytes.
    public func ping(_ payload: [UInt8] = []) async throws {
        try codec.sendPing(payload, mask: 0, into: &output)
        try await flush()
    }

    /// Sends a close frame, once; `nil` for one without a status.
    public func close(_ close: WebSocketClose?) async throws {
        codec.sendClose(close, mask: 0, into: &output)
        try await flush()
    }

    // MARK: Receiving

    /// Receives the next message; `nil` when the client has closed, which is answered, or has left.
    public func receive() async throws -> WebSocketMessage? {
        while true {
            var consumed = 0
            let event = try input.withUnsafeMutableBytes { try codec.next($0, consumed: &consumed) }
            switch event {
            case .message(let kind, let isCompressed)?:
                self.kind = kind
                try reader.begin(kind, isCompressed: isCompressed)
            case .data(let range)?:
                try input.withUnsafeBytes { all in
                    try reader.take(UnsafeRawBufferPointer(rebasing: all[range])) { message.append(contentsOf: $0) }
                }
            case .end?: try reader.end { message.append(contentsOf: $0) }
            // Nothing may follow the close frame (RFC 6455 §5.5.1), and the client may not have read that yet.
            case .ping(let payload)? where answersPings && !codec.hasSentClose:
                try codec.sendPong(payload, mask: 0, into: &output)
                try await flush()
            case .ping?: break
            case .pong(let payload)?: pongs.append(payload)
            case .close(let close)?:
                receivedClose = close ?? WebSocketClose(.noStatus)
                try await self.close(close)
                return nil
            case nil:
                input.removeFirst(consumed)
                guard !codec.hasReceivedClose, try await fill() else { return nil }
                continue
            }
            input.removeFirst(consumed)
            guard case .end? = event else { continue }
            defer { message = Data() }
            return kind == .text ? .text(String(decoding: message, as: UTF8.self)) : .data(message)
        }
    }

    /// Waits for the client's close frame and returns it; `nil` if the client leaves without one. Messages before it
    /// are dropped.
    public func untilClose() async throws -> WebSocketClose? {
        while try await receive() != nil {}
        return receivedClose
    }

    /// Waits until the client has closed the connection.
    public func untilEnd() async throws {
        input = []
        while try await fill() { input = [] }
    }

    private func fill() async throws -> Bool {
        guard !stream.hasEnded else { return false }
        try await stream.fill()
        input += stream.takeReceived()
        return true
    }

    private func flush() async throws {
        defer { output = [] }
        try await stream.send(output)
    }

    // MARK: Ending

    /// Waits until the client leaves, or the test ends.
    public func stall() async throws { try await stream.stall() }

    /// Resets the connection, as a crash does; over HTTP/2 only its stream.
    public func reset() { stream.reset() }
}

/// The byte stream below a WebSocket. Used by one task.
protocol WebSocketByteStream: AnyObject {
    /// Takes the bytes that have arrived.
    func takeReceived() -> [UInt8]
    /// Whether the client sends no more.
    var hasEnded: Bool { get }
    /// Waits for more bytes, or for the end.
    func fill() async throws
    func send(_ bytes: [UInt8]) async throws
    func stall() async throws
    func reset()
}

/// A separate HTTP/1.1 connection.
final class HTTP1WebSocketStream: WebSocketByteStream {
    private let connection: OriginConnection
    /// The reason why the connection has ended, if the script caused it.
    private(set) var ending: OriginConnection.Ending?

    init(_ connection: OriginConnection) { self.connection = connection }

    func takeReceived() -> [UInt8] { connection.input.takeRest() }
    var hasEnded: Bool { connection.input.hasEnded }
    func fill() async throws { try await connection.fill() }
    func stall() async throws { try await connection.stall() }

    func send(_ bytes: [UInt8]) async throws {
        connection.output += bytes
        try await connection.flush()
    }

    func reset() {
        connection.socket.abort()
        ending = .gone
    }
}
