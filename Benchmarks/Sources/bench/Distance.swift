// SPDX-License-Identifier: Apache-2.0

/// The path between a client and a server: the delay and the rate of a relay. The relay is a process of its own, see
/// `Sources/relay`.
struct Distance: Hashable {
    /// Milliseconds one way.
    var delay: Int
    /// Bytes per second in each direction; 0 for no limit.
    var rate = 0

    /// Milliseconds.
    var roundTrip: Int { 2 * delay }

    /// The bytes that the relay holds for a direction of a connection. Without a rate it is more than any body, so that
    /// the relay never stops the sender. With a rate it is what is on its way, and a router's queue of one round trip:
    /// a longer queue would fill, and every round trip would last as long as the queue takes to empty.
    var queue: Int { rate == 0 ? 512 << 20 : max(1 << 20, rate / 1000 * (delay + roundTrip)) }

    /// The arguments of the relay to a port.
    func arguments(to port: UInt16) -> [String] { ["\(port)", "\(delay)", "\(rate)", "\(queue)"] }
}
