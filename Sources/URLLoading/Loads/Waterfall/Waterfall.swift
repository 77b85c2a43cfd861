// SPDX-License-Identifier: Apache-2.0

// In this folder: the times of requests as a value to draw

public import URLLoadingWire

/// The times of the requests of one or several loads, as a value to draw: a row for each request, divided into stages.
///
/// ```swift
/// let waterfall = Waterfall([try await task.metrics])
/// for connection in waterfall.connections {
///     for row in connection.rows {
///         let bar = String(repeating: " ", count: Int(row.start / waterfall.duration * 60))
///         print(bar, row.status?.code ?? 0, row.url, row.duration)
///     }
/// }
/// ```
/// Times count from the start of the first load. Secrets are left out as in an ``HTTPArchive``: the userinfo of URLs,
/// and the values of secret fields and query parameters.
public struct Waterfall: Sendable {
    /// A part of a request's time.
    public enum Stage: String, Sendable, Hashable, CaseIterable {
        /// The request waits for a connection.
        case queued
        /// The addresses of the host are looked up.
        case lookup
        /// TCP, and the tunnels through proxies.
        case connect
        /// The TLS handshake.
        case tls
        /// Head and body of the request are sent.
        case sending
        /// The server prepares the response.
        case waiting
        /// Head and body of the response are received, or read from the cache or a file.
        case receiving
    }

    /// A stage with its beginning and end.
    public struct Span: Sendable, Hashable {
        /// The stage.
        public var stage: Stage
        /// The beginning, from the start of the first load.
        public var start: Duration
        /// The end, from the start of the first load.
        public var end: Duration

        /// Creates a span.
        /// - Parameters:
        ///   - stage: the stage.
        ///   - start: its beginning.
        ///   - end: its end, not before `start`.
        public init(_ stage: Stage, from start: Duration, to end: Duration) {
            (self.stage, self.start, self.end) = (stage, start, end)
        }

        /// The time from ``start`` to ``end``.
        public var duration: Duration { end - start }
    }

    /// The reason for a request, or the source of its response, where that is not the usual one.
    public enum Mark: String, Sendable, Hashable, CaseIterable {
        /// The request follows a redirect.
        case redirect
        /// The request answers a challenge (401, 407).
        case challenge
        /// The request repeats one that failed, or that got a temporary status.
        case retry
        /// The response came from the cache.
        case cache
        /// The request ended with an error.
        case failure
    }

    /// A request and its response.
    public struct Row: Sendable {
        /// The index of the load, among those of the waterfall.
        public var load: Int
        /// The index of the request's ``LoadMetrics/Transaction``, among those of its load.
        public var transaction: Int
        /// The method of the request.
        public var method: Method
        /// The URL without secrets.
        public var url: String
        /// `nil` without a response, and for schemes other than http and https.
        public var status: Status?
        /// The name of the ``LoadError/Reason``; `nil` for a request that succeeded.
        public var error: String?
        /// The number of the connection; `nil` for none.
        public var connection: Int?
        /// The protocol by its ALPN name, such as `h2`; `nil` without a connection.
        public var protocolName: String?
        /// The reasons for the request, or the source of its response.
        public var marks: [Mark]
        /// The stages in the order of time; they do not overlap.
        public var spans: [Span]
        /// The bytes of the response's body, as they were received.
        public var bytes: Int64
        /// Without the values of secret fields.
        public var requestHeaders: Headers
        /// Without the values of secret fields.
        public var responseHeaders: Headers
        /// Rows of one connection whose requests were under way at the same time, such as streams of HTTP/2, have
        /// different lanes; the first is 0. Set by ``Waterfall/init(rows:)``.
        public internal(set) var lane = 0

        /// Creates a row, for other sources than ``LoadMetrics``.
        /// - Parameters:
        ///   - method: the method of the request.
        ///   - url: the URL, without secrets.
        ///   - status: the status of the response.
        ///   - error: the name of a failure.
        ///   - connection: a number for the connection.
        ///   - protocolName: the protocol by its ALPN name.
        ///   - marks: what is special about the request.
        ///   - spans: the stages, in the order of time.
        ///   - bytes: the size of the response's body.
        ///   - requestHeaders: fields of the request; the values of secret ones are replaced.
        ///   - responseHeaders: fields of the response; the values of secret ones are replaced.
        ///   - load: the index of its load.
        ///   - transaction: the index among the requests of its load.
        public init(
            _ method: Method, _ url: String, status: Status? = nil, error: String? = nil, connection: Int? = nil,
            protocolName: String? = nil, marks: [Mark] = [], spans: [Span], bytes: Int64 = 0,
            requestHeaders: Headers = [:], responseHeaders: Headers = [:], load: Int = 0, transaction: Int = 0
        ) {
            (self.load, self.transaction) = (load, transaction)
            (self.method, self.url, self.status, self.error) = (method, url, status, error)
            (self.connection, self.protocolName, self.marks) = (connection, protocolName, marks)
            (self.spans, self.bytes) = (spans, bytes)
            self.requestHeaders = requestHeaders.withoutSecretValues
            self.responseHeaders = responseHeaders.withoutSecretValues
        }

        /// The beginning of the first stage.
        public var start: Duration { spans.first?.start ?? .zero }
        /// The end of the last stage.
        public var end: Duration { spans.last?.end ?? .zero }
        /// The time from ``start`` to ``end``.
        public var duration: Duration { end - start }
        /// The end of the first stage, if that is ``Stage/queued``: from here on the request uses its connection.
        var activeStart: Duration {
            guard let first = spans.first else { return .zero }
            return first.stage == .queued && spans.count > 1 ? first.end : first.start
        }
    }

    /// The rows of one connection.
    public struct Connection: Sendable {
        /// The number of the connection; `nil` for the rows without one.
        public let id: Int?
        /// The protocol by its ALPN name; `nil` without a connection.
        public let protocolName: String?
        /// The rows in the order of their starts.
        public internal(set) var rows: [Row]
        /// The largest number of requests that were under way at the same time.
        public var laneCount: Int { (rows.map(\.lane).max() ?? -1) + 1 }
    }

    /// All rows, in the order of their starts.
    public let rows: [Row]

    /// The time from the start of the first load to the end of the last row.
    public var duration: Duration { rows.map(\.end).max() ?? .zero }
    /// The row that took the longest; `nil` without rows.
    public var slowest: Row? { rows.max { $0.duration < $1.duration } }

    /// The rows by their connection, in the order in which the connections were first used.
    public var connections: [Connection] {
        var connections: [Connection] = []
        var places: [Int?: Int] = [:]
        for row in rows {
            if let place = places[row.connection] {
                connections[place].rows.append(row)
            } else {
                places[row.connection] = connections.count
                connections.append(Connection(id: row.connection, protocolName: row.protocolName, rows: [row]))
            }
        }
        return connections
    }

    /// Creates a waterfall of rows that do not come from metrics, such as those of an HTTP Archive.
    /// - Parameter rows: in any order.
    public init(rows: [Row]) {
        var rows = rows.enumerated().sorted { ($0.element.start, $0.offset) < ($1.element.start, $1.offset) }
            .map(\.element)
        // The end of the last row in each lane, by connection.
        var ends: [Int?: [Duration]] = [:]
        for index in rows.indices {
            let row = rows[index]
            var lanes = ends[row.connection] ?? []
            let lane = lanes.firstIndex { $0 <= row.activeStart } ?? lanes.count
            if lane == lanes.count { lanes.append(row.end) } else { lanes[lane] = row.end }
            ends[row.connection] = lanes
            rows[index].lane = lane
        }
        self.rows = rows
    }
}

extension Headers {
    fileprivate var withoutSecretValues: Headers {
        var shown = Headers()
        for field in self {
            shown.append(field.name, field.name.isSecret ? Secrets.mark : Secrets.hidden(in: field.value))
        }
        return shown
    }
}
