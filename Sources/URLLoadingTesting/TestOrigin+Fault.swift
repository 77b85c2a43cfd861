extension TestOrigin {
    /// Something that goes wrong at a named point of a connection.
    ///
    /// ```swift
    /// origin.route("/cut", faults: [Fault(.responseBody(after: 100), .reset)]) { _ in .ok(long) }
    /// origin.inject(Fault(.handshake, .stall), onConnection: 2)
    /// ```
    public struct Fault: Sendable, Hashable {
        /// Where it happens.
        public enum Point: Sendable, Hashable {
            /// A connection was accepted; nothing was read from it.
            case accept
            /// Before the origin's part of the TLS handshake; not met without TLS.
            case handshake
            /// The head of a request was read.
            case requestHead
            /// At least so many bytes of a request's body were read; not met if it has fewer.
            case requestBody(after: Int64 = 0)
            /// So many bytes of the response's head were sent; with more than it has, before its body.
            case responseHead(after: Int = 0)
            /// So many bytes after the head were sent, chunk headers included; not met if there are fewer.
            case responseBody(after: Int64 = 0)
            /// The response was sent in full.
            case end
            /// The connection waits for another request.
            case idle
        }

        /// What happens.
        public enum Effect: Sendable, Hashable {
            /// The connection is closed; with TLS, after close_notify.
            case close
            /// The connection is closed without close_notify.
            case cut
            /// The connection is reset, as by a crash (TCP RST).
            case reset
            /// Nothing is read nor sent any more until the client leaves, or ``TestOrigin/releaseStalls()``.
            case stall
            /// So many bytes that belong to no protocol are sent; then all goes on.
            case garbage(Int = 16)
            /// The header of a chunk and a part of its data are sent, then the connection is closed.
            case halfChunk
            /// All goes on after so long.
            case delay(Duration)
            /// These bytes are sent; then all goes on.
            case send([UInt8])
        }

        /// Where it happens.
        public let point: Point
        /// What happens.
        public let effect: Effect

        /// A fault of its two parts.
        public init(_ point: Point, _ effect: Effect) {
            self.point = point
            self.effect = effect
        }
    }

    /// Faults by chance, yet the same ones for the same seed: what happens to an exchange depends on
    /// the seed, the number of its connection and its number there, never on timing.
    ///
    /// ```swift
    /// origin.setSchedule(FaultSchedule(seed: 42, probability: 0.2))
    /// ```
    public struct FaultSchedule: Sendable {
        /// Another seed, other faults.
        public var seed: UInt64
        /// The share of connections, and of exchanges, that meet one: 0...1.
        public var probability: Double
        /// What is chosen from.
        public var faults: [Fault]

        /// Without `faults`: one of every kind but ``Fault/Effect/stall``, at every point.
        public init(seed: UInt64, probability: Double, faults: [Fault] = FaultSchedule.usual) {
            self.seed = seed
            self.probability = probability
            self.faults = faults
        }

        /// One fault of every kind at every point, without those that need a time-out to end.
        public static let usual: [Fault] = points.flatMap { point in effects.map { Fault(point, $0) } }

        private static let points: [Fault.Point] = [
            .accept, .handshake, .requestHead, .requestBody(after: 1), .responseHead(after: 0), .responseHead(after: 9),
            .responseBody(after: 0), .responseBody(after: 7), .end, .idle,
        ]
        private static let effects: [Fault.Effect] = [
            .close, .cut, .reset, .garbage(), .halfChunk, .delay(.milliseconds(1)),
        ]

        /// What happens to a connection (`exchange` 0) or to one of its exchanges (from 1).
        func fault(connection: Int, exchange: Int) -> Fault? {
            var random = SeededGenerator(
                seed: seed ^ UInt64(truncatingIfNeeded: connection) << 20 ^ UInt64(truncatingIfNeeded: exchange))
            guard Double.random(in: 0..<1, using: &random) < probability else { return nil }
            return faults.filter { $0.point.isOfConnection == (exchange == 0) }.randomElement(using: &random)
        }
    }
}

extension TestOrigin.Fault.Point {
    /// Met once per connection rather than once per exchange.
    var isOfConnection: Bool { self == .accept || self == .handshake }
}

/// Numbers that look random and are the same for the same seed (SplitMix64).
///
/// ```swift
/// var random = SeededGenerator(seed: 1)
/// Int.random(in: 0..<10, using: &random)
/// ```
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Another seed, other numbers.
    public init(seed: UInt64) { state = seed }

    /// The next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
