// SPDX-License-Identifier: Apache-2.0

import URLLoadingTesting

/// What a network does to the datagrams of one direction, decided by a seed. A value without sockets and clock:
/// datagrams and the time in, datagrams and the time of the next out.
package struct DatagramFaults: Sendable {
    /// The shares of datagrams to which it happens, from 0 to 1.
    package var loss = 0.0
    package var doubling = 0.0
    /// A wrong bit.
    package var corruption = 0.0
    /// A part of the end is missing.
    package var cutting = 0.0
    /// Datagrams that are overtaken by those of the next `lateness` nanoseconds.
    package var reordering = 0.0
    package var lateness: Int64 = 20_000_000
    /// The nanoseconds on the way of every datagram.
    package var delay: Int64 = 0
    /// What happens to one datagram besides, by its number.
    package var single: (number: Int, fault: Single)?

    package enum Single: Sendable, Hashable, CaseIterable { case lose, double, truncate, flip }

    private var random: SeededGenerator
    private var queue: [(due: Int64, datagram: [UInt8])] = []
    /// The number of datagrams so far.
    package private(set) var count = 0
    /// The number of those that did not arrive unchanged and in order.
    package private(set) var faultCount = 0

    package init(seed: UInt64 = 0) { random = SeededGenerator(seed: seed) }

    /// Takes a datagram that was sent.
    package mutating func add(_ datagram: [UInt8], now: Int64) {
        defer { count += 1 }
        var (datagram, copies, due) = (datagram, 1, now + delay)
        if let single, single.number == count {
            faultCount += 1
            switch single.fault {
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
        if late { due += lateness }
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

    private mutating func happens(_ share: Double) -> Bool { Double.random(in: 0..<1, using: &random) < share }

    private func flip(_ datagram: inout [UInt8], at place: Int) {
        if datagram.indices.contains(place) { datagram[place] ^= 1 << (place % 8) }
    }
}
