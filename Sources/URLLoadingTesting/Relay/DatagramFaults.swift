// SPDX-License-Identifier: Apache-2.0

/// What a network does to the datagrams of one direction, decided by a seed: with equal settings, equal datagrams have
/// the same fate in every run.
///
/// ```swift
/// var network = DatagramFaults(seed: 1)
/// (network.loss, network.reordering) = (0.01, 0.01)
/// network.delay = .milliseconds(25)
/// let relay = try DatagramRelay(to: port, client: network, server: network)
/// ```
/// Several faults may happen to one datagram. A share is between 0, for none, and 1, for all; values beyond count as
/// these.
public struct DatagramFaults: Sendable {
    /// The share of datagrams that are lost; 0 by default.
    public var loss = 0.0
    /// The share of datagrams that arrive twice; 0 by default.
    public var doubling = 0.0
    /// The share of datagrams with one wrong bit; 0 by default.
    public var corruption = 0.0
    /// The share of datagrams of which a part of the end is missing, at most the whole; 0 by default.
    public var cutting = 0.0
    /// The share of datagrams that arrive later by ``lateness``, so that others overtake them; 0 by default.
    public var reordering = 0.0
    /// How much later datagrams arrive that others overtake; 20 ms by default.
    public var lateness = Duration.milliseconds(20)
    /// The time on the way of every datagram; none by default. Below 0 it counts as none.
    public var delay = Duration.zero
    /// What happens to single datagrams besides, by their number in their direction, from 0; nothing by default.
    public var singles: [Int: Fault] = [:]

    /// What happens to a single datagram.
    public enum Fault: Sendable, Hashable, CaseIterable {
        /// It does not arrive.
        case lose
        /// It arrives twice.
        case double
        /// Its second half is missing.
        case truncate
        /// A bit in its middle is wrong.
        case flip
    }

    private var random: SeededGenerator
    private var queue: [(due: Int64, datagram: [UInt8])] = []
    /// The number of datagrams so far.
    package private(set) var count = 0
    /// The number of those that did not arrive unchanged and in order.
    package private(set) var faultCount = 0

    /// Creates settings without faults.
    /// - Parameter seed: decides which datagrams the shares mean.
    public init(seed: UInt64 = 0) { random = SeededGenerator(seed: seed) }

    /// Takes a datagram that was sent, at a time in nanoseconds.
    package mutating func add(_ datagram: [UInt8], now: Int64) {
        defer { count += 1 }
        var (datagram, copies, due) = (datagram, 1, now + Self.nanoseconds(delay))
        if let fault = singles[count] {
            faultCount += 1
            switch fault {
            case .lose: copies = 0
            case .double: copies = 2
            case .truncate: datagram.removeLast(datagram.count - datagram.count / 2)
            case .flip: flip(&datagram, at: datagram.count / 2)
            }
        }
        // Each number is drawn, so that one share does not change what happens to later datagrams.
        let (lost, doubled, cut) = (happens(loss), happens(doubling), happens(cutting))
        let (corrupted, late) = (happens(corruption), happens(reordering))
        let place = Int.random(in: 0..<max(1, datagram.count), using: &random)
        if lost { copies = 0 }
        if doubled { copies *= 2 }
        if cut { datagram.removeLast(datagram.count - place) }
        if corrupted { flip(&datagram, at: place) }
        if late { due += Self.nanoseconds(lateness) }
        if lost || doubled || cut || corrupted || late { faultCount += 1 }
        for _ in 0..<copies {
            // In order among those of the same time.
            let index = queue.firstIndex { $0.due > due } ?? queue.endIndex
            queue.insert((due, datagram), at: index)
        }
    }

    /// Returns the datagrams that arrive by now.
    package mutating func arrived(now: Int64) -> [[UInt8]] {
        let count = queue.prefix { $0.due <= now }.count
        defer { queue.removeFirst(count) }
        return queue[..<count].map(\.datagram)
    }

    /// When the next datagram arrives; `nil` if none is on its way.
    package var next: Int64? { queue.first?.due }

    /// At most an hour.
    private static func nanoseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = min(max(duration, .zero), .seconds(3_600)).components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    private mutating func happens(_ share: Double) -> Bool { Double.random(in: 0..<1, using: &random) < share }

    private func flip(_ datagram: inout [UInt8], at place: Int) {
        if datagram.indices.contains(place) { datagram[place] ^= 1 << (place % 8) }
    }
}
