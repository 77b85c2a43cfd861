// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

@Suite(.timeLimit(.minutes(4)))
struct StreamSecurityTests {
    private static let ready = "220 ready\r\n"

    private static func upgrade(_ task: StreamTask) async throws {
        try await task.write("STARTTLS\r\n")
        try await expect({ try await task.text(atLeast: ready.utf8.count, atMost: ready.utf8.count) }, ready)
        try await task.startSecureConnection()
    }

    @Test("TLS starts in mid-stream") func inMidStream() async throws {
        let rig = try StreamRig()
        let (task, plain) = try await rig.connected()
        async let secured = {
            try await expect({ try await plain.text(10) }, "STARTTLS\r\n")
            try await plain.send(Self.ready)
            return try await rig.secure(plain)
        }()
        try await Self.upgrade(task)
        let peer = try await secured
        #expect(task.isSecure)
        // Twice is once.
        try await task.startSecureConnection()
        async let echo: Void = peer.echo()
        try await task.write("secret")
        try await task.closeWrite()
        let (answer, isEnd) = try await task.read(atLeast: 7)
        #expect(answer == Data("secret".utf8) && isEnd)
        try await echo
        #expect(await task.ended() == nil)
        peer.close()
        await rig.finish()
    }

    /// CVE-2011-0411: plain text sent before the handshake would be read as if TLS had protected it.
    @Test("bytes injected before the handshake end the stream") func injectedBytesEndTheStream() async throws {
        try await withStream { _, task, peer in
            try await peer.send(Self.ready + "250 injected\r\n")
            let error = await failure(.unexpectedPlaintext, .remote, .securing) { try await Self.upgrade(task) }
            #expect(error?.url?.host() == StreamRig.host)
            await expectFailure(.unexpectedPlaintext) { try await task.read() }
            await expectFailure(.unexpectedPlaintext) { try await task.write("x") }
            #expect(await task.ended()?.reason == .unexpectedPlaintext)
            #expect(!task.isSecure)
            // Of the handshake nothing went out.
            let heard = try? await peer.text()
            #expect(heard == nil || heard == "STARTTLS\r\n")
        }
    }

    /// Received, and left over by a read that wanted more.
    @Test("bytes left unread before the handshake end the stream") func bytesLeftOverEndTheStreamToo() async throws {
        try await withStream { rig, task, peer in
            try await peer.send("220 re")
            async let late = failure(.streamCallTimeout) { try await task.read(atLeast: 100, timeout: .seconds(1)) }
            try await rig.clock.untilWaiting()
            rig.clock.advance(by: .seconds(1))
            #expect(await late != nil)
            #expect(task.snapshot.received == 6)
            await expectFailure(.unexpectedPlaintext, .remote, .securing) { try await task.startSecureConnection() }
            await expectFailure(.unexpectedPlaintext) { try await task.read() }
        }
    }

    /// Between the look and the handshake, or meant to be the handshake.
    @Test("plain text in place of the handshake is an error") func textInTheHandshakeIsNoTLS() async throws {
        try await withStream { _, task, peer in
            async let starting = failure(.notTLS, .remote, .securing) { try await task.startSecureConnection() }
            _ = try await peer.receive(1)
            try await peer.send("250 injected\r\n")
            #expect(await starting != nil)
            #expect(await task.ended()?.reason == .notTLS)
        }
    }

    @Test("a peer that closes instead of the handshake is a lost connection")
    func aPeerThatClosesInsteadOfTheHandshakeIsALostConnection()
        async throws
    {
        try await withStream { _, task, peer in
            peer.close()
            try await pollerHasRun()
            await expectFailure(.connectionLost, .remote, .securing) { try await task.startSecureConnection() }
            #expect(await task.ended()?.phase == .securing)
        }
    }

    @Test("a half-closed stream cannot start TLS") func aHalfClosedStreamIsNotSecured() async throws {
        try await withStream { _, task, _ in
            try await task.closeWrite()
            await expectFailure(.streamClosed, .local) { try await task.startSecureConnection() }
        }
    }

    @Test("the certificate must match the host", arguments: [false, true])
    func theCertificateMustNameTheHost(fromTheBeginning: Bool) async throws {
        let rig = try StreamRig()
        let task = rig.session.streamTask(
            host: "other.example", port: Int(rig.listener.address.port), secure: fromTheBeginning)
        task.resume()
        async let refused: Void? = try? {
            let peer = try await rig.accept(secure: true)
            peer.close()
        }()
        await expectFailure(.certificateNameMismatch, .remote, .securing) {
            if fromTheBeginning { _ = try await task.read() } else { try await task.startSecureConnection() }
        }
        #expect(await task.ended()?.reason == .certificateNameMismatch)
        _ = await refused
        await rig.finish()
    }

    @Test("an address that the session's policy refuses is not connected to")
    func anAddressTheSessionRefusesIsNotConnectedTo() async throws {
        let rig = try StreamRig { $0.networks.addressPolicy = .publicOnly }
        let task = rig.task().resumed()
        await expectFailure(.addressRefused, .local, .connecting) { try await task.read() }
        #expect(await task.ended()?.reason == .addressRefused)
        await rig.finish()
    }

    @Test("an end without close_notify is a truncation") func anEndWithoutClosenotifyIsATruncation() async throws {
        try await withStream(secure: true, server: { $0.omitsCloseNotify = true }) { _, task, peer in
            try await peer.send("all of it?")
            peer.close()
            try await expect({ try await task.text(atLeast: 10, atMost: 10) }, "all of it?")
            await expectFailure(.truncated, .remote, .receiving) { try await task.read() }
            #expect(await task.ended()?.reason == .truncated)
        }
    }
}
