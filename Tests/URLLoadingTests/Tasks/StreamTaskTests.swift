// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

@Suite(.timeLimit(.minutes(4)))
struct StreamTaskTests {
    // MARK: Bytes

    @Test("written bytes are echoed", arguments: [false, true])
    func writtenBytesAreEchoed(isSecure: Bool) async throws {
        try await withStream(secure: isSecure) { _, task, peer in
            #expect(task.isSecure == isSecure)
            async let echo: Void = peer.echo()
            try await task.write("hello")
            try await expect({ try await task.text(atLeast: 5, atMost: 5) }, "hello")
            try await task.write("again")
            try await task.closeWrite()
            let (rest, isEnd) = try await task.read(atLeast: 100)
            #expect(rest == Data("again".utf8) && isEnd)
            let (nothing, isStillEnd) = try await task.read()
            #expect(nothing.isEmpty && isStillEnd)
            try await echo
            #expect(await task.ended() == nil)
            #expect("\(task)".hasPrefix("stream completed 10/? tcp://stream.example:"))
            #expect(task.snapshot.sent == 10)
        }
    }

    @Test("a read has a minimum and a maximum", arguments: [false, true])
    func aReadHasALeastAndAMost(isSecure: Bool) async throws {
        try await withStream(secure: isSecure) { rig, task, peer in
            try await expect({ try await task.read(atLeast: 0).0.count }, 0)
            try await peer.send("abc")
            let four = Task { try await task.text(atLeast: 4, atMost: 4) }
            try await rig.clock.untilWaiting()
            try await peer.send("defghij")
            try await expect({ try await four.value }, "abcd")
            try await expect({ try await task.text(atLeast: 2, atMost: 0) }, "ef")
            // Returns only the available bytes, and at once.
            try await expect({ try await task.text(atLeast: 0, atMost: 3) }, "ghi")
            peer.finish()
            let (last, isEnd) = try await task.read(atLeast: 5, atMost: 10)
            #expect(last == Data("j".utf8) && isEnd)
            #expect(task.snapshot.received == 10)
        }
    }

    @Test("a stream is used by its two sequences", arguments: [false, true])
    func theWholePairOfSequences(isSecure: Bool) async throws {
        try await withStream(secure: isSecure) { _, task, peer in
            async let echo: Void = peer.echo()
            let output = task.output
            async let written: Void = {
                for word in ["one ", "two ", "three"] { try await output.write([UInt8](word.utf8)) }
                try await output.close()
            }()
            var all = Data()
            for try await chunk in task.input { all.append(chunk) }
            #expect(all == Data("one two three".utf8))
            try await written
            try await echo
            #expect(await task.ended() == nil)
        }
    }

    @Test("both directions work at the same time", arguments: [false, true])
    func bothDirectionsAtOnce(isSecure: Bool) async throws {
        try await withStream(secure: isSecure) { _, task, peer in
            let up = pattern(16 << 20, 1)
            let down = pattern(16 << 20, 2)
            async let sent: Void = {
                try await task.write(up)
                try await task.closeWrite()
            }()
            async let theirs: Void = {
                try await peer.send(down)
                peer.finish()
            }()
            async let arrived = peer.receive()
            var received: [UInt8] = []
            for try await chunk in task.input { chunk.withUnsafeBytes { received.append(contentsOf: $0) } }
            #expect(received == down)
            try await sent
            try await theirs
            try await #expect(arrived == up)
            #expect(await task.ended() == nil)
        }
    }

    @Test("nothing is read before a read is requested") func nothingIsReadBeforeAReadIsRequested() async throws {
        try await withStream { _, task, peer in
            try await peer.send("abcdef")
            try await expect({ try await task.text(atLeast: 2, atMost: 2) }, "ab")
            #expect(task.snapshot.received == 2)
        }
    }

    // MARK: One reader, one writer

    @Test("a second concurrent reader or writer gets an error") func aSecondReaderOrWriterIsToldSo() async throws {
        try await withStream { rig, task, peer in
            let first = Task { try await task.text() }
            try await rig.clock.untilWaiting()
            await expectFailure(.streamBusy, .local, .receiving) { try await task.read() }
            await expectFailure(.streamBusy, .local) { try await task.startSecureConnection() }
            var iterator = task.input.makeAsyncIterator()
            await expectFailure(.streamBusy) { try await iterator.next() }
            async let written: Void = task.write(Data(count: 32 << 20))
            try await rig.clock.untilWaiting(2)
            await expectFailure(.streamBusy, .local, .sending) { try await task.write("x") }
            await expectFailure(.streamBusy) { try await task.closeWrite() }
            try await peer.send("x")
            try await expect({ try await first.value }, "x")
            async let taken = peer.receive(32 << 20).count
            try await written
            try await #expect(taken == 32 << 20)
        }
    }

    // MARK: Half closes

    @Test("this side closes its direction", arguments: [false, true])
    func ourHalfIsClosed(isSecure: Bool) async throws {
        try await withStream(secure: isSecure) { _, task, peer in
            try await task.write("last")
            try await task.closeWrite()
            try await task.closeWrite()
            try await expect({ try await peer.text() }, "last")
            await expectFailure(.streamClosed, .local, .sending) { try await task.write("x") }
            try await peer.send("answer")
            try await expect({ try await task.text(atLeast: 6) }, "answer")
            peer.close()
            try await expect({ try await task.text() }, "")
            #expect(await task.ended() == nil)
        }
    }

    @Test("the peer closes its direction", arguments: [false, true])
    func theirHalfIsClosed(isSecure: Bool) async throws {
        try await withStream(secure: isSecure) { _, task, peer in
            peer.finish()
            var iterator = task.input.makeAsyncIterator()
            try await expect({ try await iterator.next() == nil }, true)
            try await task.write("still here")
            try await expect({ try await peer.text(10) }, "still here")
            try await task.closeWrite()
            #expect(await task.ended() == nil)
            try await expect({ try await peer.text() }, "")
        }
    }

    @Test("reading is closed while a reader waits", arguments: [false, true])
    func readingIsClosedUnderAReader(isSecure: Bool) async throws {
        try await withStream(secure: isSecure) { rig, task, peer in
            async let reading = failure(.streamClosed, .local, .receiving) { try await task.read() }
            try await rig.clock.untilWaiting()
            task.closeRead()
            #expect(await reading != nil)
            await expectFailure(.streamClosed) { try await task.read() }
            try await task.write("one way")
            try await task.closeWrite()
            #expect(await task.ended() == nil)
            try await expect({ try await peer.text() }, "one way")
        }
    }

    // MARK: Suspension

    @Test("a suspended stream moves no bytes") func aSuspendedStreamMovesNoBytes() async throws {
        let rig = try StreamRig { configuration in configuration.timeouts.idle = .seconds(10) }
        let task = rig.task()
        let early = Task { try await task.text() }
        #expect("\(task.snapshot)" == "suspended 0/?")
        task.resume()
        let peer = try await rig.accept()
        try await rig.clock.untilWaiting()
        task.suspend()
        try await peer.send("x")
        rig.clock.advance(by: .seconds(3600))
        let timers = rig.clock.time.scheduled
        async let late = failure(.streamCallTimeout, .remote, .sending) {
            try await task.write(Data("y".utf8), timeout: .seconds(1))
        }
        try await rig.clock.time.eventuallyTimers { $0 != timers }
        rig.clock.advance(by: .seconds(1))
        #expect(await late != nil)
        #expect(task.snapshot.received == 0 && task.snapshot.sent == 0)
        task.resume()
        try await expect({ try await early.value }, "x")
        try await task.write("y")
        try await expect({ try await peer.text(1) }, "y")
        task.cancel()
        peer.close()
        await rig.finish()
    }

    // MARK: Scripts

    /// TLS is not spoken with a script, also where it would begin in mid-stream.
    @Test("a script may take the place of a peer") func aScriptStandsInForAPeer() async throws {
        let peer = ScriptedPeer([
            .expect("STARTTLS\r\n"), .give("220 ready\r\n"), .expect("secret"), .give("ok"), .end,
        ])
        var configuration = Configuration.ephemeral
        configuration.connect(to: peer)
        let task = Session(configuration).streamTask(host: "nowhere.example", port: 25).resumed()
        try await task.write("STARTTLS\r\n")
        try await expect({ try await task.text(atLeast: 11, atMost: 11) }, "220 ready\r\n")
        try await task.startSecureConnection()
        #expect(task.isSecure)
        try await task.write("secret")
        let (answer, isEnd) = try await task.read(atLeast: 3)
        #expect(answer == Data("ok".utf8) && isEnd)
        try await task.closeWrite()
        #expect(await task.ended() == nil)
        #expect(peer.written() == Array("STARTTLS\r\nsecret".utf8))
    }

    // MARK: Adoption

    @Test("a connection in use is taken over") func aConnectionInUseIsTakenOver() async throws {
        let rig = try StreamRig()
        let socket = try await SocketTransport.connect(to: rig.listener.address, StopToken())
        let peer = try await rig.accept()
        let received = [UInt8]("already ".utf8).withUnsafeBytes { Chunk(copying: $0) }
        let origin = try Origin(scheme: "http", host: Origin.Host(StreamRig.host))
        let connection = SurrenderedConnection(transport: socket, received: received, origin: origin)
        let task = StreamTask(
            StreamDriver(rig.session.core, origin, isSecure: false, adopting: connection), rig.session)
        task.resume()
        try await peer.send("here")
        try await expect({ try await task.text(atLeast: 3, atMost: 3) }, "alr")
        try await expect({ try await task.text(atLeast: 9) }, "eady here")
        try await task.write("x")
        try await expect({ try await peer.text(1) }, "x")
        task.cancel()
        #expect(await task.ended()?.reason == .cancelled)
        try await expect({ try await peer.text() }, "")
        peer.close()
        await rig.finish()
    }
}
