// SPDX-License-Identifier: Apache-2.0

// The bytes on the wire as lines: `> ` sent, `< ` received, `* ` notes. It parses each connection far enough to tell
// heads from bodies: secrets in heads are hidden, and `-v` shows only heads. A value without I/O.

import URLLoading

struct Transcript: Sendable {
    fileprivate struct Direction: Sendable {
        var isInHead = false
        /// The beginning of a line of the head, until the rest arrives.
        var pending: [UInt8] = []
        /// The first line of the current head.
        var startLine: [UInt8] = []
        /// Whether the last field has a secret value, which may be continued on further lines.
        var isInSecret = false
    }

    fileprivate struct Conversation: Sendable {
        var sent = Direction()
        var received = Direction()
        var exchanges = 0
    }

    private let rules: Rules
    private var conversations: [Int: Conversation] = [:]
    private var last = 0

    init(showsBodies: Bool, showsSecrets: Bool) {
        rules = Rules(showsBodies: showsBodies, showsSecrets: showsSecrets)
    }

    /// Returns the lines for an event.
    mutating func lines(_ event: WireTapEvent) -> [String] {
        switch event {
        case .connected(let description, let connection):
            conversations[connection] = Conversation()
            last = connection
            return ["* connection \(connection): \(description)"]
        case .closed(let connection):
            let rest = conversations.removeValue(forKey: connection).map(rules.leftOver) ?? []
            return rest + ["* connection \(connection) closed"]
        case .tolerated(let violation, let connection):
            return turn(to: connection) + [
                "* the response breaks \(violation.section) (\(violation.code.rawValue)); it is read all the same"
            ]
        case .tookTCP(let reason): return ["* not over HTTP/3: \(reason)"]
        case .frame(let line, let isSent, let connection):
            return rules.showsBodies ? turn(to: connection) + [(isSent ? "> " : "< ") + line] : []
        // It goes to the file of `--qlog`.
        case .log: return []
        case .head(let line, let headers, let isSent, let connection):
            return turn(to: connection) + rules.head(line, headers).map { (isSent ? "> " : "< ") + $0 }
        case .sent(let bytes, let connection):
            return turn(to: connection)
                + rules.sent(bytes, connection, &conversations[connection, default: Conversation()])
        case .received(let bytes, let connection):
            return turn(to: connection) + rules.received(bytes, &conversations[connection, default: Conversation()])
        }
    }

    private mutating func turn(to connection: Int) -> [String] {
        defer { last = connection }
        return connection == last ? [] : ["* connection \(connection)"]
    }
}

extension Transcript {
    /// The selection of what is shown.
    fileprivate struct Rules: Sendable {
        let showsBodies: Bool
        let showsSecrets: Bool
    }
}

extension Transcript.Rules {
    func sent(_ bytes: [UInt8], _ connection: Int, _ conversation: inout Transcript.Conversation) -> [String] {
        var lines: [String] = []
        // A new request is recognised by its request line: the bytes after a response may also belong to a body.
        if !conversation.sent.isInHead, Self.beginsRequest(bytes) {
            conversation.sent = Transcript.Direction(isInHead: true)
            conversation.received = Transcript.Direction(isInHead: true)
            conversation.exchanges += 1
            if conversation.exchanges > 1 { lines.append("* connection \(connection) reused") }
        }
        return lines + format(bytes, "> ", &conversation.sent)
    }

    func received(_ bytes: [UInt8], _ conversation: inout Transcript.Conversation) -> [String] {
        format(bytes, "< ", &conversation.received)
    }

    /// The lines for a head of HTTP/2, which has none on the wire.
    func head(_ line: String, _ headers: Headers) -> [String] {
        let lines = [line] + headers.map { "\($0.name): \($0.value)" }
        return lines.flatMap { line in
            let bytes = Array("\(line)\r\n".utf8)
            return TranscriptText.lines(showsSecrets ? bytes : Transcript.hidingSecret(bytes))
        }
    }

    private func format(_ bytes: [UInt8], _ mark: String, _ direction: inout Transcript.Direction) -> [String] {
        var lines: [String] = []
        var rest = bytes[...]
        while direction.isInHead, let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            let line = direction.pending + rest[...end]
            rest = rest[(end + 1)...]
            direction.pending = []
            lines += headLine(line, &direction).map { mark + $0 }
        }
        if direction.isInHead {
            direction.pending += rest
        } else if showsBodies {
            lines += TranscriptText.lines(rest).map { mark + $0 }
        }
        return lines
    }

    private func headLine(_ line: [UInt8], _ direction: inout Transcript.Direction) -> [String] {
        let isEmpty = line == [UInt8(ascii: "\n")] || line == [UInt8(ascii: "\r"), UInt8(ascii: "\n")]
        if direction.startLine.isEmpty {
            direction.startLine = line
        } else if isEmpty {
            // Another head follows an interim response (RFC 9110 §15.2).
            direction.isInHead = Self.isInterim(direction.startLine)
            direction.startLine = []
        }
        return TranscriptText.lines(showsSecrets ? line : hidingSecret(line, &direction))
    }

    /// Hides the value of a secret field, also where it is continued on lines that begin with a blank (RFC 9112 §5.2).
    private func hidingSecret(_ line: [UInt8], _ direction: inout Transcript.Direction) -> [UInt8] {
        guard Transcript.beginsWithBlank(line[...]) else {
            direction.isInSecret = Transcript.isSecret(line)
            return Transcript.hidingSecret(line)
        }
        return direction.isInSecret ? Array(" [hidden]\r\n".utf8) : Transcript.hidingSecret(line)
    }

    private static func beginsRequest(_ bytes: [UInt8]) -> Bool {
        let line = String(decoding: bytes.prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
        return line.hasSuffix(" HTTP/1.1") || line.hasSuffix(" HTTP/1.0")
    }

    private static func isInterim(_ statusLine: [UInt8]) -> Bool {
        let parts = statusLine.split(separator: UInt8(ascii: " "), maxSplits: 2)
        return parts.count > 1 && parts[1].first == UInt8(ascii: "1") && parts[0].starts(with: "HTTP/".utf8)
    }

    /// The lines of a head that never ended.
    func leftOver(_ conversation: Transcript.Conversation) -> [String] {
        [("> ", conversation.sent), ("< ", conversation.received)].flatMap { mark, direction -> [String] in
            var direction = direction
            let line = direction.pending
            return TranscriptText.lines(showsSecrets ? line : hidingSecret(line, &direction)).map { mark + $0 }
        }
    }
}

extension Transcript {
    fileprivate static func beginsWithBlank(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.first == UInt8(ascii: " ") || bytes.first == UInt8(ascii: "\t")
    }

    /// Whether a line is that of a field with a secret value. Blanks before the colon are ignored, because a tolerant
    /// client reads such a field.
    fileprivate static func isSecret(_ line: [UInt8]) -> Bool {
        guard var end = line.firstIndex(of: UInt8(ascii: ":")) else { return false }
        while end > 0, beginsWithBlank(line[(end - 1)...]) { end -= 1 }
        let name = FieldName(String(decoding: line[..<end], as: UTF8.self))
        return name.isValid && name.isSecret
    }

    /// Replaces the value of a secret field; the line of another field is returned unchanged.
    static func hidingSecret(_ line: [UInt8]) -> [UInt8] {
        guard isSecret(line), let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return line.withoutSecrets }
        // The authentication scheme is shown; it is not secret and names what is hidden.
        let value = String(decoding: line[(colon + 1)...], as: UTF8.self).split(whereSeparator: \.isWhitespace)
        let scheme = value.count > 1 && value[0].allSatisfy { $0.isLetter } ? " \(value[0])" : ""
        return line[...colon] + Array("\(scheme) [hidden]\r\n".utf8)
    }
}
