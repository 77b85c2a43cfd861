// The times of loads as a value: one row for each request, with its stages in order. Independent of the output.

import FoundationEssentials
import URLLoading

struct Waterfall: Sendable {
    /// A stage of a request.
    enum Stage: String, Sendable, CaseIterable {
        case queued, name, connect, tls = "TLS", sending, waiting, receiving
    }

    /// A stage and its time, in seconds from the start of the first load.
    struct Span: Sendable, Hashable {
        var stage: Stage
        var start: Double
        var end: Double
    }

    /// The cause of a request, or the source of its response.
    enum Mark: String, Sendable {
        case redirect, challenge, retry, cache, failed
    }

    struct Row: Sendable {
        var method: String
        /// The URL without secrets.
        var url: String
        var status: Int?
        /// The error; `nil` for none.
        var error: String?
        /// The number of the connection; `nil` for none.
        var connection: Int?
        /// The protocol as ALPN names it: `h2`, `http/1.1`.
        var protocolName: String?
        var marks: [Mark] = []
        var spans: [Span]
        /// The received bytes of the body.
        var bytes: Int64 = 0
        /// Fields with names and values, without secrets.
        var requestFields: [(String, String)] = []
        var responseFields: [(String, String)] = []

        var start: Double { spans.first?.start ?? 0 }
        var end: Double { spans.last?.end ?? start }
        var seconds: Double { end - start }
    }

    var rows: [Row]

    /// The time from the first start to the last end, in seconds.
    var seconds: Double { rows.map(\.end).max() ?? 0 }
    var slowest: Row? { rows.max { $0.seconds < $1.seconds } }

    /// The rows by connection, in the order in which the connections were first used.
    var groups: [(connection: Int?, rows: [Row])] {
        var order: [Int?] = []
        for row in rows where !order.contains(row.connection) { order.append(row.connection) }
        return order.map { connection in (connection, rows.filter { $0.connection == connection }) }
    }

    init(rows: [Row]) { self.rows = rows }

    /// The requests of these loads, in the order of their starts.
    init(_ loads: [LoadMetrics]) {
        let first = loads.map(\.start.date).min()
        rows = loads.flatMap { load in
            let offset = first.map { load.start.date.timeIntervalSince($0) } ?? 0
            return load.transactions.enumerated().map { index, transaction in
                Row(transaction, offset: offset, after: index > 0 ? load.transactions[index - 1] : nil)
            }
        }.sorted { $0.start < $1.start }
    }
}

extension Waterfall.Row {
    init(_ transaction: LoadMetrics.Transaction, offset: Double, after last: LoadMetrics.Transaction?) {
        self.init(
            method: "\(transaction.request.method)",
            url: AddressText.inMessage(AddressText.shown(transaction.request.url)),
            status: transaction.response?.http?.status.code, error: transaction.error?.reason.name,
            connection: transaction.connectionID, protocolName: transaction.protocolName,
            spans: Self.spans(transaction, offset), bytes: transaction.responseBodyBytes,
            requestFields: Self.fields(transaction.requestHeaders),
            responseFields: Self.fields(transaction.response?.http?.headers ?? Headers()))
        if let status = last?.response?.http?.status.code {
            switch status {
            case 300..<400 where last?.request.url != transaction.request.url: marks.append(.redirect)
            case 401, 407: marks.append(.challenge)
            default: if transaction.fetchType == .network { marks.append(.retry) }
            }
        } else if last?.error != nil {
            marks.append(.retry)
        }
        if transaction.fetchType == .cache { marks.append(.cache) }
        if error != nil { marks.append(.failed) }
    }

    static func fields(_ headers: Headers) -> [(String, String)] {
        headers.map { ("\($0.name)", $0.name.isSecret ? "[hidden]" : $0.value) }
    }

    private static func spans(_ transaction: LoadMetrics.Transaction, _ offset: Double) -> [Waterfall.Span] {
        typealias Moment = LoadMetrics.Moment
        let end = transaction.responseEnd ?? transaction.end
        let stages: [(Waterfall.Stage, Moment?, Moment?)] = [
            (
                .queued, transaction.fetchStart,
                transaction.lookupStart ?? transaction.connectStart ?? transaction.requestStart
            ),
            (.name, transaction.lookupStart, transaction.lookupEnd),
            (.connect, transaction.connectStart, transaction.secureStart ?? transaction.connectEnd),
            (.tls, transaction.secureStart, transaction.secureEnd),
            (.sending, transaction.requestStart, transaction.requestEnd),
            (.waiting, transaction.requestEnd ?? transaction.requestStart, transaction.responseStart),
            (.receiving, transaction.responseStart, end),
        ]
        var spans: [Waterfall.Span] = []
        for (stage, from, to) in stages {
            guard let from, let to, to > from else { continue }
            let (start, end) = (offset + from.offset / .seconds(1), offset + to.offset / .seconds(1))
            // A server may respond before it has the whole request: a stage begins no earlier than the previous one
            // ends.
            let begin = max(start, spans.last?.end ?? start)
            if end > begin { spans.append(Waterfall.Span(stage: stage, start: begin, end: end)) }
        }
        guard spans.isEmpty else { return spans }
        let (start, last) = (transaction.fetchStart.offset / .seconds(1), end.offset / .seconds(1))
        return [Waterfall.Span(stage: .waiting, start: offset + start, end: offset + max(start, last))]
    }
}
