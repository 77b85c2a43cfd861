// SPDX-License-Identifier: Apache-2.0

// An HTTP Archive (HAR 1.2) as it is read: of this program, or of a browser's developer tools.

import FoundationEssentials
import URLLoading

struct HARFile: Decodable {
    struct Log: Decodable { let entries: [Entry] }
    struct Field: Decodable { let name, value: String }

    struct Request: Decodable {
        let method, url: String
        let headers: [Field]?
    }

    struct Content: Decodable {
        let size: Int64?
        let text, encoding: String?
    }

    struct Response: Decodable {
        let status: Int
        let bodySize: Int64?
        let headers: [Field]?
        let content: Content?
        let redirectURL: String?
        let httpVersion: String?
        let _error: String?
        /// `disk` or `memory` in archives of Chromium.
        let _fromCache: String?
    }

    /// Milliseconds; -1 for what did not happen. `ssl` is part of `connect`.
    struct Timings: Decodable {
        let blocked, dns, connect, ssl, send, wait, receive: Double?
    }

    struct Entry: Decodable {
        let startedDateTime: String
        let time: Double
        let request: Request
        let response: Response
        let timings: Timings
        let connection: String?
    }

    let log: Log

    /// - Throws: ``OutputError`` for a file that cannot be read, or that is no archive.
    static func read(_ path: String) throws(OutputError) -> HARFile {
        let bytes = try InputFile.all(path)
        guard let file = try? JSONDecoder().decode(HARFile.self, from: Data(bytes)) else {
            throw OutputError(.read, "\(path): no HTTP Archive")
        }
        return file
    }

    /// The index of an entry is the `load` of its row.
    var waterfall: Waterfall {
        let starts = log.entries.map { Self.seconds($0.startedDateTime) }
        let first = starts.min() ?? 0
        var numbers: [String: Int] = [:]
        var reasons = Reasons()
        return Waterfall(
            rows: log.entries.indices.map { index in
                let entry = log.entries[index]
                let number = entry.connection.flatMap { $0.isEmpty ? nil : $0 }.map { name in
                    let number = numbers[name] ?? numbers.count + 1
                    numbers[name] = number
                    return number
                }
                return entry.row(
                    index, startsAt: .seconds(starts[index] - first), connection: number, reasons.take(entry))
            })
    }

    /// The details that an entry has.
    func details(_ row: Waterfall.Row) -> RequestDetails {
        guard log.entries.indices.contains(row.load) else { return RequestDetails() }
        let response = log.entries[row.load].response
        var details = RequestDetails()
        details.cache = response._fromCache.map { "the response came from the cache: \($0)" }
        if let content = response.content, let text = content.text {
            let bytes =
                content.encoding == "base64" ? Data(base64Encoded: text).map { Array($0) } ?? [] : Array(text.utf8)
            details.body = BodyPreview(bytes, total: max(content.size ?? 0, Int64(bytes.count)))
        }
        return details
    }

    private static func seconds(_ text: String) -> Double {
        (try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: text.contains("."))))?
            .timeIntervalSince1970 ?? 0
    }

    /// Finds why a request was made, from the entries before it: an archive does not say.
    private struct Reasons {
        private var redirected: Set<String> = []
        /// The last status for a method and a URL; 0 for a failure.
        private var last: [String: Int] = [:]

        mutating func take(_ entry: Entry) -> Waterfall.Mark? {
            let key = "\(entry.request.method) \(entry.request.url)"
            let before = last[key]
            last[key] = entry.response.status
            let isRedirect = redirected.remove(entry.request.url) != nil
            if let target = entry.response.redirectURL, !target.isEmpty, (300..<400).contains(entry.response.status) {
                let base = URL(string: entry.request.url)?.withoutUserinfo
                redirected.insert(URL(string: target, relativeTo: base)?.absoluteString ?? target)
            }
            if isRedirect { return .redirect }
            switch before {
            case 401, 407: return .challenge
            case 0, 408, 421, 425, 429: return .retry
            case let code?: return code >= 500 ? .retry : nil
            case nil: return nil
            }
        }
    }
}

extension HARFile.Entry {
    fileprivate func row(
        _ index: Int, startsAt start: Duration, connection: Int?, _ reason: Waterfall.Mark?
    ) -> Waterfall.Row {
        var marks = reason.map { [$0] } ?? []
        if response._fromCache != nil { marks.append(.cache) }
        if response._error != nil { marks.append(.failure) }
        return Waterfall.Row(
            Method(request.method), AddressText.inMessage(request.url),
            status: response.status > 0 ? Status(response.status) : nil, error: response._error,
            connection: connection, protocolName: response.httpVersion, marks: marks, spans: spans(start),
            bytes: max(0, response.bodySize ?? 0), requestHeaders: Self.headers(request.headers),
            responseHeaders: Self.headers(response.headers), load: index)
    }

    private func spans(_ start: Duration) -> [Waterfall.Span] {
        let handshake = max(0, timings.ssl ?? 0)
        let stages: [(Waterfall.Stage, Double?)] = [
            (.queued, timings.blocked), (.lookup, timings.dns), (.connect, timings.connect.map { $0 - handshake }),
            (.tls, timings.ssl), (.sending, timings.send), (.waiting, timings.wait), (.receiving, timings.receive),
        ]
        var spans: [Waterfall.Span] = []
        var now = start
        for (stage, milliseconds) in stages {
            guard let milliseconds, milliseconds > 0, milliseconds < 1e9 else { continue }
            let end = now + .seconds(milliseconds / 1000)
            spans.append(.init(stage, from: now, to: end))
            now = end
        }
        guard spans.isEmpty else { return spans }
        return [.init(.waiting, from: start, to: start + .seconds(min(max(0, time), 1e9) / 1000))]
    }

    private static func headers(_ fields: [HARFile.Field]?) -> Headers {
        var headers = Headers()
        for field in fields ?? [] { headers.append(FieldName(field.name), field.value) }
        return headers
    }
}
