// SPDX-License-Identifier: Apache-2.0

/// The activity of a test server of HTTP in numbers, all taken at the same moment.
///
/// ```swift
/// try await origin.wait { $0.stalled == 1 && $0.open == 2 }
/// ```
public struct TestServerCounts: Sendable, Hashable, CustomStringConvertible {
    /// Connections accepted.
    public internal(set) var accepted = 0
    /// Connections open now.
    public internal(set) var open = 0
    /// The maximum number of connections open at once.
    public internal(set) var mostOpen = 0
    /// Requests whose head was read; of a server of HTTP/2 or HTTP/3, by routes.
    public internal(set) var requests = 0
    /// Responses sent completely; of a server of HTTP/2 or HTTP/3, by routes. A client may have a response a moment
    /// before it is counted here: wait for the number.
    public internal(set) var answered = 0
    /// Faults that took effect; of a server of HTTP/2 or HTTP/3, connections to which a fault was applied.
    public internal(set) var faults = 0
    /// Connections of an HTTP/1.1 server that currently stall at a ``HTTPTestServer/Fault/Effect/stall``.
    public internal(set) var stalled = 0
    /// Streams that the routes of a server of HTTP/2 or HTTP/3 have not answered yet.
    public internal(set) var openStreams = 0
    /// The maximum number of such streams at once.
    public internal(set) var mostOpenStreams = 0
    /// Frames that a server of HTTP/2 or HTTP/3 received.
    public internal(set) var frames = 0
    /// Scripts of a server of HTTP/2 or HTTP/3 that are paused at `hold()`.
    public internal(set) var held = 0
    /// Scripts of a server of HTTP/2 or HTTP/3 that have ended.
    public internal(set) var scriptsEnded = 0

    /// The counters that are not 0, in one line: `accepted: 2, open: 1, mostOpen: 1, requests: 3`.
    public var description: String {
        let counted = Mirror(reflecting: self).children.compactMap { name, count in
            count as? Int == 0 ? nil : "\(name ?? ""): \(count)"
        }
        return counted.isEmpty ? "no connections" : counted.joined(separator: ", ")
    }
}
