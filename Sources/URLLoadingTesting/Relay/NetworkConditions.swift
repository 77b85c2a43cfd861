// SPDX-License-Identifier: Apache-2.0

// The conditions of a network as a value. `RelayLinkState` computes what they mean for the bytes of a connection.

/// The conditions of a network between a client and a server, for a ``NetworkRelay``: delay, rate, segments, silence
/// and broken connections.
///
/// ```swift
/// var conditions = NetworkConditions(delay: .milliseconds(25), jitter: .milliseconds(5), segmentSize: 1...1_448)
/// conditions.toClient.rate = 500_000                  // bytes per second
/// conditions.toClient.cut = .init(.reset, after: 10_000)
/// try await withNetworkRelay(to: origin.url(), conditions) { relay in … }
/// ```
/// Each direction has its own ``Link``. Bytes are neither lost, duplicated nor reordered, as TCP guarantees.
///
/// The connect of TCP costs a round trip, as on a real network: the kernel completes it at once, so the relay treats
/// what a client sends within one ``roundTripTime`` of its connect as sent at the end of that time. What a server sends
/// first reaches the client no earlier than two round trips after the connect.
public struct NetworkConditions: Sendable, Hashable {
    /// The link from the client to the server. The default has no delay, no limit and no fault.
    public var toServer: Link
    /// The link from the server to the client. The default has no delay, no limit and no fault.
    public var toClient: Link
    /// The seed of all random choices, 0 by default. Each direction of each connection makes its own choices, which
    /// depend on the seed and the number of the connection, and not on time: with the same seed the first connection is
    /// cut into the same segments in every run.
    public var seed: UInt64

    /// Creates conditions that are the same in both directions; see ``Link`` for units, ranges and defaults.
    public init(
        delay: Duration = .zero, jitter: Duration = .zero, rate: Int? = nil, segmentSize: ClosedRange<Int>? = nil,
        queueLimit: Int = Link.defaultQueueLimit, seed: UInt64 = 0
    ) {
        let link = Link(delay: delay, jitter: jitter, rate: rate, segmentSize: segmentSize, queueLimit: queueLimit)
        self.init(toServer: link, toClient: link, seed: seed)
    }

    /// Creates conditions with a link for each direction.
    public init(toServer: Link, toClient: Link, seed: UInt64 = 0) {
        self.toServer = toServer
        self.toClient = toClient
        self.seed = seed
    }

    /// The sum of the two delays, without jitter and without the time that the rates take.
    public var roundTripTime: Duration { toServer.delay + toClient.delay }

    /// Returns these conditions with another seed: `.mobile.seeded(7)`.
    public func seeded(_ seed: UInt64) -> NetworkConditions {
        NetworkConditions(toServer: toServer, toClient: toClient, seed: seed)
    }

    /// The link of a direction.
    public subscript(direction: Direction) -> Link {
        get { direction == .toServer ? toServer : toClient }
        set { if direction == .toServer { toServer = newValue } else { toClient = newValue } }
    }

    /// A direction of a connection.
    public enum Direction: Sendable, Hashable, CaseIterable {
        /// From the client to the server.
        case toServer
        /// From the server to the client.
        case toClient

        /// The other direction.
        public var opposite: Direction { self == .toServer ? .toClient : .toServer }
    }

    // MARK: Links

    /// The conditions of one direction.
    public struct Link: Sendable, Hashable {
        /// The time that every segment takes, one way; at least zero, zero by default.
        public var delay: Duration
        /// The longest additional time of a segment, at least zero, zero by default. Each segment takes a random part
        /// of it. A segment is never delivered before an earlier one, so a slow segment delays those behind it.
        public var jitter: Duration
        /// The rate in bytes per second, at least 1; `nil`, the default, for no limit. A segment is delivered as a
        /// whole, once its last byte was sent at this rate and the delay has passed.
        public var rate: Int?
        /// The sizes of segments in bytes, at least 1; `nil`, the default, for segments as large as what the relay
        /// reads at once, at most 64 KiB. Each segment has a random size of the range, and is delivered by a write of
        /// its own. A segment whose end was not sent yet is delivered in parts, so its end falls on the same byte in
        /// any case. The receiver may read segments together that were delivered shortly after each other:
        /// a ``rate`` keeps them apart.
        public var segmentSize: ClosedRange<Int>?
        /// When the link falls silent; `nil`, the default, for never.
        public var silence: Silence?
        /// Where the relay ends the connection; `nil`, the default, for nowhere.
        public var cut: CutPoint?
        /// The largest number of bytes that the relay holds for this direction of a connection, at least 1,
        /// ``defaultQueueLimit`` by default. At the limit the relay reads no more, so that TCP stops the sender. A link
        /// whose queue is smaller than its rate times its delay does not reach its rate.
        public var queueLimit: Int

        /// 16 MiB.
        public static let defaultQueueLimit = 16 * 1024 * 1024

        /// Creates a link; by default it has no delay, no limit and no fault.
        public init(
            delay: Duration = .zero, jitter: Duration = .zero, rate: Int? = nil, segmentSize: ClosedRange<Int>? = nil,
            silence: Silence? = nil, cut: CutPoint? = nil, queueLimit: Int = defaultQueueLimit
        ) {
            self.delay = delay
            self.jitter = jitter
            self.rate = rate
            self.segmentSize = segmentSize
            self.silence = silence
            self.cut = cut
            self.queueLimit = queueLimit
        }
    }

    /// When a link falls silent. A silent link delivers neither bytes nor the end of the connection, as a path that has
    /// died; the sender is told nothing. The relay reads on until the queue of the link is full.
    public enum Silence: Sendable, Hashable {
        /// After so many bytes of each connection, at least 0.
        case after(bytes: Int64)
        /// From this time on, counted from the acceptance of each connection; zero for from the start.
        case from(Duration)
    }

    /// A way to end a connection.
    public enum Cut: Sendable, Hashable {
        /// By FIN: the receiver reads the end of the stream. The rest of that direction is read and dropped.
        case finish
        /// By RST, sent to both sides, as after a crash.
        case reset
    }

    /// The byte behind which a connection ends.
    public struct CutPoint: Sendable, Hashable {
        /// The way in which the connection ends.
        public var cut: Cut
        /// The number of bytes of this direction that are delivered before the cut, at least 0. With 0 the direction
        /// ends when its first byte could have arrived, whether one is sent or not: at once if there is no delay.
        public var byteCount: Int64

        /// Creates a cut behind so many bytes.
        public init(_ cut: Cut, after byteCount: Int64) {
            self.cut = cut
            self.byteCount = byteCount
        }
    }
}

// MARK: - Presets

extension NetworkConditions {
    /// No delay, no limit, no fault.
    public static let none = NetworkConditions()
    /// A server in the same city over fibre: 2 ms one way, up to 0.5 ms of jitter, 100 MB/s in each direction.
    public static let sameCity = network(
        .milliseconds(2), jitter: .microseconds(500), up: 100_000_000, down: 100_000_000)
    /// A server beyond the Atlantic: 40 ms one way, up to 2 ms of jitter, 12.5 MB/s (100 Mbit/s) in each direction.
    public static let transatlantic = network(
        .milliseconds(40), jitter: .milliseconds(2), up: 12_500_000, down: 12_500_000)
    /// A mobile network of the fourth generation: 30 ms one way, up to 20 ms of jitter, 0.6 MB/s (5 Mbit/s) to the
    /// server and 2.5 MB/s (20 Mbit/s) to the client.
    public static let mobile = network(.milliseconds(30), jitter: .milliseconds(20), up: 625_000, down: 2_500_000)
    /// A geostationary satellite: 300 ms one way, up to 15 ms of jitter, 0.4 MB/s (3 Mbit/s) to the server and 3.1 MB/s
    /// (25 Mbit/s) to the client.
    public static let satellite = network(.milliseconds(300), jitter: .milliseconds(15), up: 375_000, down: 3_125_000)

    /// Creates conditions whose segments are those of TCP in Ethernet frames, 1,448 bytes.
    private static func network(_ delay: Duration, jitter: Duration, up: Int, down: Int) -> NetworkConditions {
        NetworkConditions(
            toServer: Link(delay: delay, jitter: jitter, rate: up, segmentSize: 1_448...1_448),
            toClient: Link(delay: delay, jitter: jitter, rate: down, segmentSize: 1_448...1_448))
    }
}
