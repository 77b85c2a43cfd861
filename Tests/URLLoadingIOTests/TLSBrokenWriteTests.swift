// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing
import URLLoadingCSystem
import URLLoadingTesting

@testable import URLLoadingIO

/// The socket below TLS refuses a write. The transport throws the socket's own error with every release of OpenSSL.
@Suite(.timeLimit(.minutes(4)))
struct TLSBrokenWriteTests {
    /// Both ends of a TLS connection, and the client's socket, whose writes may fail.
    private struct Rigged {
        let pair: TLSRig.Pair
        let socket: ChoppingTransport

        /// - Parameter failure: the error that the socket throws for a refused write.
        /// - Parameter budget: the number of bytes that the socket accepts before it refuses.
        init(_ rig: TLSRig, writes budget: Int = .max, failWith failure: IOFailure.Code? = .system(EPIPE)) async throws
        {
            let made = Lock<ChoppingTransport?>(nil)
            pair = try await rig.connect { near in
                let socket = ChoppingTransport(near, writes: budget, writesFailWith: failure)
                made.withLock { $0 = socket }
                return socket
            }
            socket = try #require(made.withLock { $0 })
        }

        func close() {
            pair.client.close()
            pair.server.close()
        }
    }

    /// The sequence with failing writes: a handshake, two and a half records, an end.
    private static func talk(
        _ rig: TLSRig, writes budget: Int = .max, failWith failure: IOFailure.Code? = nil
    ) async throws -> (handshake: Int, content: Int, all: Int) {
        let rigged = try await Rigged(rig, writes: budget, failWith: failure)
        defer { rigged.close() }
        let handshake = rigged.socket.written.count
        try await send([UInt8](repeating: 5, count: 40_000), on: rigged.pair.client)
        let content = rigged.socket.written.count
        _ = try rigged.pair.client.endWriting()
        return (handshake, content, rigged.socket.written.count)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13], [EPIPE, ECONNRESET])
    func `A write that the socket refuses throws the socket's error, at any offset`(
        _ version: TLSVersion, _ number: Int32
    ) async throws {
        // Without tickets each connection sends the same number of bytes.
        let rig = try TLSRig(server: {
            $0.maximumVersion = version
            $0.tickets = 0
        })
        let whole = try await Self.talk(rig)
        let edges = [whole.handshake, whole.content].flatMap { [$0 - 1, $0, $0 + 1] }
        let budgets =
            edges + stride(from: 0, to: whole.handshake, by: 29)
            + stride(from: whole.handshake, to: whole.all, by: 1999)
        for budget in budgets {
            let error = await #expect(throws: IOFailure.self, "after \(budget) bytes of \(whole)") {
                try await Self.talk(rig, writes: budget, failWith: .system(number))
            }
            #expect(systemError(error) == number, "after \(budget) bytes of \(whole): \(String(describing: error))")
        }
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `Every write after a refused one fails too`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: { $0.maximumVersion = version })
        let rigged = try await Rigged(rig)
        defer { rigged.close() }
        rigged.socket.endWrites()
        for _ in 1...3 {
            let error = await #expect(throws: IOFailure.self) { try await send([1, 2, 3], on: rigged.pair.client) }
            #expect(systemError(error) == EPIPE, "\(String(describing: error))")
        }
        // The other direction still works.
        try await send(Array("answer".utf8), on: rigged.pair.server)
        #expect(try await receive(6, from: rigged.pair.client) == Array("answer".utf8))
    }

    /// The alert after a failed verification is a write, too.
    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `A failed verification is reported although its alert cannot be sent`(_ version: TLSVersion) async throws {
        let stranger = try TestCertificateAuthority(commonName: "Stranger")
        let rig = try TLSRig(server: { $0.maximumVersion = version }, client: { $0.roots = .pem(stranger.pem) })
        let first = Lock<ChoppingTransport?>(nil)
        await #expect(throws: IOFailure.self) {
            try await rig.connect {
                let made = ChoppingTransport($0)
                first.withLock { $0 = made }
                return made
            }
        }
        // The client's first record is its ClientHello; all later records are refused.
        let written = first.withLock { $0?.written ?? [] }
        let hello = 5 + Int(written[3]) << 8 + Int(written[4])
        try #require(written.count > hello)
        let error = await #expect(throws: IOFailure.self) {
            try await rig.connect { ChoppingTransport($0, writes: hello, writesFailWith: .system(EPIPE)) }
        }
        #expect(tlsKind(error) == .untrustedIssuer, "\(String(describing: error))")
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `A forged record is reported although its alert cannot be sent`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: { $0.maximumVersion = version })
        let rigged = try await Rigged(rig)
        defer { rigged.close() }
        rigged.socket.endWrites()
        try await send([0x17, 3, 3, 0, 40] + [UInt8](repeating: 1, count: 40), on: rigged.pair.far)
        let error = await #expect(throws: IOFailure.self) { _ = try await receive(1, from: rigged.pair.client) }
        #expect(tlsKind(error) == .other, "\(String(describing: error))")
    }
}
