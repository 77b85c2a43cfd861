// SPDX-License-Identifier: Apache-2.0

// In this folder: bodies and heads for people

// A response head as `-i` and `-I` write it.

import FoundationEssentials
import URLLoading

enum HeadText {
    static func make(_ head: HTTPHead) -> String {
        // HTTP/2 has no reason phrases (RFC 9113 §8.3.2), and some servers of HTTP/1.1 send none; the space before it
        // remains (RFC 9112 §4), as in curl.
        "\(head.version) \(head.status.code) \(head.reasonPhrase)\r\n" + lines(head.headers) + "\r\n"
    }

    static func lines(_ fields: Headers) -> String {
        fields.map { "\($0.name): \($0.value)\r\n" }.joined()
    }

    /// A request as HTTP/1.1 sends it to the server.
    static func make(_ request: Request, _ fields: Headers) -> String {
        let path = request.url.path(percentEncoded: true)
        let query = request.url.query(percentEncoded: true).map { "?" + $0 } ?? ""
        let text = "\(request.method) \(path.isEmpty ? "/" : path)\(query) HTTP/1.1\r\n"
        return text + lines(fields) + "\r\n"
    }

    /// Colours the start line and the names of fields.
    static func painted(_ text: String) -> String {
        var lines = text.split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
        for index in lines.indices where !lines[index].isEmpty {
            if let colon = lines[index].firstIndex(of: ":"), index > 0 {
                lines[index] = Paint.title.on(String(lines[index][..<colon])) + lines[index][colon...]
            } else {
                lines[index] = Paint.tag.on(lines[index])
            }
        }
        return lines.joined(separator: "\r\n")
    }

    /// Hides the values of secret fields as `-v` does.
    static func withoutSecrets(_ text: String) -> String {
        text.split(separator: "\r\n", omittingEmptySubsequences: false).map { line in
            var shown = String(decoding: Transcript.hidingSecret(Array(line.utf8)), as: UTF8.self)
            if shown.hasSuffix("\r\n") { shown.removeLast() }
            return shown
        }.joined(separator: "\r\n")
    }

    static func make(_ response: Response) -> String {
        var text = ""
        if let date = response.lastModified { text += "Last-Modified: \(date)\r\n" }
        if let length = response.expectedLength { text += "Content-Length: \(length)\r\n" }
        return text
    }
}
