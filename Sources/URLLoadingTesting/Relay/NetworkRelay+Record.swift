// SPDX-License-Identifier: Apache-2.0

// What a relay has passed on: numbers for all connections, and the flights of each.

import URLLoadingIO

extension NetworkRelay {
    /// The bytes of a direction, of one connection or of all.
    public struct Traffic: Sendable, Hashable {
        /// The number of bytes that the relay read from the sender and did not drop.
        public internal(set) var received: Int64 = 0
        /// The number of bytes that the kernel accepted for the receiver.
        public internal(set) var delivered: Int64 = 0
        /// The number of writes that delivered them: the segments, and parts of segments.
        public internal(set) var segments = 0
        /// The number of bytes that the relay holds: read, and neither delivered nor dropped.
        public internal(set) var queued = 0
        /// The largest number of bytes that the relay held for this direction of one connection.
        public internal(set) var mostQueued = 0
    }

    /// The activity of a relay in numbers, all taken at the same moment.
    ///
    /// ```swift
    /// try await relay.wait { $0.toServer.delivered > 0 && $0.open == 1 }
    /// ```
    public struct Counts: Sendable, Hashable, CustomStringConvertible {
        /// Connections accepted.
        public internal(set) var accepted = 0
        /// Connections open now.
        public internal(set) var open = 0
        /// The maximum number of connections open at once.
        public internal(set) var mostOpen = 0
        /// Connections for which the server could not be reached.
        public internal(set) var unreachable = 0
        /// The bytes from clients to the server.
        public internal(set) var toServer = Traffic()
        /// The bytes from the server to clients.
        public internal(set) var toClient = Traffic()

        /// The traffic of a direction.
        public subscript(direction: NetworkConditions.Direction) -> Traffic {
            direction == .toServer ? toServer : toClient
        }

        /// The counters in one line: `accepted: 1, open: 1, to server: 80 of 80 bytes, to client: 0 of 120 bytes`.
        public var description: String {
            func text(_ traffic: Traffic) -> String { "\(traffic.delivered) of \(traffic.received) bytes" }
            let failed = unreachable > 0 ? ", unreachable: \(unreachable)" : ""
            return "accepted: \(accepted), open: \(open)\(failed), to server: \(text(toServer)), "
                + "to client: \(text(toClient))"
        }
    }

    /// A flight: what one side of a connection sent before anything of the other side's reply was delivered to it.
    ///
    /// Round 1 is the client's first flight and the server's reply to it, or what a server sends first. The client's
    /// flight of round n + 1 is what it sends once a byte of the server's flight n was delivered to it; the server's
    /// flight n is what it sends once a byte of the client's flight n was delivered to it. So the rounds are the chain
    /// of causes: each takes a round trip, however fast the two sides compute. A FIN is no flight.
    public struct Flight: Sendable, Hashable, CustomStringConvertible {
        /// The direction.
        public let direction: NetworkConditions.Direction
        /// The number of the round trip that it belongs to, from 1; the connect is not counted here.
        public let round: Int
        /// The number of bytes sent, at least 1.
        public internal(set) var bytes: Int64
        /// The number of bytes delivered.
        public internal(set) var delivered: Int64 = 0

        /// The flight in words: `1 to server: 517 bytes`.
        public var description: String {
            "\(round) to \(direction == .toServer ? "server" : "client"): \(bytes) bytes"
        }
    }

    /// What a relay has passed on for one connection.
    public struct ConnectionRecord: Sendable, CustomStringConvertible {
        /// The number of the connection, from 1 in order of acceptance.
        public let number: Int
        /// Whether the connection is open.
        public internal(set) var isOpen = true
        /// The bytes from the client to the server.
        public internal(set) var toServer = Traffic()
        /// The bytes from the server to the client.
        public internal(set) var toClient = Traffic()
        /// The flights in the order in which they began, at most the first 1,000.
        public internal(set) var flights: [Flight] = []
        /// The number of round trips until now: one for the connect, and one for each round of which a byte reached the
        /// client. They are what the client has waited for; a last flight of the client without a reply is none.
        ///
        /// The count is exact if there is a delay and the queues have room: the relay reads all that a side has sent
        /// before it delivers the first byte of the other side's next flight. Without a delay, a reply may overtake the
        /// rest of the flight that it answers, so the count may be higher.
        public internal(set) var roundTrips = 1

        /// The connection in one line: `connection 1, open, 2 round trips: 1 to server: 80 bytes; 1 to client: 120
        /// bytes`.
        public var description: String {
            "connection \(number), \(isOpen ? "open" : "closed"), \(roundTrips) round trips: \(flights.shown(last: 16))"
        }

        static let mostFlights = 1_000
    }

    /// The current counters.
    public var counts: Counts { withState { $0.counts } }

    /// The connections in order of acceptance, open and closed, at most the last 1,000.
    public var connections: [ConnectionRecord] { withState { $0.connections } }

    /// Waits until the counters fulfil a condition.
    ///
    /// ```swift
    /// try await relay.wait { $0.open == 0 }   // every connection is closed
    /// ```
    /// - Parameters:
    ///   - limit: the longest time to wait, by the system's clock.
    ///   - condition: evaluated after every change of the counters.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func wait(
        timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line,
        until condition: @Sendable (Counts) -> Bool
    ) async throws {
        try await wait(WaitLimit(limit, "the counts of the relay", file, line)) { condition($0.counts) ? () : nil }
    }
}

// MARK: - The state

extension NetworkRelay {
    struct State: ServerState {
        var conditions: NetworkConditions
        var watchers: [PollSlot] = []
        /// The counters of everything except connections.
        private var activity = Counts()
        private var served = ServerConnections<RelayConnection>()
        private var records: [Int: ConnectionRecord] = [:]
        private static let mostRecords = 1_000

        init(_ conditions: NetworkConditions) { self.conditions = conditions }

        var counts: Counts {
            var counts = activity
            (counts.accepted, counts.open, counts.mostOpen) = (served.accepted, served.open.count, served.mostOpen)
            return counts
        }
        var connections: [ConnectionRecord] { records.values.sorted { $0.number < $1.number } }
        var openConnections: [RelayConnection] { Array(served.open.values) }
        var shown: String { "\(counts); \(connections.shown(last: 4))" }

        mutating func open(_ make: (Int, NetworkConditions) -> RelayConnection) -> RelayConnection? {
            let connection = served.open { make($0, conditions) }
            if let number = connection?.number {
                records[number] = ConnectionRecord(number: number)
                records[number - Self.mostRecords] = nil
            }
            return connection
        }

        mutating func stop() -> [RelayConnection] { served.stop() }
        mutating func noteUnreachable() { activity.unreachable += 1 }

        mutating func close(_ number: Int) {
            served.close(number)
            records[number]?.isOpen = false
        }

        // MARK: Bytes

        mutating func noteReceived(
            _ count: Int, round: Int, _ direction: NetworkConditions.Direction, of number: Int
        ) {
            activity[of: direction].received += Int64(count)
            activity[of: direction].queued += count
            records[number]?.noteReceived(count, round: round, direction)
            let most = max(activity[of: direction].mostQueued, records[number]?[of: direction].queued ?? 0)
            activity[of: direction].mostQueued = most
        }

        mutating func noteDelivered(
            _ count: Int, round: Int, _ direction: NetworkConditions.Direction, of number: Int
        ) {
            activity[of: direction].noteDelivered(count)
            records[number]?.noteDelivered(count, round: round, direction)
        }

        mutating func noteDropped(_ count: Int, _ direction: NetworkConditions.Direction, of number: Int) {
            activity[of: direction].queued -= count
            records[number]?[of: direction].queued -= count
        }
    }
}

extension NetworkRelay.Traffic {
    fileprivate mutating func noteDelivered(_ count: Int) {
        delivered += Int64(count)
        segments += 1
        queued -= count
    }
}

extension NetworkRelay.Counts {
    fileprivate subscript(of direction: NetworkConditions.Direction) -> NetworkRelay.Traffic {
        get { direction == .toServer ? toServer : toClient }
        set { if direction == .toServer { toServer = newValue } else { toClient = newValue } }
    }
}

extension NetworkRelay.ConnectionRecord {
    fileprivate subscript(of direction: NetworkConditions.Direction) -> NetworkRelay.Traffic {
        get { direction == .toServer ? toServer : toClient }
        set { if direction == .toServer { toServer = newValue } else { toClient = newValue } }
    }

    fileprivate mutating func noteReceived(_ count: Int, round: Int, _ direction: NetworkConditions.Direction) {
        self[of: direction].received += Int64(count)
        self[of: direction].queued += count
        self[of: direction].mostQueued = max(self[of: direction].mostQueued, self[of: direction].queued)
        if let index = flight(round, direction) {
            flights[index].bytes += Int64(count)
        } else if flights.count < Self.mostFlights {
            flights.append(NetworkRelay.Flight(direction: direction, round: round, bytes: Int64(count)))
        }
    }

    fileprivate mutating func noteDelivered(_ count: Int, round: Int, _ direction: NetworkConditions.Direction) {
        self[of: direction].noteDelivered(count)
        if let index = flight(round, direction) { flights[index].delivered += Int64(count) }
        if direction == .toClient { roundTrips = max(roundTrips, round + 1) }
    }

    private func flight(_ round: Int, _ direction: NetworkConditions.Direction) -> Int? {
        // A round begins only after the last one of the other side was delivered, so of each direction at most the last
        // two flights change.
        flights.suffix(4).lastIndex { $0.round == round && $0.direction == direction }
    }
}
