// SPDX-License-Identifier: Apache-2.0

// Bytes that are read together with the end of a handshake lie above the socket. A reader that takes them has not read
// the socket: it must not wait for a notification that was used up before.

import Foundation
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// A transport that sends what is written when its user begins to read: everything in one segment.
private final class GatheringTransport: Transport, @unchecked Sendable {
    // Unchecked: used by one task.
    private let inner: any Transport
    private var held: [UInt8] = []

    init(_ inner: any Transport) { self.inner = inner }

    var slot: PollSlot { inner.slot }
    var description: String { "gathering(\(inner.description))" }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> URLLoadingIO.Progress {
        if !held.isEmpty {
            // A few hundred bytes, for which an open socket has room.
            let sent = held.withUnsafeBytes { bytes in Result { () throws(IOFailure) in try inner.write(bytes) } }
            _ = try sent.get()
            held = []
        }
        return try inner.read(into: buffer)
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(IOFailure) -> URLLoadingIO.Progress {
        held += bytes
        return .moved(bytes.count)
    }

    func finishWriting() { inner.finishWriting() }
    func close() { inner.close() }
    func hasPendingInput(askingKernel: Bool) -> Bool { inner.hasPendingInput(askingKernel: askingKernel) }
}

@Suite(.timeLimit(.minutes(1)))
struct ReadAheadRows {
    private static let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]
    /// HEADERS with `:status: 200` of the static table, END_STREAM and END_HEADERS, on stream 1.
    private static let response: [UInt8] = [0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88]

    /// Serves one connection over TLS: `opening` in one segment with the end of the handshake, `response` some time
    /// after a request was received.
    private static func serve(
        _ listener: SocketListener, _ context: TLSServerContext, opening: [UInt8], response: [UInt8],
        until hasRequest: ([UInt8]) -> Bool, _ token: StopToken
    ) async throws {
        let socket = try await listener.accept(token)
        token.attach(socket.slot)
        defer { token.detach(socket.slot) }
        let tls = try TLSTransport(server: context, over: GatheringTransport(socket))
        defer { tls.close() }
        try await tls.handshake(token)
        _ = try opening.withUnsafeBytes { bytes in Result { () throws(IOFailure) in try tls.write(bytes) } }.get()
        var input: [UInt8] = []
        while !hasRequest(input) {
            guard let bytes = try await received(tls, token) else { return }
            input += bytes
        }
        try await Task.sleep(for: .milliseconds(60))
        _ = try response.withUnsafeBytes { bytes in Result { () throws(IOFailure) in try tls.write(bytes) } }.get()
        while try await received(tls, token) != nil {}
    }

    private static func received(_ tls: TLSTransport, _ token: StopToken) async throws -> [UInt8]? {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 * 1024, alignment: 1)
        defer { room.deallocate() }
        let count = try await tls.receive(into: room, token)
        return count > 0 ? Array(room[..<count]) : nil
    }

    /// Whether HTTP/2 input contains a HEADERS frame: after a preface of 24 bytes, frames begin with a length of three
    /// bytes and a type.
    private static func hasHeaders(_ input: [UInt8]) -> Bool {
        var rest = input.dropFirst(24)
        while rest.count >= 9 {
            let start = rest.startIndex
            let length = Int(rest[start]) << 16 | Int(rest[start + 1]) << 8 | Int(rest[start + 2])
            if rest[start + 3] == 1 { return true }
            rest = rest.dropFirst(9 + length)
        }
        return false
    }

    private static func status(
        from port: UInt16, trusting authority: TestCertificateAuthority
    ) async throws -> Int {
        var configuration = Configuration.ephemeral
        configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
        // A load that sleeps while its answer is there fails: no other timer of the library wakes it before.
        configuration.timeouts.idle = .seconds(30)
        configuration.connections.http2PingInterval = nil
        return try await withSession(configuration) { session in
            let url = try #require(URL(string: "https://localhost:\(port)/"))
            return try await session.data(from: url).1.http?.status.code ?? 0
        }
    }

    @Test(
        "SETTINGS in one segment with the end of the handshake, and the answer later: it is read when it arrives",
        arguments: [TLSVersion.tls12, .tls13])
    func settingsWithFinished(version: TLSVersion) async throws {
        let authority = try TestCertificateAuthority(commonName: "Read ahead")
        let identity = try authority.issue()
        var server = TLSServerContext.Configuration(
            certificateChain: identity.certificatePEM, privateKey: identity.keyPEM)
        server.applicationProtocols = ["h2"]
        server.maximumVersion = version
        let context = try TLSServerContext(server)
        for _ in 0..<5 {
            let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
            defer { listener.close() }
            let token = StopToken()
            let serving = Task {
                try await Self.serve(
                    listener, context, opening: Self.settings, response: Self.response, until: Self.hasHeaders, token)
            }
            #expect(try await Self.status(from: listener.address.port, trusting: authority) == 200)
            token.stop(.cancelled)
            _ = await serving.result
        }
    }

    @Test("a response in one segment with the end of the handshake, before the request was received, is read")
    func responseWithFinished() async throws {
        let authority = try TestCertificateAuthority(commonName: "Read ahead")
        let identity = try authority.issue()
        var server = TLSServerContext.Configuration(
            certificateChain: identity.certificatePEM, privateKey: identity.keyPEM)
        server.maximumVersion = .tls12
        let context = try TLSServerContext(server)
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        defer { listener.close() }
        let token = StopToken()
        let early = Array("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n".utf8)
        let serving = Task {
            try await Self.serve(listener, context, opening: early, response: [], until: { _ in false }, token)
        }
        #expect(try await Self.status(from: listener.address.port, trusting: authority) == 408)
        token.stop(.cancelled)
        _ = await serving.result
    }
}
