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

    /// The bytes that the relay holds for a direction of a connection.
    ///
    /// Without a rate it is what 1 GB/s have on their way, more than the relay passes, so the queue limits nothing. It
    /// is no larger because the relay fills the queue from a fast sender before it delivers: with 512 MiB the first
    /// byte of a large body came up to 0.3 s late. With a rate it is what is on its way and a router's queue of one
    /// round trip: a longer queue would fill, and every round trip would last as long as the queue takes to empty.
    var queue: Int { max(1 << 20, rate == 0 ? 1_000_000 * delay : rate / 1000 * (delay + roundTrip)) }

    /// The arguments of the relay to a port.
    func arguments(to port: UInt16) -> [String] { ["\(port)", "\(delay)", "\(rate)", "\(queue)"] }
}
