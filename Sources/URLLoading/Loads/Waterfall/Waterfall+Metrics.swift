// SPDX-License-Identifier: Apache-2.0

// The rows of a waterfall, made of metrics. Pure.

import FoundationEssentials
import URLLoadingWire

extension Waterfall {
    /// Creates the waterfall of loads that have ended.
    /// - Parameter loads: the metrics of the loads, in any order. Their starts are compared by the time of day.
    public init(_ loads: [LoadMetrics]) {
        let first = loads.map(\.start.date).min()
        self.init(
            rows: loads.enumerated().flatMap { number, load in
                let offset = first.map { Duration.seconds(load.start.date.timeIntervalSince($0)) } ?? .zero
                return load.transactions.indices.map { index in
                    Row(load.transactions, index, load: number, startsAt: offset)
                }
            })
    }
}

extension Waterfall.Row {
    fileprivate init(
        _ transactions: [LoadMetrics.Transaction], _ index: Int, load: Int, startsAt offset: Duration
    ) {
        let transaction = transactions[index]
        self.init(
            transaction.request.method, Secrets.hidden(inURL: transaction.request.url.absoluteString),
            status: transaction.response?.http?.status, error: transaction.error?.reason.name,
            connection: transaction.connectionID, protocolName: transaction.protocolName,
            marks: Self.marks(transaction, after: index > 0 ? transactions[index - 1] : nil),
            spans: Self.spans(transaction, offset), bytes: transaction.responseBodyBytes,
            requestHeaders: transaction.requestHeaders,
            responseHeaders: transaction.response?.http?.headers ?? Headers(), load: load, transaction: index)
    }

    private static func marks(
        _ transaction: LoadMetrics.Transaction, after last: LoadMetrics.Transaction?
    ) -> [Waterfall.Mark] {
        var marks: [Waterfall.Mark] = []
        if let reason = reason(after: last) { marks.append(reason) }
        if transaction.fetchType == .cache { marks.append(.cache) }
        if transaction.error != nil { marks.append(.failure) }
        return marks
    }

    /// Returns why a request was made after another of the same load; `nil` for the usual reasons: it is the first, or
    /// the response in the cache was validated before.
    private static func reason(after last: LoadMetrics.Transaction?) -> Waterfall.Mark? {
        guard let last else { return nil }
        guard let code = last.response?.http?.status.code else { return last.error == nil ? nil : .retry }
        switch code {
        case 304: return nil
        case 300..<400: return .redirect
        case 401, 407: return .challenge
        // RFC 9110 §15.5.9, §15.5.20, RFC 8470 §5.2, RFC 6585 §4.
        case 408, 421, 425, 429, 500...: return .retry
        default: return nil
        }
    }

    /// A stage that did not end, because the request failed in it, lasts to the end of the transaction.
    private static func spans(_ transaction: LoadMetrics.Transaction, _ offset: Duration) -> [Waterfall.Span] {
        typealias Moment = LoadMetrics.Moment
        let (first, last) = (offset + transaction.fetchStart.offset, offset + transaction.end.offset)
        guard transaction.fetchType == .network else { return [.init(.receiving, from: first, to: last)] }
        let stages: [(Waterfall.Stage, start: Moment?, end: Moment?)] = [
            (
                .queued, transaction.fetchStart,
                transaction.lookupStart ?? transaction.connectStart ?? transaction.requestStart
            ),
            (.lookup, transaction.lookupStart, transaction.lookupEnd ?? transaction.connectStart),
            (.connect, transaction.connectStart, transaction.secureStart ?? transaction.connectEnd),
            (.tls, transaction.secureStart, transaction.secureEnd ?? transaction.connectEnd),
            (.sending, transaction.requestStart, transaction.requestEnd ?? transaction.responseStart),
            (.waiting, transaction.requestEnd, transaction.responseStart),
            (.receiving, transaction.responseStart, transaction.responseEnd),
        ]
        var spans: [Waterfall.Span] = []
        for (stage, start, end) in stages {
            guard let start else { continue }
            // A server may answer while it still reads the request: a stage begins where the one before it ends.
            let begin = max(offset + start.offset, spans.last?.end ?? first)
            let finish = end.map { offset + $0.offset } ?? last
            if finish > begin { spans.append(.init(stage, from: begin, to: finish)) }
        }
        return spans.isEmpty ? [.init(.queued, from: first, to: last)] : spans
    }
}
