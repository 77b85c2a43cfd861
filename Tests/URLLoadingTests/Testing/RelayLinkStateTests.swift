// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingTesting

/// The schedule of a relayed direction, without sockets: when its bytes are delivered, and how they are cut.
struct RelayLinkStateTests {
    private typealias Link = NetworkConditions.Link

    /// One thing that happened, in milliseconds since the connection was accepted.
    private struct Event: Equatable, CustomStringConvertible {
        let time: Double
        let what: What
        enum What: Equatable {
            case bytes(Int)
            case end(NetworkConditions.Cut)
        }
        var description: String { "\(time): \(what)" }

        static func bytes(_ count: Int, at time: Double) -> Event { Event(time: time, what: .bytes(count)) }
        static func end(_ cut: NetworkConditions.Cut, at time: Double) -> Event { Event(time: time, what: .end(cut)) }
    }

    /// The beginning of a connection, which is not 0 in general.
    private static let accepted: Int64 = 7_000_000_000

    /// Runs one direction with pieces that a sender has sent at some milliseconds, to the moment at which nothing more
    /// is due. The other direction has no delay, so the connect takes one delay.
    private func run(
        _ link: Link, _ pieces: [(time: Double, count: Int)], end: (time: Double, cut: NetworkConditions.Cut)? = nil,
        seed: UInt64 = 0, number: Int = 1, direction: NetworkConditions.Direction = .toServer
    ) -> [Event] {
        var conditions = NetworkConditions(seed: seed)
        conditions[direction] = link
        var state = RelayLinkState(direction, conditions, number: number, accepted: Self.accepted)
        var events: [Event] = []
        func moment(_ time: Double) -> Int64 { Self.accepted + Int64(time * 1_000_000) }
        func advance(from start: Int64, to limit: Int64) {
            var now = start
            while now <= limit {
                let time = Double(now - Self.accepted) / 1_000_000
                switch state.next(link, at: now) {
                case .idle: return
                case .wait(let next):
                    #expect(next > now)
                    now = next
                case .deliver(let count):
                    events.append(.bytes(count, at: time))
                    state.noteDelivered(count, link)
                case .end(let cut):
                    events.append(.end(cut, at: time))
                    state.noteEnd()
                }
            }
        }
        var now = Self.accepted
        for piece in pieces {
            advance(from: now, to: moment(piece.time) - 1)
            now = max(now, moment(piece.time))
            state.receive(piece.count, round: 1, at: now)
        }
        if let end {
            advance(from: now, to: moment(end.time) - 1)
            now = moment(end.time)
            state.senderEnded(by: end.cut, at: now)
        }
        advance(from: now, to: .max - 1)
        return events
    }

    @Test("a delay holds back every piece by the same time, and the first by the connect's round trip as well")
    func delay() {
        let link = Link(delay: .milliseconds(10))
        // The connect is done at 10 ms; what was sent before counts as sent then.
        #expect(
            run(link, [(0, 100), (4, 50), (30, 7)]) == [.bytes(100, at: 20), .bytes(50, at: 20), .bytes(7, at: 40)])
        #expect(run(link, [(30, 7)], end: (35, .finish)) == [.bytes(7, at: 40), .end(.finish, at: 45)])
        #expect(run(link, [], end: (35, .reset)) == [.end(.reset, at: 45)])
    }

    @Test("what a server sends first arrives two round trips after the connect")
    func greeting() {
        let conditions = NetworkConditions(delay: .milliseconds(10))
        var state = RelayLinkState(.toClient, conditions, number: 1, accepted: Self.accepted)
        state.receive(3, round: 1, at: Self.accepted)
        let wait = state.next(conditions.toClient, at: Self.accepted)
        #expect(wait == .wait(until: Self.accepted + 40_000_000))
    }

    @Test("a rate spaces segments by the time that their bytes take")
    func rate() {
        let link = Link(delay: .milliseconds(5), rate: 1_000, segmentSize: 10...10)
        #expect(
            run(link, [(10, 25), (100, 10)])
                == [.bytes(10, at: 25), .bytes(10, at: 35), .bytes(5, at: 40), .bytes(5, at: 110), .bytes(5, at: 115)])
        // Without segments a piece is delivered as a whole.
        #expect(run(Link(rate: 1_000), [(10, 25)]) == [.bytes(25, at: 35)])
    }

    @Test("jitter delays a segment by at most its bound, and never lets it overtake another", arguments: 1...20)
    func jitter(seed: UInt64) {
        let link = Link(delay: .milliseconds(10), jitter: .milliseconds(30), segmentSize: 1...1)
        let events = run(link, [(10, 40), (50, 1)], end: (60, .finish), seed: seed)
        #expect(events.count == 42)
        #expect(zip(events, events.dropFirst()).allSatisfy { $0.time <= $1.time }, "\(events)")
        #expect(events[..<40].allSatisfy { (20...50).contains($0.time) } && (60...90).contains(events[40].time))
        #expect(Set(events.map(\.time)).count > 3, "\(events)")
    }

    @Test("the same seed makes the same choices; another seed, connection or direction makes others")
    func seeds() {
        let link = Link(jitter: .milliseconds(30), segmentSize: 1...100)
        let pieces = [(time: 0.0, count: 5_000)]
        let first = run(link, pieces, seed: 3)
        #expect(run(link, pieces, seed: 3) == first)
        #expect(run(link, pieces, seed: 4) != first)
        #expect(run(link, pieces, seed: 3, number: 2) != first)
        #expect(run(link, pieces, seed: 3, direction: .toClient) != first)
    }

    @Test("segments end at the same bytes, in whatever pieces they are sent")
    func boundaries() {
        func ends(_ counts: [Int]) -> [Int] {
            let pieces = counts.enumerated().map { (time: Double($0.offset), count: $0.element) }
            var (total, ends) = (0, [Int]())
            for case .bytes(let count) in run(Link(segmentSize: 1...100), pieces, seed: 9).map(\.what) {
                total += count
                ends.append(total)
            }
            return ends
        }
        let whole = ends([2_000])
        #expect(whole.last == 2_000 && whole.count > 20)
        // Parts of a segment are delivered as they come, so there are more ends, and none is missing.
        let pieces = ends([Int](repeating: 7, count: 285) + [5])
        #expect(Set(whole).isSubset(of: pieces))
        #expect(Set(pieces).subtracting(whole).allSatisfy { $0 % 7 == 0 })
    }

    @Test("a link falls silent after a byte, or from a moment on, and then delivers no end either")
    func silence() {
        let after = Link(silence: .after(bytes: 30))
        #expect(run(after, [(0, 20), (1, 20), (2, 20)], end: (3, .reset)) == [.bytes(20, at: 0), .bytes(10, at: 1)])
        #expect(run(Link(silence: .after(bytes: 0)), [(0, 20)], end: (3, .finish)).isEmpty)
        let from = Link(delay: .milliseconds(10), silence: .from(.milliseconds(30)))
        #expect(run(from, [(19, 1), (20, 2)], end: (21, .finish)) == [.bytes(1, at: 29)])
    }

    @Test(
        "a cut ends the direction behind its byte, whatever follows", arguments: [NetworkConditions.Cut.finish, .reset])
    func cut(by cut: NetworkConditions.Cut) {
        let link = Link(cut: .init(cut, after: 30))
        let expected: [Event] = [.bytes(20, at: 0), .bytes(10, at: 1), .end(cut, at: 1)]
        #expect(run(link, [(0, 20), (1, 20), (2, 20)]) == expected)
        #expect(run(link, [(0, 30)], end: (5, .finish)) == [.bytes(30, at: 0), .end(cut, at: 0)])
        #expect(run(link, [(0, 29)], end: (5, .finish)) == [.bytes(29, at: 0), .end(.finish, at: 5)])
        // Without a byte, the direction ends when its first byte could have arrived.
        let first = Link(delay: .milliseconds(10), cut: .init(cut, after: 0))
        #expect(run(first, []) == [.end(cut, at: 20)] && run(first, [(0, 9)]) == [.end(cut, at: 20)])
    }

    @Test("changed conditions hold for what was not delivered")
    func changes() {
        var conditions = NetworkConditions(toServer: Link(delay: .seconds(60)), toClient: Link())
        var state = RelayLinkState(.toServer, conditions, number: 1, accepted: 0)
        let second: Int64 = 1_000_000_000
        state.receive(10, round: 1, at: 0)
        state.receive(10, round: 1, at: 70 * second)
        var action = state.next(conditions.toServer, at: 70 * second)
        #expect(action == .wait(until: 120 * second))
        conditions.toServer = Link(delay: .seconds(15), segmentSize: 4...4)
        action = state.next(conditions.toServer, at: 80 * second)
        // The first segment was chosen before; its end stays.
        #expect(action == .deliver(10))
        state.noteDelivered(10, conditions.toServer)
        action = state.next(conditions.toServer, at: 80 * second)
        #expect(action == .wait(until: 85 * second))
        action = state.next(conditions.toServer, at: 85 * second)
        #expect(action == .deliver(4))
    }

    @Test("the queue has room up to its limit, and none is taken after the end")
    func room() {
        var state = RelayLinkState(.toServer, .none, number: 1, accepted: 0)
        let link = Link(queueLimit: 100)
        #expect(state.room(link) == 100)
        state.receive(70, round: 1, at: 0)
        #expect(state.room(link) == 30 && state.queued == 70)
        state.noteDelivered(50, link)
        #expect(state.room(link) == 80 && state.delivered == 50 && state.nextRound == 1)
        state.noteEnd()
        state.receive(10, round: 1, at: 0)
        #expect(state.room(link) == 100 && state.queued == 0 && state.nextRound == nil)
        // A lower limit than what is queued is no error.
        state = RelayLinkState(.toServer, .none, number: 1, accepted: 0)
        state.receive(70, round: 1, at: 0)
        #expect(state.room(Link(queueLimit: 10)) == 0 && state.room(Link(queueLimit: -1)) == 0)
    }

    @Test("extreme values neither overflow nor trap")
    func extremes() {
        var link = Link(
            delay: .seconds(1 << 60), jitter: .seconds(1 << 60), rate: 0, segmentSize: (-5)...Int.max,
            silence: .from(.seconds(1 << 60)), cut: .init(.finish, after: .max), queueLimit: .max)
        var state = RelayLinkState(
            .toClient, NetworkConditions(toServer: link, toClient: link), number: .max >> 2, accepted: 1)
        for _ in 0..<10 { state.receive(64 * 1024, round: 1, at: 1) }
        while case .wait = state.next(link, at: 1) { state.noteDelivered(64, link) }
        link.delay = .seconds(-1)
        link.jitter = .seconds(-1)
        state = RelayLinkState(.toClient, NetworkConditions(toServer: link, toClient: link), number: 1, accepted: 1)
        state.receive(1, round: 1, at: 1)
        let action = state.next(link, at: 1)
        #expect(action == .wait(until: 1_000_000_001))  // a byte at the least rate, one byte per second
    }
}
