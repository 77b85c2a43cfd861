// `urlload har FILE`: draws what an HTTP Archive (HAR 1.2) says, of this or another program.

import FoundationEssentials
import URLLoading

enum HARCommand {
    static let usage = """
        urlload har FILE [--report OUT.html]

        Draws the requests of an HTTP Archive: a line for each, what it waited for, grouped by connection. --report writes
        an HTML page instead. - is standard input.
        Exit code 0; 26 if FILE is no archive.

        """

    static func run(_ arguments: [String]) -> ExitCode {
        var words = arguments[...]
        var file: String?
        var page: String?
        while let word = words.popFirst() {
            switch word {
            case "-h", "--help": return Console.print(usage)
            case "--report":
                guard let path = words.popFirst() else { return mistake("--report needs a value: OUT.html") }
                page = path
            case _ where word.hasPrefix("-") && word != "-": return mistake("har has no option \(word)")
            default: file = word
            }
        }
        guard let file else { return mistake("har takes a FILE") }
        do throws(OutputError) {
            let waterfall = try read(file)
            return try draw(waterfall, page: page, to: .standardOutput)
        } catch {
            try? FileDescriptor.standardError.write("urlload: \(error.words)\n")
            return error.code
        }
    }

    /// - Parameter page: the file of an HTML page; `nil` draws lines.
    static func draw(_ waterfall: Waterfall, page: String?, to output: FileDescriptor) throws(OutputError) -> ExitCode {
        if let page {
            let file = try AtomicFile(path: page)
            try file.write(WaterfallPage.make(waterfall))
            try file.commit()
            return .done
        }
        let lines = WaterfallLines.make(
            waterfall, width: output.terminalSize?.columns ?? 100,
            hasColors: output.isTerminal && !Pretty.forbidsColors)
        try output.write(lines.map { $0 + "\n" }.joined())
        return .done
    }

    private static func mistake(_ words: String) -> ExitCode { Console.usage(words, "urlload har --help") }

    static func read(_ path: String) throws(OutputError) -> Waterfall {
        let bytes = try InputFile.all(path)
        guard let file = try? JSONDecoder().decode(File.self, from: Data(bytes)) else {
            throw OutputError(.read, "\(path): no HTTP Archive")
        }
        return file.waterfall
    }

    private struct File: Decodable {
        struct Log: Decodable { let entries: [Entry] }
        struct Field: Decodable { let name, value: String }
        struct Request: Decodable {
            let method, url: String
            let headers: [Field]?
        }
        struct Answer: Decodable {
            let status: Int
            let bodySize: Int64?
            let headers: [Field]?
            let _error: String?
            let httpVersion: String?
        }
        struct Timings: Decodable {
            let blocked, dns, connect, ssl, send, wait, receive: Double?
        }
        struct Entry: Decodable {
            let startedDateTime: String
            let time: Double
            let request: Request
            let response: Answer
            let timings: Timings
            let connection: String?
        }
        let log: Log

        var waterfall: Waterfall {
            let starts = log.entries.map { Self.seconds($0.startedDateTime) }
            let first = starts.min() ?? 0
            var numbers: [String: Int] = [:]
            let rows = zip(log.entries, starts).map { entry, start in
                let number = entry.connection.map { name in
                    numbers[name]
                        ?? {
                            numbers[name] = numbers.count + 1
                            return numbers.count
                        }()
                }
                return row(entry, start - first, number)
            }
            return Waterfall(rows: rows.sorted { $0.start < $1.start })
        }

        private static func seconds(_ text: String) -> Double {
            (try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: text.contains("."))))?
                .timeIntervalSince1970 ?? 0
        }

        private func row(_ entry: Entry, _ start: Double, _ connection: Int?) -> Waterfall.Row {
            let timings = entry.timings
            let handshake = max(0, timings.ssl ?? 0)
            let stages: [(Waterfall.Stage, Double?)] = [
                (.queued, timings.blocked), (.name, timings.dns), (.connect, timings.connect.map { $0 - handshake }),
                (.tls, timings.ssl), (.sending, timings.send), (.waiting, timings.wait), (.receiving, timings.receive),
            ]
            var spans: [Waterfall.Span] = []
            var now = start
            for (stage, milliseconds) in stages {
                guard let milliseconds, milliseconds > 0 else { continue }
                spans.append(Waterfall.Span(stage: stage, start: now, end: now + milliseconds / 1000))
                now += milliseconds / 1000
            }
            if spans.isEmpty { spans = [Waterfall.Span(stage: .waiting, start: start, end: start + entry.time / 1000)] }
            let fields = { (all: [Field]?) in (all ?? []).map { ($0.name, $0.value) } }
            return Waterfall.Row(
                method: entry.request.method, url: AddressText.inMessage(entry.request.url),
                status: entry.response.status > 0 ? entry.response.status : nil, error: entry.response._error,
                connection: connection, protocolName: entry.response.httpVersion,
                marks: entry.response._error == nil ? [] : [.failed], spans: spans,
                bytes: max(0, entry.response.bodySize ?? 0),
                requestFields: HARFields.hidden(fields(entry.request.headers)),
                responseFields: HARFields.hidden(fields(entry.response.headers)))
        }
    }
}

/// Fields of an archive that another program may have written, with its secrets.
enum HARFields {
    static func hidden(_ fields: [(String, String)]) -> [(String, String)] {
        fields.map { name, value in (name, FieldName(name).isSecret ? "[hidden]" : value) }
    }
}
