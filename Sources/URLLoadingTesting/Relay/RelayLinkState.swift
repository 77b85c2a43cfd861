// SPDX-License-Identifier: Apache-2.0

// One direction of a relayed connection, as a value: how its bytes are cut into segments, and when each is delivered.
// It holds numbers of bytes and no bytes; `RelayConnection` acts on it.
//
// Segments are cut when they are delivered and not when they are received. Their boundaries and their jitter depend on
// the seed and the offset in the stream alone, their moments on the time at which their bytes were received. So changed
// conditions hold for everything that was not delivered, and the schedule takes no memory.

struct RelayLinkState: Sendable {
    enum Action: Equatable, Sendable {
        /// Deliver so many bytes now, at least one; never more than one segment, nor more than one `receive` added.
        case deliver(Int)
        /// End the direction now.
        case end(NetworkConditions.Cut)
        /// Nothing is due before this moment.
        case wait(until: Int64)
        /// Nothing is due before more is received or the conditions change.
        case idle
    }

    private struct Arrival: Sendable {
        var count: Int
        let moment: Int64
        let round: Int
    }
    /// The part of the stream that was received and not delivered, oldest first. Elements before `first` are gone.
    private var arrivals: [Arrival] = []
    private var first = 0
    private var senderEnd: (cut: NetworkConditions.Cut, moment: Int64)?

    /// The moment at which the connection was accepted.
    private let accepted: Int64
    /// The earliest moment at which the sender's bytes can have been sent, because of the connect's round trip.
    private let opening: Int64
    private var sizes: SeededGenerator
    private var jitters: SeededGenerator

    /// The end of the current segment, as an offset in the stream.
    private var segmentEnd: Int64 = 0
    /// The part of the jitter that the current segment takes, from 0 to 1.
    private var share = 0.0
    /// The moment at which the last delivered byte was sent at the link's rate.
    private var sent = Int64.min
    /// The planned moment of the last delivery.
    private var last = Int64.min

    /// The number of bytes delivered.
    private(set) var delivered: Int64 = 0
    /// The number of bytes received and not delivered.
    private(set) var queued = 0
    /// Whether the end was delivered. What is received afterwards is dropped.
    private(set) var isOver = false

    /// Creates the state of a direction of connection `number`, accepted at a moment under these conditions.
    init(_ direction: NetworkConditions.Direction, _ conditions: NetworkConditions, number: Int, accepted: Int64) {
        self.accepted = accepted
        // The client knows of the connection after a round trip, the server half a round trip later.
        let there = conditions.toServer.delay.boundedNanoseconds
        let back = conditions.toClient.delay.boundedNanoseconds
        opening = accepted + there + back + (direction == .toClient ? there : 0)
        func generator(_ purpose: Int) -> SeededGenerator {
            let stream = UInt64(number) << 2 | UInt64(direction == .toServer ? 0 : 2) | UInt64(purpose)
            return SeededGenerator(seed: conditions.seed &+ stream &* 0xD1B5_4A32_D192_ED03)
        }
        sizes = generator(0)
        jitters = generator(1)
    }

    // MARK: The sender

    /// The flight of the next byte to deliver; `nil` if there is none.
    var nextRound: Int? { first < arrivals.count ? arrivals[first].round : nil }

    /// The number of bytes that may be received now.
    func room(_ link: NetworkConditions.Link) -> Int { max(0, max(1, link.queueLimit) - queued) }

    /// Adds bytes that the sender's flight `round` consists of.
    mutating func receive(_ count: Int, round: Int, at now: Int64) {
        guard !isOver, count > 0 else { return }
        arrivals.append(Arrival(count: count, moment: max(now, opening), round: round))
        queued += count
    }

    /// Notes that the sender sends no more.
    mutating func senderEnded(by cut: NetworkConditions.Cut, at now: Int64) {
        guard senderEnd == nil || cut == .reset else { return }
        senderEnd = (cut, max(now, opening))
    }

    // MARK: The receiver

    /// Returns what is due at `now`.
    mutating func next(_ link: NetworkConditions.Link, at now: Int64) -> Action {
        guard !isOver else { return .idle }
        if let cut = link.cut, delivered >= cut.byteCount {
            // The last byte before the cut has been delivered, or there was none.
            let due = delivered == 0 ? opening + link.delay.boundedNanoseconds : now
            return perform(.end(cut.cut), due, link, now)
        }
        guard first < arrivals.count else {
            guard let senderEnd else { return .idle }
            beginSegment(at: delivered, of: 0, link)
            return perform(.end(senderEnd.cut), due(senderEnd.moment, 0, link), link, now)
        }
        let arrival = arrivals[first]
        beginSegment(at: delivered, of: arrival.count, link)
        var count = min(arrival.count, Int(segmentEnd - delivered))
        if let cut = link.cut { count = min(count, Int(clamping: cut.byteCount - delivered)) }
        if case .after(let bytes) = link.silence { count = min(count, Int(clamping: bytes - delivered)) }
        guard count > 0 else { return .idle }
        return perform(.deliver(count), due(arrival.moment, count, link), link, now)
    }

    private func perform(_ action: Action, _ due: Int64, _ link: NetworkConditions.Link, _ now: Int64) -> Action {
        switch link.silence {
        case .after(let bytes) where delivered >= bytes: .idle
        case .from(let time) where max(due, now) >= accepted + time.boundedNanoseconds: .idle
        default: due <= now ? action : .wait(until: due)
        }
    }

    /// Chooses the size and the jitter of the segment that begins at `offset`, unless it is chosen. The end of the
    /// stream counts as a segment without bytes.
    private mutating func beginSegment(at offset: Int64, of count: Int, _ link: NetworkConditions.Link) {
        guard segmentEnd <= offset else { return }
        segmentEnd = offset + Int64(max(1, link.segmentSize.map { size(in: $0) } ?? count))
        share = Double.random(in: 0...1, using: &jitters)
    }

    private mutating func size(in range: ClosedRange<Int>) -> Int {
        // Larger segments than the relay ever receives change nothing, and sums of offsets must not overflow.
        return Int.random(in: range.clamped(to: 1...(1 << 40)), using: &sizes)
    }

    /// Returns the moment at which the last of `count` bytes is sent at the link's rate.
    private func sent(_ moment: Int64, _ count: Int, _ link: NetworkConditions.Link) -> Int64 {
        guard let rate = link.rate else { return moment }
        return max(moment, sent) + Int64(count) * 1_000_000_000 / Int64(max(1, rate))
    }

    private func due(_ moment: Int64, _ count: Int, _ link: NetworkConditions.Link) -> Int64 {
        let jitter = Int64(Double(link.jitter.boundedNanoseconds) * share)
        return max(last, sent(moment, count, link) + link.delay.boundedNanoseconds + jitter)
    }

    /// Notes that the first `count` bytes of a delivery were delivered.
    mutating func noteDelivered(_ count: Int, _ link: NetworkConditions.Link) {
        guard count > 0, first < arrivals.count else { return }
        let moment = arrivals[first].moment
        last = due(moment, count, link)
        sent = sent(moment, count, link)
        delivered += Int64(count)
        queued -= count
        arrivals[first].count -= count
        guard arrivals[first].count == 0 else { return }
        first += 1
        // Moving the rest costs as much as the elements that it frees.
        if first * 2 >= arrivals.count {
            arrivals.removeFirst(first)
            first = 0
        }
    }

    /// Notes that the end was delivered; drops what is queued.
    mutating func noteEnd() {
        isOver = true
        arrivals = []
        first = 0
        queued = 0
    }
}

extension Duration {
    /// At most some 18 years, so that sums with moments do not overflow.
    fileprivate var boundedNanoseconds: Int64 { min(inNanoseconds, .max / 16) }
}
