// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// Every wait of a stream, ended in every way, and no object left.
@Suite(.timeLimit(.minutes(4)))
struct StreamEndingTests {
    enum Wait: CaseIterable, Sendable {
        /// A task that was never resumed.
        case beginning
        case resolving, connecting, handshake
        case reading, writing, startingTLS

        /// A task that was never resumed has no running timeout.
        var strikes: [Strike] { self == .beginning ? [.caller, .cancel, .invalidation] : Strike.allCases }

        static let all = allCases.flatMap { wait in wait.strikes.map { (wait, $0) } }
    }

    /// The end of a stream; `caller` ends only the call, if the call can end without the stream.
    enum Strike: CaseIterable, Sendable {
        case caller, cancel, invalidation, idle, resource

        var reason: LoadError.Reason {
            switch self {
            case .caller, .cancel, .invalidation: .cancelled
            case .idle: .idleTimeout
            case .resource: .resourceTimeout
            }
        }
    }

    @Test("every wait of a stream can be ended", arguments: Wait.all)
    func everyWait(_ wait: Wait, _ apply: Strike) async throws { try await Self.end(wait, apply, isSecure: false) }

    @Test("every wait of a stream over TLS can be ended", arguments: [Wait.reading, .writing], Strike.allCases)
    func everyWaitOverTLS(_ wait: Wait, _ apply: Strike) async throws {
        try await Self.end(wait, apply, isSecure: true)
    }

    static func end(_ wait: Wait, _ apply: Strike, isSecure: Bool) async throws {
        let mayAnswer = Flag()
        let isAsked = Flag()
        let rig = try StreamRig { configuration in
            if apply == .idle { configuration.timeouts.idle = .seconds(10) }
            if apply == .resource { configuration.timeouts.resource = .seconds(10) }
            guard wait == .resolving else { return }
            configuration.networks.resolver = SystemResolver(threads: BlockingThreads(limit: 1)) { _ in
                isAsked.raise()
                mayAnswer.waitBlocking()
                return .success([.ipv4((127, 0, 0, 1), port: 0)])
            }
        }
        let full = try await FullHost()
        var task = rig.task(secure: isSecure || wait == .handshake)
        var peer: StreamPeer?
        switch wait {
        case .beginning: break
        case .resolving: task.resume()
        case .connecting:
            task = rig.session.streamTask(host: StreamRig.host, port: Int(full.port))
            task.resume()
        case .handshake:
            task.resume()
            peer = try await rig.accept()
        case .reading, .writing, .startingTLS: (task, peer) = try await rig.connected(secure: isSecure)
        }
        let stream = task
        let call = Task { () -> LoadError? in
            do throws(LoadError) {
                switch wait {
                case .writing: try await stream.write(Data(count: 32 << 20))
                case .startingTLS: try await stream.startSecureConnection()
                default: _ = try await stream.read()
                }
                return nil
            } catch { return error }
        }
        switch wait {
        case .beginning: break
        case .resolving:
            try await isAsked.wait()
            try await rig.clock.untilWaiting()
        default: try await rig.clock.untilWaiting()
        }
        switch apply {
        case .caller: call.cancel()
        case .cancel: stream.cancel()
        case .invalidation: rig.session.invalidateAndCancel()
        case .idle, .resource: rig.clock.advance(by: .seconds(10))
        }
        let error = await call.value
        #expect(error?.reason == apply.reason, "\(wait) \(apply): \(error?.description ?? "nothing")")
        let isOfTheCall = apply == .caller && wait != .startingTLS
        if isOfTheCall {
            // The stream is where it was.
            #expect(stream.snapshot.state.isUnfinished, "\(wait)")
            stream.cancel()
        } else {
            #expect(await stream.ended()?.phase == error?.phase)
        }
        let ended = await stream.ended()
        #expect(ended?.reason == (isOfTheCall ? .cancelled : apply.reason))
        #expect(ended?.url?.host() == StreamRig.host)
        await rig.finish()
        mayAnswer.raise()
        if let peer {
            _ = try? await peer.receive()
            peer.close()
        }
        full.close()
    }

    @Test("both directions end while a reader waits for the stream", arguments: [false, true])
    func bothDirectionsAreDoneWhileAReaderWaitsForTheStream(isSecure: Bool) async throws {
        try await withStream(secure: isSecure) { _, task, _ in
            try await task.closeWrite()
            task.suspend()
            async let refused = failure(.streamClosed) { try await task.read() }
            // Whether the call is already waiting is not observable; if not, it is refused as well.
            try await Task.sleep(for: .milliseconds(5))
            task.closeRead()
            #expect(await refused != nil)
            #expect(await task.ended() == nil)
        }
    }

    // MARK: Calls with a time of their own

    @Test("a read that times out loses no bytes", arguments: [false, true])
    func aReadThatTookTooLongLosesNothing(isSecure: Bool) async throws {
        try await withStream(secure: isSecure) { rig, task, peer in
            try await peer.send("abc")
            for _ in 1...3 {
                async let late = failure(.streamCallTimeout, .remote, .receiving) {
                    try await task.read(atLeast: 5, timeout: .seconds(3))
                }
                try await rig.clock.untilWaiting()
                rig.clock.advance(by: .seconds(3))
                let error = await late
                #expect(error?.detail == "not done within \(Duration.seconds(3))")
            }
            try await peer.send("de")
            try await expect({ try await task.text(atLeast: 5, timeout: .seconds(3)) }, "abcde")
        }
    }

    @Test("many reads use one timer") func oneTimerIsSetForManyReads() async throws {
        try await withStream { rig, task, peer in
            let before = rig.clock.time.scheduled
            for _ in 1...20 {
                let reading = Task { try await task.text(timeout: .seconds(60)) }
                try await rig.clock.untilWaiting()
                try await peer.send("x")
                try await expect({ try await reading.value }, "x")
                rig.clock.advance(by: .milliseconds(1))
            }
            // The stream's idle timer may begin meanwhile; the reads must not have timers.
            #expect(rig.clock.time.scheduled <= before + 3)
            // And the last deadline holds nevertheless.
            async let late = failure(.streamCallTimeout) { try await task.read(timeout: .seconds(60)) }
            try await rig.clock.untilWaiting()
            rig.clock.advance(by: .milliseconds(59_900))
            try await rig.clock.untilWaiting()
            rig.clock.advance(by: .milliseconds(100))
            #expect(await late != nil)
        }
    }

    @Test("a call may end before the connection is made") func aCallMayEndBeforeThereIsAConnection() async throws {
        let rig = try StreamRig()
        let task = rig.task()
        let timers = rig.clock.time.scheduled
        async let late = failure(.streamCallTimeout, .remote, .preparing) { try await task.read(timeout: .seconds(1)) }
        try await rig.clock.time.eventuallyTimers { $0 != timers }
        rig.clock.advance(by: .seconds(1))
        #expect(await late != nil)
        task.resume()
        let peer = try await rig.accept()
        try await peer.send("x")
        try await expect({ try await task.text() }, "x")
        task.cancel()
        peer.close()
        await rig.finish()
    }

    @Test("a write that is cancelled in progress is the last one", arguments: [false, true], [false, true])
    func aWriteGivenUpOnItsWayIsTheLast(isSecure: Bool, isCancelled: Bool) async throws {
        try await withStream(secure: isSecure) { rig, task, peer in
            let writing = Task {
                await failure(isCancelled ? .cancelled : .streamCallTimeout, nil, .sending) {
                    try await task.write(Data(count: 32 << 20), timeout: .seconds(3))
                }
            }
            try await rig.clock.untilWaiting()
            if isCancelled { writing.cancel() } else { rig.clock.advance(by: .seconds(3)) }
            #expect(await writing.value != nil)
            await expectFailure(.writeIncomplete, .local, .sending) { try await task.write("x") }
            await expectFailure(.writeIncomplete) { try await task.closeWrite() }
            try await peer.send("still heard")
            try await expect({ try await task.text(atLeast: 11) }, "still heard")
            task.closeRead()
            #expect(await task.ended()?.reason == .writeIncomplete)
        }
    }

    // MARK: The idle clock

    @Test("bytes in either direction keep a stream from idling") func bytesInEitherDirectionKeepAStreamAlive()
        async throws
    {
        try await withStream({ $0.timeouts.idle = .seconds(10) }) { rig, task, peer in
            let reading = Task { try await task.text() }
            for _ in 1...5 {
                try await rig.clock.untilWaiting()
                rig.clock.advance(by: .seconds(9))
                try await task.write("x")
            }
            try await peer.send("y")
            try await expect({ try await reading.value }, "y")
            // No call waits: the peer's silence does not count.
            rig.clock.advance(by: .seconds(3600))
            async let silent = failure(.idleTimeout, .remote, .receiving) { try await task.read() }
            try await rig.clock.untilWaiting()
            rig.clock.advance(by: .seconds(10))
            #expect(await silent != nil)
        }
    }

    @Test("the idle timeout ends both directions") func theIdleTimeoutEndsBothSides() async throws {
        try await withStream({ $0.timeouts.idle = .seconds(10) }) { rig, task, _ in
            async let reading = failure(.idleTimeout) { try await task.read() }
            async let writing = failure(.idleTimeout) { try await task.write(Data(count: 32 << 20)) }
            try await rig.clock.untilWaiting(2)
            rig.clock.advance(by: .seconds(10))
            let failures = await (reading, writing)
            let ended = await task.ended()
            #expect(ended?.reason == .idleTimeout)
            for error in [failures.0, failures.1, ended] {
                #expect(error?.detail == "no data for \(Duration.seconds(10))", "\(String(describing: error))")
            }
        }
    }

    // MARK: Sessions

    @Test("a session that finishes waits for its streams") func aSessionThatFinishesWaitsForItsStreams() async throws {
        try await withStream { rig, task, peer in
            let early = rig.task()
            rig.session.finishTasksAndInvalidate()
            #expect(await early.ended()?.reason == .cancelled)
            #expect(await rig.task().ended()?.reason == .sessionInvalidated)
            await expectFailure(.sessionInvalidated, .local, .preparing) { try await rig.task().read() }
            try await task.write("x")
            try await expect({ try await peer.text(1) }, "x")
            peer.close()
            try await expect({ try await task.text() }, "")
            try await task.closeWrite()
            await rig.session.invalidated()
            #expect(await task.ended() == nil)
        }
    }

    @Test("a stream without references is closed") func aStreamWithoutReferencesIsClosed() async throws {
        let rig = try StreamRig()
        func readOne() async throws -> StreamPeer {
            func input() async throws -> (StreamInput, StreamPeer) {
                let (task, peer) = try await rig.connected()
                return (task.input, peer)
            }
            let (input, peer) = try await input()
            try await peer.send("x")
            // The handle itself is gone.
            var iterator = input.makeAsyncIterator()
            let chunk = try await iterator.next()
            #expect(chunk.map { [UInt8]($0) } == [UInt8(ascii: "x")])
            return peer
        }
        let peer = try await readOne()
        await rig.finish()
        try await expect({ try await peer.text() }, "")
        peer.close()
    }

    // MARK: Failures

    @Test(
        "an invalid host or port is refused",
        arguments: [("", 80), ("a b", 80), ("host", 0), ("host", 65536), ("host", -1), ("::1%", 80), ("1.2.3", 80)])
    func whatIsNoHostWithAPortIsRefused(host: String, port: Int) async throws {
        let task = Session().streamTask(host: host, port: port)
        await expectFailure(.badURL, .local, .preparing) { try await task.read() }
        await expectFailure(.badURL) { try await task.write("x") }
        await expectFailure(.badURL) { try await task.startSecureConnection() }
        #expect(await task.ended()?.reason == .badURL)
    }

    @Test("a port without a listener refuses the connection") func aPortWithoutAListenerRefuses() async throws {
        let task = Session(.ephemeral).streamTask(host: "127.0.0.1", port: Int(try closedPort())).resumed()
        await expectFailure(.connectionRefused, .remote, .connecting) { try await task.read() }
        await expectFailure(.connectionRefused, .remote, .connecting) { try await task.write("x") }
        #expect(await task.ended()?.reason == .connectionRefused)
    }

    @Test("a reset ends both directions") func aResetEndsBothDirections() async throws {
        try await withStream { rig, task, peer in
            async let reading = failure(.connectionLost, .remote, .receiving) { try await task.read() }
            try await rig.clock.untilWaiting()
            peer.reset()
            #expect(await reading != nil)
            await expectFailure(.connectionLost) { try await task.write("x") }
            #expect(await task.ended()?.reason == .connectionLost)
        }
    }

    @Test("bytes that the peer sent before it stopped reading are received")
    func bytesThatThePeerSentBeforeItStoppedReadingAreReceived() async throws {
        try await withStream { _, task, peer in
            try await task.write("never read")
            try await peer.send("why")
            // With bytes unread a socket is closed by a reset.
            #expect(task.snapshot.sent == 10)
            try await pollerHasRun()
            peer.close()
            try await pollerHasRun()
            await expectFailure(.connectionLost, .remote, .sending) {
                for _ in 1...100 { try await task.write("more") }
            }
            #expect(task.snapshot.state.isUnfinished)
            try await expect({ try await task.text(atLeast: 3, atMost: 3) }, "why")
            task.closeRead()
            #expect(await task.ended()?.phase == .sending)
        }
    }
}

extension LoadSnapshot.State {
    /// Neither over nor about to be.
    var isUnfinished: Bool {
        switch self {
        case .running, .suspended: true
        case .canceling, .completed: false
        }
    }
}
