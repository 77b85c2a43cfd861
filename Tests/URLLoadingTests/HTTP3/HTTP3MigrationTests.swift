// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Testing
@testable import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// When a connection moves to another path, as a value; and how, without sockets.
@Suite(.timeLimit(.minutes(4)))
struct HTTP3MigrationTests {
    private static let mebibyte = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }

    // MARK: When

    private static let second: Int64 = 1_000_000_000

    private static func settled() -> HTTP3Migration {
        var migration = HTTP3Migration(changeCount: 0)
        migration.confirmed()
        return migration
    }

    @Test("A change of the networks is looked at once, and not before the handshake is confirmed") func news() {
        var migration = HTTP3Migration(changeCount: 3)
        #expect(migration.look(.init(changeCount: 4), now: 0) == nil)
        #expect(migration.look(.init(isStranded: true, changeCount: 4), now: 0) == nil)
        migration.confirmed()
        #expect(migration.look(.init(changeCount: 4), now: 0) == .beside)
        #expect(migration.look(.init(changeCount: 4), now: Self.second) == nil)
        #expect(migration.look(.init(changeCount: 5), now: Self.second) == .beside)
    }

    @Test(
        "An address without a way and a silent server are looked at again and again, with pauses",
        arguments: [true, false])
    func lost(isStranded: Bool) {
        var migration = Self.settled()
        let signs = HTTP3Migration.Signs(isStranded: isStranded, isSilent: !isStranded)
        #expect(migration.look(signs, now: 0) == .instead)
        #expect(migration.look(signs, now: 1_000_000) == nil)
        #expect(migration.look(signs, now: Self.second) == .instead)
        #expect(migration.look(.init(), now: 2 * Self.second) == nil)
    }

    @Test("A path is left after the answer on another one, or at once if it is of no use") func phases() {
        var migration = Self.settled()
        let number = migration.nextNumber()
        migration.began(number, .beside)
        #expect(migration.path == 0 && migration.asked == number)
        #expect(migration.look(.init(isStranded: true, changeCount: 1), now: 0) == nil)
        migration.answered(on: number)
        #expect(migration.path == number && migration.asked == nil)
        // What was not looked at meanwhile is looked at now.
        #expect(migration.look(.init(changeCount: 1), now: 0) == .beside)

        let other = migration.nextNumber()
        #expect(other != number)
        migration.began(other, .beside)
        let isLost = migration.failed(other)
        #expect(!isLost)
        #expect(migration.path == number && migration.phase == .settled)

        let third = migration.nextNumber()
        migration.began(third, .instead)
        #expect(migration.path == third)
        let isLostNow = migration.failed(third)
        #expect(isLostNow && migration.path == third && migration.phase == .settled)
    }

    @Test("A server that wants its clients to stay is not asked again") func bound() {
        var migration = Self.settled()
        migration.forbidden()
        #expect(migration.look(.init(isStranded: true, isSilent: true, changeCount: 9), now: Self.second) == nil)
    }

    @Test("A connection may use the networks that all of its loads may use") func access() {
        var access = NetworkAccess()
        access.restrict(to: NetworkAccess(allowsCellular: false))
        access.restrict(to: NetworkAccess(allowsConstrained: false))
        access.restrict(to: NetworkAccess())
        #expect(!access.allowsCellular && access.allowsExpensive && !access.allowsConstrained)
    }

    // MARK: How

    private static func network(_ seed: UInt64, loss: Double) -> DatagramFaults {
        var network = DatagramFaults(seed: seed)
        (network.loss, network.reordering, network.delay) = (loss, loss, .milliseconds(2))
        return network
    }

    private func confirm(_ wire: HTTP3Wire) throws {
        try wire.connect()
        #expect(try wire.run { $0.events.contains(.confirmed) })
    }

    @Test(
        "A connection moves in the middle of two bodies, whatever is lost", arguments: [true, false], [0, 0.05])
    func moves(isImmediate: Bool, loss: Double) throws {
        let wire = try HTTP3Wire { HTTP3Answer(body: $0.body) }
        (wire.up, wire.down) = (Self.network(1, loss: loss), Self.network(2, loss: loss))
        try confirm(wire)
        let stream = try wire.submit("POST", hasBody: true)
        let half = Self.mebibyte.count / 2
        Self.mebibyte[..<half].withUnsafeBytes { wire.client.send($0, on: stream) }
        #expect(try wire.run(most: 2_000_000) { $0.client.queued(on: stream) < half / 2 })
        if isImmediate { wire.dead = [0] }
        #expect(wire.client.migrate(to: 1, isImmediate: isImmediate, now: wire.now) == .begun)
        try wire.send(Array(Self.mebibyte[half...]), on: stream, most: 2_000_000)
        // The other way while the response comes.
        #expect(try wire.run(most: 2_000_000) { $0.body[stream]?.count ?? 0 > half })
        #expect(try wire.run { $0.events.contains(.moved(1)) && $0.server.moves > 0 })
        if isImmediate { wire.dead = [0, 1] }
        #expect(wire.client.migrate(to: 2, isImmediate: isImmediate, now: wire.now) == .begun)
        #expect(try wire.finish(stream, most: 2_000_000), "\(String(describing: wire.end))")
        #expect(wire.body[stream] == Self.mebibyte)
        #expect(wire.end == nil && wire.server.end == nil)
        let after = try wire.submit("POST", hasBody: true)
        try wire.send([1, 2], on: after)
        #expect(try wire.finish(after))
        #expect(try wire.run { $0.events.contains(.moved(2)) })
    }

    @Test("A connection does not move before the handshake is confirmed") func early() throws {
        let wire = try HTTP3Wire()
        #expect(wire.client.migrate(to: 1, isImmediate: true, now: wire.now) == .tooEarly)
        #expect(try wire.run { $0.events.contains(.ready) })
        if !wire.events.contains(.confirmed) {
            #expect(wire.client.migrate(to: 1, isImmediate: true, now: wire.now) == .tooEarly)
        }
        #expect(try wire.finish(try wire.submit()))
    }

    @Test("A server that forbids it is not left", arguments: [true, false]) func forbidden(isImmediate: Bool) throws {
        var limits = QUICLimits.forServers
        limits.forbidsMigration = true
        let wire = try HTTP3Wire(server: limits)
        try confirm(wire)
        #expect(wire.client.migrate(to: 1, isImmediate: isImmediate, now: wire.now) == .forbidden)
        #expect(try wire.finish(try wire.submit()))
    }

    @Test("A path that only the client has left ends by the idle timeout") func deadPath() throws {
        var limits = QUICLimits()
        limits.idleTimeout = 10 * Self.second
        let wire = try HTTP3Wire(quic: limits) { _ in HTTP3Answer(body: Self.mebibyte) }
        try confirm(wire)
        let stream = try wire.submit()
        #expect(try wire.run { $0.body[stream]?.count ?? 0 > 100_000 })
        wire.dead = [0, 1]
        #expect(wire.client.migrate(to: 1, isImmediate: true, now: wire.now) == .begun)
        let start = wire.now
        #expect(try wire.run { $0.end != nil })
        #expect(wire.end == .idle && wire.events.contains(.pathFailed(1)))
        #expect(wire.now - start < 20 * Self.second)
    }

    @Test("A path without an answer is left again, while the present one works") func unanswered() throws {
        let wire = try HTTP3Wire { HTTP3Answer(body: $0.body) }
        try confirm(wire)
        wire.dead = [1]
        #expect(wire.client.migrate(to: 1, isImmediate: false, now: wire.now) == .begun)
        let stream = try wire.submit("POST", hasBody: true)
        try wire.send(Self.mebibyte, on: stream, most: 2_000_000)
        #expect(try wire.finish(stream, most: 2_000_000))
        #expect(wire.body[stream] == Self.mebibyte)
        #expect(try wire.run { $0.events.contains(.pathFailed(1)) })
        #expect(wire.end == nil)
    }

    @Test("Without an unused connection id of the server a connection stays") func connectionIDs() throws {
        let wire = try HTTP3Wire()
        try confirm(wire)
        try wire.run(within: Self.second)
        wire.dead = Set(0...9)
        var answers: [QUICMigration] = []
        for path in UInt32(1)...9 {
            answers.append(wire.client.migrate(to: path, isImmediate: true, now: wire.now))
        }
        #expect(answers.first == .begun && answers.last == .noConnectionID, "\(answers)")
    }

    @Test("A server sees a client at another address, and the bodies go on", arguments: [0, 0.05])
    func rebound(loss: Double) throws {
        let wire = try HTTP3Wire { HTTP3Answer(body: $0.body) }
        (wire.up, wire.down) = (Self.network(3, loss: loss), Self.network(4, loss: loss))
        try confirm(wire)
        let stream = try wire.submit("POST", hasBody: true)
        let half = Self.mebibyte.count / 2
        Self.mebibyte[..<half].withUnsafeBytes { wire.client.send($0, on: stream) }
        #expect(try wire.run(most: 2_000_000) { $0.client.queued(on: stream) < half / 2 })
        wire.shift = 1
        try wire.send(Array(Self.mebibyte[half...]), on: stream, most: 2_000_000)
        #expect(try wire.run(most: 2_000_000) { $0.body[stream]?.count ?? 0 > half })
        wire.shift = 2
        #expect(try wire.finish(stream, most: 2_000_000), "\(String(describing: wire.end))")
        #expect(wire.body[stream] == Self.mebibyte)
        #expect(try wire.run { $0.server.moves > 0 })
        // The client has stayed where it was.
        #expect(!wire.events.contains { if case .moved = $0 { true } else { false } })
    }

    @Test("A server is silent once three probe time-outs have passed without a packet") func silence() throws {
        let wire = try HTTP3Wire()
        try confirm(wire)
        #expect(try wire.finish(try wire.submit()))
        try wire.run(within: Self.second)
        // Nothing is on its way.
        #expect(!wire.client.isPeerSilent(now: wire.now + 10 * Self.second))
        wire.dead = [0]
        _ = try wire.submit()
        #expect(!wire.client.isPeerSilent(now: wire.now))
        #expect(try wire.run { $0.client.isPeerSilent(now: $0.now) })
        wire.dead = []
        #expect(try wire.run { !$0.client.isPeerSilent(now: $0.now) })
        #expect(wire.end == nil)
    }

    @Test("Where answers take long, three seconds without a packet are silence") func slowSilence() throws {
        let wire = try HTTP3Wire()
        (wire.up.delay, wire.down.delay) = (.milliseconds(900), .milliseconds(900))
        try confirm(wire)
        #expect(try wire.finish(try wire.submit()))
        try wire.run(within: 3 * Self.second)
        wire.dead = [0]
        _ = try wire.submit()
        let start = wire.now
        #expect(try wire.run { $0.client.isPeerSilent(now: $0.now) })
        // Three probe time-outs would take half a minute. The clock goes on in steps of the connection's deadlines.
        #expect((2 * Self.second...12 * Self.second).contains(wire.now - start), "\(wire.now - start)")
    }
}

#endif
