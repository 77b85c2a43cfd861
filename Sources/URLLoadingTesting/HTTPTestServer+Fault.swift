// SPDX-License-Identifier: Apache-2.0

extension HTTPTestServer {
    /// A fault at a named point of a connection.
    ///
    /// ```swift
    /// origin.route("/cut", faults: [Fault(.responseBody(after: 100), .reset)]) { _ in .ok(long) }
    /// origin.inject(Fault(.handshake, .stall), onConnection: 2)
    /// ```
    public struct Fault: Sendable, Hashable {
        /// The point at which the fault occurs.
        public enum Point: Sendable, Hashable {
            /// A connection was accepted; nothing was read from it.
            case accept
            /// Before the origin's part of the TLS handshake; does not occur without TLS.
            case handshake
            /// The head of a request was read.
            case requestHead
            /// At least this number of bytes of a request's body was read; does not occur for a shorter body.
            case requestBody(after: Int64 = 0)
            /// This number of bytes of the response's head was sent; for a larger number, before the body.
            case responseHead(after: Int = 0)
            /// This number of bytes after the head was sent, including chunk headers; does not occur for a shorter
            /// body.
            case responseBody(after: Int64 = 0)
            /// The response was sent completely.
            case end
            /// The connection waits for another request.
            case idle
        }

        /// The effect of a fault.
        public enum Effect: Sendable, Hashable {
            /// Closes the connection; with TLS, after close_notify.
            case close
            /// Closes the connection without close_notify.
            case cut
            /// Resets the connection, as a crash does (TCP RST).
            case reset
            /// Stalls in both directions until the client leaves, or ``HTTPTestServer/releaseStalls()``.
            case stall
            /// Sends this number of bytes of no known protocol, then continues.
            case garbage(Int = 16)
            /// Sends the header of a chunk and a part of its data, then closes the connection.
            case halfChunk
            /// Delays the exchange.
            case delay(Duration)
            /// Sends these bytes, then continues.
            case send([UInt8])
        }

        /// The point at which the fault occurs.
        public let point: Point
        /// The effect of the fault.
        public let effect: Effect

        /// Creates a fault from its two parts.
        public init(_ point: Point, _ effect: Effect) {
            self.point = point
            self.effect = effect
        }
    }

    /// Reproducible random faults: whether an exchange has one depends on the seed, the number of its connection and
    /// its number there, never on timing.
    ///
    /// ```swift
    /// origin.setSchedule(FaultSchedule(seed: 42, probability: 0.2))
    /// ```
    public struct FaultSchedule: Sendable {
        /// The seed; another seed yields other faults.
        public var seed: UInt64
        /// The share of connections, and of exchanges, that have a fault: 0...1.
        public var probability: Double
        /// The faults to choose from.
        public var faults: [Fault]

        /// Creates a schedule. `faults` defaults to ``usual``.
        public init(seed: UInt64, probability: Double, faults: [Fault] = FaultSchedule.usual) {
            self.seed = seed
            self.probability = probability
            self.faults = faults
        }

        /// Every effect at every point, except those that end only with a timeout.
        public static let usual: [Fault] = points.flatMap { point in effects.map { Fault(point, $0) } }

        private static let points: [Fault.Point] = [
            .accept, .handshake, .requestHead, .requestBody(after: 1), .responseHead(after: 0), .responseHead(after: 9),
            .responseBody(after: 0), .responseBody(after: 7), .end, .idle,
        ]
        private static let effects: [Fault.Effect] = [
            .close, .cut, .reset, .garbage(), .halfChunk, .delay(.milliseconds(1)),
        ]

        /// Returns the fault of a connection (`exchange` 0) or of one of its exchanges (from 1).
        func fault(connection: Int, exchange: Int) -> Fault? {
            var random = SeededGenerator(
                seed: seed ^ UInt64(truncatingIfNeeded: connection) << 20 ^ UInt64(truncatingIfNeeded: exchange))
            guard Double.random(in: 0..<1, using: &random) < probability else { return nil }
            return faults.filter { $0.point.isOfConnection == (exchange == 0) }.randomElement(using: &random)
        }
    }
}

extension HTTPTestServer.Fault.Point {
    /// Whether the point occurs once for each connection rather than for each exchange.
    var isOfConnection: Bool { self == .accept || self == .handshake }
}

/// Pseudo-random numbers that are reproducible by their seed (SplitMix64).
///
/// ```swift
/// var random = SeededGenerator(seed: 1)
/// Int.random(in: 0..<10, using: &random)
/// ```
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator; another seed yields other numbers.
    public init(seed: UInt64) { state = seed }

    /// Returns the next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
