// SPDX-License-Identifier: Apache-2.0

// Reads netrc(5): words separated by blanks. The first matching machine wins; `default` matches every host. Macros
// after `macdef` are skipped up to an empty line.

import Synchronization
import URLLoadingIO

final class NetrcReader: Sendable {
    private let netrc: Netrc
    private let entries = Lock<[NetrcEntry]?>(nil)

    init(_ netrc: Netrc) { self.netrc = netrc }

    /// Returns the credential for a host. The first call blocks while the file is read; a missing or too large file
    /// counts as empty.
    func credential(for host: String, user: String?) -> Credential? {
        guard let entry = read().first(where: { $0.matches(host, user) }), let password = entry.password else {
            return nil
        }
        return Credential(user: user ?? entry.login ?? "", password: password)
    }

    /// Returns the entries of the file; none after a failure of the system such as too many open files, which says
    /// nothing of the file: the next call reads it again. Two calls at once may both read it.
    private func read() -> [NetrcEntry] {
        if let known = entries.withLock({ $0 }) { return known }
        let content: [UInt8]?
        do throws(IOFailure) {
            content = try FileReader.content(of: netrc.path ?? Self.standardPath, limit: Self.sizeLimit)
        } catch {
            guard error.isMissing else { return [] }
            content = nil
        }
        let read = NetrcEntry.parse(String(decoding: content ?? [], as: UTF8.self))
        entries.withLock { $0 = read }
        return read
    }

    private static let sizeLimit: Int64 = 1 << 20

    static var standardPath: String {
        Environment.value("NETRC") ?? (Environment.value("HOME") ?? "") + "/.netrc"
    }
}

struct NetrcEntry: Sendable, Hashable {
    /// `nil` for every host.
    var machine: String?
    var login: String?
    var password: String?

    func matches(_ host: String, _ user: String?) -> Bool {
        guard machine.map({ $0.lowercased() == host.lowercased() }) ?? true, password != nil else { return false }
        return user == nil || login == nil || login == user
    }

    static func parse(_ text: String) -> [NetrcEntry] {
        var words = NetrcWords(text)
        var entries: [NetrcEntry] = []
        while let word = words.next() {
            switch word {
            case "machine":
                guard let name = words.next() else { return entries }
                entries.append(NetrcEntry(machine: name))
            case "default": entries.append(NetrcEntry())
            case "macdef": words.skipMacro()
            case "login", "password", "account":
                guard let value = words.next() else { return entries }
                guard var entry = entries.popLast() else { continue }
                if word == "login" { entry.login = value }
                if word == "password" { entry.password = value }
                entries.append(entry)
            default: continue
            }
        }
        return entries
    }
}

/// Splits the text into words as curl does: quotes may contain blanks, and a backslash in them `\n`, `\r`, `\t` or any
/// other character; a word that begins with "#" comments out the rest of its line.
private struct NetrcWords {
    private let text: [UInt8]
    private var position = 0

    init(_ text: String) { self.text = Array(text.utf8) }

    mutating func next() -> String? {
        while position < text.count {
            let byte = text[position]
            if byte == UInt8(ascii: "#") { skipLine() } else if Self.isBlank(byte) { position += 1 } else { break }
        }
        guard position < text.count else { return nil }
        if text[position] == UInt8(ascii: "\"") { return quoted() }
        let start = position
        while position < text.count, !Self.isBlank(text[position]) { position += 1 }
        return String(decoding: text[start..<position], as: UTF8.self)
    }

    private mutating func quoted() -> String? {
        var word: [UInt8] = []
        position += 1
        while position < text.count {
            var byte = text[position]
            position += 1
            if byte == UInt8(ascii: "\"") { return String(decoding: word, as: UTF8.self) }
            if byte == UInt8(ascii: "\\"), position < text.count {
                byte =
                    switch text[position] {
                    case UInt8(ascii: "n"): 0x0A
                    case UInt8(ascii: "r"): 0x0D
                    case UInt8(ascii: "t"): 0x09
                    default: text[position]
                    }
                position += 1
            }
            word.append(byte)
        }
        return nil
    }

    mutating func skipMacro() {
        var isEmpty = false
        while position < text.count {
            if text[position] == 0x0A {
                if isEmpty { return }
                isEmpty = true
            } else if text[position] != 0x0D {
                isEmpty = false
            }
            position += 1
        }
    }

    private mutating func skipLine() {
        while position < text.count, text[position] != 0x0A { position += 1 }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
}
