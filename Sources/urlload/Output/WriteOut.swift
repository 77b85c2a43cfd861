// SPDX-License-Identifier: Apache-2.0

// `-w FORMAT`: the text that curl writes after each load, with its variables: `%{http_code}`, `%header{etag}`,
// `%{json}`, `
// `.

import URLLoading

struct WriteOut {
    let report: Report
    let job: Job
    /// The parts for standard output and standard error, in order.
    private(set) var pieces: [(isError: Bool, text: String)] = []
    private var writesToStandardError = false

    /// Expands a format.
    static func make(_ format: String, _ report: Report, _ job: Job) -> [(isError: Bool, text: String)] {
        var out = WriteOut(report: report, job: job)
        out.take(format)
        return out.pieces
    }

    private init(report: Report, job: Job) {
        self.report = report
        self.job = job
    }

    private mutating func take(_ format: String) {
        var rest = format[...]
        while let character = rest.popFirst() {
            switch character {
            case "\\": escape(&rest)
            case "%" where rest.first == "%":
                rest = rest.dropFirst()
                write("%")
            case "%":
                guard variable(&rest) else { return }
            default: write(String(character))
            }
        }
    }

    private mutating func escape(_ rest: inout Substring) {
        let known: [Character: String] = ["n": "\n", "r": "\r", "t": "\t"]
        guard let next = rest.popFirst() else { return write("\\") }
        write(known[next] ?? "\\\(next)")
    }

    /// - Returns: false if the rest is not written (`%{onerror}` after a load that did not fail).
    private mutating func variable(_ rest: inout Substring) -> Bool {
        for (beginning, end) in [("header{", "}"), ("{", "}")] where rest.hasPrefix(beginning) {
            guard let close = rest.firstRange(of: end) else { break }
            let name = String(rest[..<close.lowerBound].dropFirst(beginning.count))
            rest = rest[close.upperBound...]
            if beginning == "header{" {
                write(report.head?.headers[FieldName(name)] ?? "")
                return true
            }
            return replace(name)
        }
        write("%")
        return true
    }

    private mutating func replace(_ name: String) -> Bool {
        switch name {
        case "stderr": writesToStandardError = true
        case "stdout": writesToStandardError = false
        case "onerror": return report.failure != nil
        case "json": write(JSONText.object(WriteOutValues.all(report, job).map { ($0.name, $0.value) }).description)
        case "header_json": write(headerLines)
        default: write(WriteOutValues.all(report, job).first { $0.name == name }?.value.plain ?? "")
        }
        return true
    }

    /// The fields as an object, one on each line, as curl writes it.
    private var headerLines: String {
        guard case .object(let fields)? = report.head.map({ Report.fields($0.headers) }) else { return "{\n}" }
        let lines = fields.map { name, values in JSONText.text(name).description + ":" + values.description }
        return "{" + lines.joined(separator: ",\n") + "\n}"
    }

    private mutating func write(_ text: String) {
        if let last = pieces.last, last.isError == writesToStandardError {
            pieces[pieces.count - 1].text += text
        } else {
            pieces.append((writesToStandardError, text))
        }
    }
}

extension JSONText {
    /// The value without quotes.
    fileprivate var plain: String {
        switch self {
        case .text(let text): text
        case .null: ""
        default: description
        }
    }
}
