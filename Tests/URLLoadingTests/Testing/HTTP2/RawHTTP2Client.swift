// SPDX-License-Identifier: Apache-2.0

// The least of a client: bytes to a socket and frames from it. It keeps no rule by itself.

import Glibc
import Testing
import URLLoadingIO
import URLLoadingTesting

final class RawHTTP2Client {
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private let transport: any Transport
    private let socket: SocketTransport
    private let token = StopToken()
    private var reader = HTTP2FrameReader()
    private let hpack = HPACKReader()
    let agreed: String?

    /// Connects; says nothing but the TLS handshake, offering these protocols.
    init(_ server: HTTP2TestServer, offering protocols: [String] = ["h2"]) async throws {
        socket = try await SocketTransport.connect(to: .ipv4((127, 0, 0, 1), port: server.port), token)
        token.attach(socket.slot)
        guard server.configuration.tls != nil else {
            transport = socket
            agreed = nil
            return
        }
        var configuration = TLSConfiguration()
        configuration.verification = .unsafeNone
        configuration.applicationProtocols = protocols
        let tls = try TLSTransport(
            client: try TLSContext(configuration), peer: TLSPeer(.dns("localhost"), port: server.port), over: socket)
        try await tls.handshake(token)
        transport = tls
        agreed = tls.negotiated?.applicationProtocol
    }

    deinit { close() }

    func close() {
        token.detach(socket.slot)
        transport.close()
    }

    func send(_ frames: HTTP2Frame...) async throws { try await send(frames.flatMap(\.bytes)) }

    func send(_ bytes: [UInt8]) async throws {
        var done = 0
        while done < bytes.count {
            let step = try bytes.withUnsafeBytes { try transport.write(UnsafeRawBufferPointer(rebasing: $0[done...])) }
            switch step {
            case .moved(let count): done += count
            case .blocked(let interest): await Poller.shared.park(transport.slot, interest, token)
            case .end: throw HTTP2Peer.Failure.left
            }
        }
    }

    /// The preface, SETTINGS and their acknowledgement; `settings` are its own.
    @discardableResult
    func start(_ settings: HTTP2Frame.Setting...) async throws -> HTTP2Frame {
        try await send(Self.preface + HTTP2Frame.settings(settings).bytes)
        let first = try #require(await receive())
        #expect(first.kind == .settings && !first.isAck)
        try await send(.settingsAck)
        return first
    }

    static func get(_ path: String = "/", method: String = "GET", _ more: HTTP2Fields = [:]) -> [UInt8] {
        let pseudo: HTTP2Fields = [":method": method, ":scheme": "http", ":path": path, ":authority": "localhost"]
        return (pseudo + more).encoded()
    }

    func get(_ path: String = "/", stream: Int = 1, _ more: HTTP2Fields = [:]) async throws {
        try await send(.headers(stream: stream, Self.get(path, more), endStream: true))
    }

    /// `nil` at the end, however it came.
    func receive() async -> HTTP2Frame? {
        var room = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            if let frame = reader.next() { return frame }
            let step = room.withUnsafeMutableBytes { room in
                Result { () throws(IOFailure) in try transport.read(into: room) }
            }
            switch step {
            case .success(.moved(let count)): reader.receive(room[..<count])
            case .success(.blocked(let interest)): await Poller.shared.park(transport.slot, interest, token)
            case .success(.end), .failure: return nil
            }
        }
    }

    func receive(_ kind: HTTP2Frame.Kind, isAck: Bool = false) async throws -> HTTP2Frame {
        while let frame = await receive() {
            if frame.kind == kind, frame.isAck == isAck { return frame }
        }
        throw HTTP2Peer.Failure.left
    }

    struct Answer {
        var heads: [HTTP2Fields] = []
        var body: [UInt8] = []
        var frames = 0
        var text: String { String(decoding: body, as: UTF8.self) }
        var status: String { heads.first { $0[":status"]?.hasPrefix("1") == false }?[":status"] ?? "" }
    }

    /// One answer to its end, giving windows back and answering PINGs.
    func answer(_ stream: Int = 1) async throws -> Answer {
        var answer = Answer()
        var block: [UInt8] = []
        while let frame = await receive() {
            answer.frames += 1
            if frame.kind == .resetStream, frame.stream == stream {
                throw HTTP2Peer.Failure.streamReset(frame.errorCode ?? .noError)
            }
            if frame.kind == .ping, !frame.isAck { try await send(.ping(frame.payload, ack: true)) }
            if frame.kind == .headers || frame.kind == .continuation {
                block += frame.content ?? []
                if frame.flags.contains(.endHeaders) {
                    answer.heads.append(try hpack.fields(of: block))
                    block = []
                }
            }
            if frame.kind == .data {
                answer.body += frame.content ?? []
                if !frame.payload.isEmpty {
                    try await send(
                        .windowUpdate(frame.payload.count), .windowUpdate(stream: stream, frame.payload.count))
                }
            }
            if frame.endsStream, frame.stream == stream { return answer }
        }
        throw HTTP2Peer.Failure.left
    }
}
