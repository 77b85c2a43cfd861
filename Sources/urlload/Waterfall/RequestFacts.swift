// SPDX-License-Identifier: Apache-2.0

// The facts of one request on a report's page: URL, times, heads, what the cache decided, certificates, body.

import FoundationEssentials
import URLLoading

enum RequestFacts {
    static func html(_ row: Waterfall.Row, _ details: RequestDetails) -> String {
        var text = "<p>\(HTML.escaped("\(row.method) \(row.url)"))</p>\n"
        text += table("Times", row.spans.map { ($0.stage.word, TimeText.make($0.duration)) })
        if let cache = details.cache { text += "<h3>Cache</h3>\n<p>\(HTML.escaped(cache))</p>\n" }
        text += table("Request", row.requestHeaders.map { ("\($0.name)", $0.value) })
        text += table("Response", row.responseHeaders.map { ("\($0.name)", $0.value) })
        if let trust = details.trust { text += certificates(trust) }
        if let body = details.body, body.total > 0 { text += preview(body) }
        return text
    }

    private static func table(_ title: String, _ rows: [(String, String)]) -> String {
        guard !rows.isEmpty else { return "" }
        let lines = rows.map { "<tr><th>\(HTML.escaped($0.0))</th><td>\(HTML.escaped($0.1))</td></tr>\n" }
        return "<h3>\(title)</h3>\n<table>\n\(lines.joined())</table>\n"
    }

    private static func certificates(_ trust: ServerTrust) -> String {
        let chain = trust.chain.isEmpty ? trust.certificates : trust.chain
        let lines = chain.enumerated().map { depth, certificate in
            let names = certificate.subjectAlternativeNames.prefix(6).map(\.description).joined(separator: ", ")
            return (
                certificate.subject,
                (depth == 0 && !names.isEmpty ? "for \(names); " : "")
                    + "key \(certificate.publicKey), valid until \(certificate.notAfter.formatted(.iso8601))"
            )
        }
        let failures = trust.failures.map { ("not trusted", "\($0.reason): \($0.detail)") }
        return table("Certificates of \(HTML.escaped(trust.host))", lines + failures)
    }

    private static func preview(_ body: BodyPreview) -> String {
        let title = "<h3>Body, \(body.total) byte\(body.total == 1 ? "" : "s")</h3>\n"
        guard let text = body.text else { return title + "<p>The body is not text.</p>\n" }
        let cut = body.isCut ? "<p>The first \(body.bytes.count) bytes.</p>\n" : ""
        // A parser drops a line feed directly after the tag.
        return title + cut + "<pre>\n\(HTML.escaped(text, keepsLines: true))</pre>\n"
    }
}

enum HTML {
    /// Returns text as it may stand in an element or an attribute. Control characters, which HTML does not allow, are
    /// replaced; line feeds stay if `keepsLines`.
    static func escaped(_ text: String, keepsLines: Bool = false) -> String {
        // The usual text has nothing to escape, and is found to have nothing by its bytes.
        guard text.utf8.contains(where: { mayNeedEscape($0) }) else { return text }
        var escaped = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped.append(contentsOf: "&amp;".unicodeScalars)
            case "<": escaped.append(contentsOf: "&lt;".unicodeScalars)
            case ">": escaped.append(contentsOf: "&gt;".unicodeScalars)
            case "\"": escaped.append(contentsOf: "&quot;".unicodeScalars)
            case "'": escaped.append(contentsOf: "&#39;".unicodeScalars)
            case "\t": escaped.append(scalar)
            case "\n" where keepsLines: escaped.append(scalar)
            case "\r" where keepsLines: continue
            default: escaped.append(isForbidden(scalar) ? "\u{FFFD}" : scalar)
            }
        }
        return String(escaped)
    }

    private static func mayNeedEscape(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "&"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\""), UInt8(ascii: "'"): true
        default: byte < 0x20 || byte >= 0x7F
        }
    }

    /// Controls and noncharacters (WHATWG HTML §13.1.2.3, §13.1.4).
    private static func isForbidden(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || (0xFDD0...0xFDEF).contains(scalar.value)
            || scalar.value & 0xFFFE == 0xFFFE
    }

    /// A number with one digit after the point.
    static func number(_ number: Double) -> String {
        let tenths = Int64((number * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }
}
