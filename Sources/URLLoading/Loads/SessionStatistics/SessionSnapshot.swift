// SPDX-License-Identifier: Apache-2.0

// In this folder: what a session shows to `urlload top`

// The connections, loads and traffic of a session at one moment: a line of JSON on its statistics socket, which
// `urlload top` reads.

package struct SessionSnapshot: Codable, Sendable, Equatable {
    /// The connections of one origin, and what its loads have moved.
    package struct Host: Codable, Sendable, Equatable {
        /// The origin, with the proxies if there are any: `https://a.example`.
        package var name: String
        package var connecting = 0
        package var active = 0
        package var idle = 0
        /// Connections of suspended loads.
        package var resting = 0
        /// Loads that wait for a connection or a stream.
        package var waiting = 0
        /// The open streams of each HTTP/2 connection.
        package var streams: [Int] = []
        package var traffic = Traffic()
        /// The number of requests that a ``RequestRate`` holds back; absent without any.
        package var held: Int?
        /// True if a ``CircuitBreaker`` makes no requests; absent otherwise.
        package var isRefused: Bool?
    }

    /// Counts since the statistics were exposed.
    package struct Traffic: Codable, Sendable, Equatable {
        package var bytesSent: Int64 = 0
        package var bytesReceived: Int64 = 0
        package var finished = 0
        package var failed = 0
        /// Loads that the program gave up, also by leaving a loop over a body or events.
        package var cancelled = 0
        /// How many responses broke a rule of HTTP and were read all the same, by the name of the rule's violation.
        package var tolerated: [String: Int] = [:]

        package init() {}

        /// Reads what a program of an earlier version sends, too.
        package init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            bytesSent = try values.decode(Int64.self, forKey: .bytesSent)
            bytesReceived = try values.decode(Int64.self, forKey: .bytesReceived)
            finished = try values.decode(Int.self, forKey: .finished)
            failed = try values.decode(Int.self, forKey: .failed)
            cancelled = try values.decodeIfPresent(Int.self, forKey: .cancelled) ?? 0
            tolerated = try values.decodeIfPresent([String: Int].self, forKey: .tolerated) ?? [:]
        }
    }

    package var process: Int32
    /// Nanoseconds of a monotonic clock, for differences.
    package var moment: Int64
    /// Loads that are running or suspended.
    package var loads: Int
    package var total = Traffic()
    /// The busiest hosts first.
    package var hosts: [Host] = []
    /// Hosts that ``hosts`` leaves out.
    package var hiddenHosts = 0
    /// What an external cache has done; absent without one.
    package var external: StoreCounts?

    /// The most hosts of a snapshot, which bounds its size.
    static let maximumHosts = 200
}
