// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingCSystem
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoadingIO

@Suite(.timeLimit(.minutes(4)))
struct TLSEndTests {
    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `an end with close_notify is the end (security 39)`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: { $0.maximumVersion = version })
        let pair = try await rig.connect()
        try await send(Array("last".utf8), on: pair.server)
        pair.server.close()
        #expect(try await receive(from: pair.client) == Array("last".utf8))
        var byte: UInt8 = 0
        let again = try withUnsafeMutableBytes(of: &byte) { try pair.client.read(into: $0) }
        #expect(again == .end)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `an end without close_notify is a cut (security 39)`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: {
            $0.maximumVersion = version
            $0.omitsCloseNotify = true
        })
        let pair = try await rig.connect()
        try await send(Array("last".utf8), on: pair.server)
        pair.server.close()
        #expect(try await receive(4, from: pair.client) == Array("last".utf8))
        let error = await #expect(throws: IOFailure.self) { _ = try await receive(from: pair.client) }
        #expect(tlsKind(error) == .truncated)
    }

    @Test func `a cut within a record is a cut (security 39)`() async throws {
        let rig = try TLSRig()
        let pair = try await rig.connect()
        // Application data, 1,000 bytes long, of which three come.
        try await send([0x17, 3, 3, 3, 0xE8, 1, 2, 3], on: pair.far)
        pair.far.finishWriting()
        let error = await #expect(throws: IOFailure.self) { _ = try await receive(from: pair.client) }
        #expect(tlsKind(error) == .truncated)
    }

    @Test func `A reset is the system's error`() async throws {
        let rig = try TLSRig()
        let pair = try await rig.connect()
        pair.far.abort()
        let error = await #expect(throws: IOFailure.self) { _ = try await receive(from: pair.client) }
        #expect(systemError(error) == ECONNRESET)
    }

    @Test func `A half-close: the other direction continues`() async throws {
        let rig = try TLSRig()
        let pair = try await rig.connect()
        pair.client.finishWriting()
        #expect(try await receive(from: pair.server).isEmpty)
        try await send(Array("answer".utf8), on: pair.server)
        pair.server.close()
        #expect(try await receive(from: pair.client) == Array("answer".utf8))
    }

    @Test func `Writing to a peer that has gone is an error and no signal`() async throws {
        let rig = try TLSRig()
        let pair = try await rig.connect()
        async let failed: Int32? = {
            do {
                while true { try await send([UInt8](repeating: 1, count: 1 << 20), on: pair.client) }
            } catch { return systemError(error) }
        }()
        _ = try await receive(100_000, from: pair.server)
        pair.server.close()
        let number = try #require(await failed)
        #expect([EPIPE, ECONNRESET].contains(number))
        pair.client.close()
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `An answer given before the peer left is still read`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: { $0.maximumVersion = version })
        let pair = try await rig.connect()
        try await send(Array("too much".utf8), on: pair.server)
        pair.server.close()
        let error = await #expect(throws: IOFailure.self) {
            while true { try await send([UInt8](repeating: 1, count: 1 << 20), on: pair.client) }
        }
        #expect(systemError(error) != nil)
        #expect(try await receive(8, from: pair.client) == Array("too much".utf8))
    }

    @Test func `A closed transport moves nothing`() async throws {
        let rig = try TLSRig()
        let pair = try await rig.connect()
        pair.client.close()
        pair.client.close()
        await #expect(throws: IOFailure.self) { try await send([1], on: pair.client) }
        await #expect(throws: IOFailure.self) { _ = try await receive(1, from: pair.client) }
        #expect(pair.client.hasPendingInput(askingKernel: false))
    }

    // MARK: Idle connections

    // These tests wait, because the poller is notified of arrived bytes a moment later.

    @Test func `Tickets on an idle connection leave it clean`() async throws {
        let rig = try TLSRig()
        let pair = try await rig.connect()
        try await eventually(rig.client.sessions.count) {
            #expect(!pair.client.hasPendingInput(askingKernel: false))
            return $0 >= 2
        }
        #expect(!pair.client.hasPendingInput(askingKernel: false))
        // And it still works.
        try await send([1], on: pair.client)
        #expect(try await receive(1, from: pair.server) == [1])
    }

    @Test func `unsolicited bytes make an idle connection unusable`() async throws {
        let pair = try await TLSRig().connect()
        try await send([1], on: pair.server)
        try await pair.client.eventuallyHasInput()
        #expect(pair.client.hasPendingInput(askingKernel: false))
        #expect(try await receive(1, from: pair.client) == [1])
        #expect(!pair.client.hasPendingInput(askingKernel: false))
    }

    @Test(arguments: [false, true])
    func `An end makes an idle connection dirty`(_ withoutNotice: Bool) async throws {
        let pair = try await TLSRig(server: { $0.omitsCloseNotify = withoutNotice }).connect()
        pair.server.close()
        try await pair.client.eventuallyHasInput()
    }

    // MARK: Much

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `Eight megabytes there and back at once`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: { $0.maximumVersion = version })
        let pair = try await rig.connect()
        var generator = SeededGenerator(seed: 1)
        let bytes = (0..<(1 << 20)).flatMap { _ in withUnsafeBytes(of: generator.next()) { Array($0) } }
        async let sent: Void = send(bytes, on: pair.client)
        async let echoed: Void = echo(bytes.count, on: pair.server)
        #expect(try await receive(bytes.count, from: pair.client) == bytes)
        try await sent
        try await echoed
    }

    @Test func `A reader and a writer never wait at one gate`() {
        var turns = TLSWaitingGates()
        let alone = [turns.wait(.writer, .write), turns.wait(.reader, .read)]
        #expect(alone == [.write, .read])
        let undisturbed = turns.endWait(.reader)
        #expect(!undisturbed)
        // The reader has to write first, where the writer waits already.
        let displaced = turns.wait(.reader, .write)
        #expect(displaced == .read)
        let wakesReader = [turns.endWait(.writer), turns.endWait(.reader)]
        #expect(wakesReader == [true, false])
        let other = [turns.wait(.reader, .write), turns.wait(.writer, .write)]
        #expect(other == [.write, .read])
        let wakesWriter = turns.endWait(.reader)
        #expect(wakesWriter)
    }

    private func echo(_ count: Int, on transport: TLSTransport) async throws {
        var left = count
        while left > 0 {
            let bytes = try await receive(1, from: transport)
            left -= bytes.count
            try await send(bytes, on: transport)
        }
    }
}
