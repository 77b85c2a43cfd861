// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// Any JSON, to be looked at member by member.
enum AnyJSON: Decodable, Equatable {
    case null
    case bool(Bool)
    case number(Double)
    case text(String)
    case list([AnyJSON])
    case object([String: AnyJSON])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .text(value)
        } else if let value = try? container.decode([AnyJSON].self) {
            self = .list(value)
        } else {
            self = .object(try container.decode([String: AnyJSON].self))
        }
    }

    subscript(_ name: String) -> AnyJSON? { if case .object(let members) = self { members[name] } else { nil } }
    subscript(_ index: Int) -> AnyJSON? {
        if case .list(let items) = self, items.indices.contains(index) { items[index] } else { nil }
    }
    var text: String? { if case .text(let text) = self { text } else { nil } }
    var number: Double? { if case .number(let number) = self { number } else { nil } }
    var list: [AnyJSON]? { if case .list(let items) = self { items } else { nil } }
}

/// A strict reading of HAR 1.2: members that must be there, of which type, and none that the format does not
/// know; dates; sums. http://www.softwareishard.com/blog/har-12-spec/
struct ArchiveCheck {
    private(set) var problems: [String] = []
    private(set) var entries: [AnyJSON] = []

    init(_ bytes: Data) {
        guard let json = try? JSONDecoder().decode(AnyJSON.self, from: bytes) else {
            problems = ["no JSON"]
            return
        }
        object(json, "", ["log": .object])
        guard let log = json["log"] else { return }
        object(
            log, "log", ["version": .text, "creator": .object, "entries": .list],
            ["browser": .object, "pages": .list, "comment": .text])
        if log["version"]?.text != "1.2" { problems.append("version \(String(describing: log["version"]))") }
        if let creator = log["creator"] {
            object(creator, "creator", ["name": .text, "version": .text], ["comment": .text])
        }
        entries = log["entries"]?.list ?? []
        for (index, entry) in entries.enumerated() { check(entry, "entries[\(index)]") }
        let dates = entries.compactMap { $0["startedDateTime"]?.text }
        if dates != dates.sorted() { problems.append("entries are not in the order of their dates") }
    }

    private enum Kind {
        /// A whole number from 0, or -1 for unknown.
        case size
        /// A whole number from 0.
        case count
        /// From 0.
        case duration
        /// At least 0, or -1 for a phase that does not apply.
        case optionalDuration
        case text, date, flag, list, object

        func fits(_ value: AnyJSON) -> Bool {
            switch (self, value) {
            case (.size, .number(let number)): number >= -1 && number == number.rounded()
            case (.count, .number(let number)): number >= 0 && number == number.rounded()
            case (.duration, .number(let number)): number >= 0
            case (.optionalDuration, .number(let number)): number >= 0 || number == -1
            case (.text, .text), (.flag, .bool), (.list, .list), (.object, .object): true
            case (.date, .text(let text)): Self.isDate(text)
            default: false
            }
        }

        /// `2009-07-24T19:20:30.123Z`, or with an offset in place of the Z.
        private static func isDate(_ text: String) -> Bool {
            let pattern = "dddd-dd-ddTdd:dd:dd"
            let bytes = Array(text.utf8)
            guard bytes.count > pattern.utf8.count else { return false }
            for (byte, wanted) in zip(bytes, pattern.utf8) {
                let isDigit = (0x30...0x39).contains(byte)
                guard wanted == UInt8(ascii: "d") ? isDigit : byte == wanted else { return false }
            }
            var rest = text.dropFirst(pattern.count)
            if rest.first == "." {
                let digits = rest.dropFirst().prefix { $0.isASCII && $0.isNumber }
                guard !digits.isEmpty else { return false }
                rest = rest.dropFirst(1 + digits.count)
            }
            return rest == "Z" || ((rest.hasPrefix("+") || rest.hasPrefix("-")) && rest.count == 6)
        }
    }

    private mutating func object(
        _ value: AnyJSON, _ path: String, _ required: [String: Kind], _ optional: [String: Kind] = [:]
    ) {
        guard case .object(let members) = value else { return problems.append("\(path) is no object") }
        for (name, kind) in required {
            guard let member = members[name] else {
                problems.append("\(path) has no \(name)")
                continue
            }
            if !kind.fits(member) { problems.append("\(path).\(name) is \(member)") }
        }
        for (name, member) in members where required[name] == nil {
            guard let kind = optional[name] else {
                if !name.hasPrefix("_") { problems.append("\(path).\(name) is unknown") }
                continue
            }
            if !kind.fits(member) { problems.append("\(path).\(name) is \(member)") }
        }
    }

    private mutating func check(_ entry: AnyJSON, _ path: String) {
        object(
            entry, path,
            [
                "startedDateTime": .date, "time": .duration, "request": .object, "response": .object, "cache": .object,
                "timings": .object,
            ],
            ["pageref": .text, "serverIPAddress": .text, "connection": .text, "comment": .text])
        if let request = entry["request"] { checkRequest(request, path + ".request") }
        if let response = entry["response"] { checkResponse(response, path + ".response") }
        if let cache = entry["cache"] {
            object(cache, path + ".cache", [:], ["beforeRequest": .object, "afterRequest": .object, "comment": .text])
        }
        if let timings = entry["timings"] { checkTimings(timings, entry["time"]?.number ?? -1, path + ".timings") }
    }

    private mutating func checkRequest(_ request: AnyJSON, _ path: String) {
        object(
            request, path,
            [
                "method": .text, "url": .text, "httpVersion": .text, "cookies": .list, "headers": .list,
                "queryString": .list,
                "headersSize": .size, "bodySize": .size,
            ],
            ["postData": .object, "comment": .text])
        let url = request["url"]?.text ?? ""
        if url.contains("#") || !url.contains("://") { problems.append("\(path).url is \(url)") }
        checkPairs(request["headers"], path + ".headers")
        checkPairs(request["queryString"], path + ".queryString")
        checkCookies(request["cookies"], path + ".cookies")
    }

    private mutating func checkResponse(_ response: AnyJSON, _ path: String) {
        object(
            response, path,
            [
                "status": .count, "statusText": .text, "httpVersion": .text, "cookies": .list, "headers": .list,
                "content": .object,
                "redirectURL": .text, "headersSize": .size, "bodySize": .size,
            ],
            ["comment": .text])
        checkPairs(response["headers"], path + ".headers")
        checkCookies(response["cookies"], path + ".cookies")
        guard let content = response["content"] else { return }
        object(
            content, path + ".content", ["size": .count, "mimeType": .text],
            ["compression": .count, "text": .text, "encoding": .text, "comment": .text])
    }

    private mutating func checkPairs(_ pairs: AnyJSON?, _ path: String) {
        for pair in pairs?.list ?? [] { object(pair, path, ["name": .text, "value": .text], ["comment": .text]) }
    }

    private mutating func checkCookies(_ cookies: AnyJSON?, _ path: String) {
        for cookie in cookies?.list ?? [] {
            object(
                cookie, path, ["name": .text, "value": .text],
                [
                    "path": .text, "domain": .text, "expires": .date, "httpOnly": .flag, "secure": .flag,
                    "comment": .text,
                ])
        }
    }

    private mutating func checkTimings(_ timings: AnyJSON, _ time: Double, _ path: String) {
        object(
            timings, path, ["send": .duration, "wait": .duration, "receive": .duration],
            [
                "blocked": .optionalDuration, "dns": .optionalDuration, "connect": .optionalDuration,
                "ssl": .optionalDuration, "comment": .text,
            ])
        let parts = ["blocked", "dns", "connect", "send", "wait", "receive"].map { max(0, timings[$0]?.number ?? -1) }
        let sum = parts.reduce(0, +)
        if abs(sum - time) > 1e-6 { problems.append("\(path): \(parts) is \(sum), not \(time)") }
        let (ssl, connect) = (timings["ssl"]?.number ?? -1, timings["connect"]?.number ?? -1)
        if ssl > connect + 1e-9 { problems.append("\(path): ssl \(ssl) of connect \(connect)") }
    }
}
