// SPDX-License-Identifier: Apache-2.0

/// One HTTPS record (RFC 9460): where the service of a name is, and what it speaks.
package struct ServiceRecord: Sendable, Equatable {
    /// The lowest is used first; 0 for a record that only names another place to ask for (AliasMode).
    package let priority: UInt16
    /// The place of the service, or of its records.
    package let target: DNSName
    /// The names of protocols (RFC 7301).
    package private(set) var protocols: [String] = []
    /// `nil` for that of the URL.
    package private(set) var port: UInt16?
    /// Whether the record names a key as mandatory that is not known here.
    package private(set) var isForOthers = false

    package init(priority: UInt16, target: DNSName, protocols: [String] = [], port: UInt16? = nil) {
        (self.priority, self.target, self.protocols, self.port) = (priority, target, protocols, port)
    }

    package var isAlias: Bool { priority == 0 }

    /// Reads the data of a record; `nil` if it is malformed (RFC 9460 §2.2).
    /// - Parameter owner: the name that has the record.
    init?(_ reader: inout DNSReader, of owner: DNSName) {
        guard let priority = reader.number16(), let target = reader.name(isPlain: true) else { return nil }
        // The root stands for the owner; of an alias, for nothing (RFC 9460 §2.5).
        self.init(priority: priority, target: target == .root && priority > 0 ? owner : target)
        var last = -1
        var parameters: [UInt16: [UInt8]] = [:]
        while !reader.isAtEnd {
            guard let key = reader.number16(), Int(key) > last, let size = reader.number16(),
                let value = reader.bytes(Int(size))
            else { return nil }
            last = Int(key)
            parameters[key] = value
        }
        // What an alias says besides is ignored (RFC 9460 §2.4.2).
        if !isAlias, !read(parameters) { return nil }
    }

    /// The keys of RFC 9460 §14.3.2.
    private enum Key {
        static let mandatory: UInt16 = 0
        static let protocols: UInt16 = 1
        static let noDefaultProtocol: UInt16 = 2
        static let port: UInt16 = 3
        static let ipv4Hint: UInt16 = 4
        static let ipv6Hint: UInt16 = 6
        /// Those of which this client does what they say. It looks the addresses up itself, which the hints permit.
        static let known: Set = [mandatory, protocols, noDefaultProtocol, port, ipv4Hint, ipv6Hint]
    }

    /// Returns false if a value is malformed (RFC 9460 §7, §8).
    private mutating func read(_ parameters: [UInt16: [UInt8]]) -> Bool {
        if let value = parameters[Key.protocols] {
            guard let names = Self.protocols(value) else { return false }
            protocols = names
        }
        if let value = parameters[Key.noDefaultProtocol] {
            // Without other protocols, none would be left.
            guard value.isEmpty, !protocols.isEmpty else { return false }
        } else if !protocols.contains("http/1.1") {
            protocols.append("http/1.1")
        }
        if let value = parameters[Key.port] {
            guard value.count == 2 else { return false }
            port = UInt16(value[0]) << 8 | UInt16(value[1])
        }
        for (key, size) in [(Key.ipv4Hint, 4), (Key.ipv6Hint, 16)] {
            guard let value = parameters[key] else { continue }
            guard !value.isEmpty, value.count.isMultiple(of: size) else { return false }
        }
        guard let value = parameters[Key.mandatory] else { return true }
        guard let keys = Self.keys(value), keys.allSatisfy({ parameters[$0] != nil }) else { return false }
        isForOthers = !Key.known.isSuperset(of: keys)
        return true
    }

    private static func protocols(_ value: [UInt8]) -> [String]? {
        var names: [String] = []
        var rest = value[...]
        while let length = rest.popFirst() {
            guard length > 0, rest.count >= Int(length) else { return nil }
            // A name that is not text is none that is known here.
            if let name = String(validating: rest.prefix(Int(length)), as: UTF8.self) { names.append(name) }
            rest = rest.dropFirst(Int(length))
        }
        return value.isEmpty ? nil : names
    }

    /// Reads the keys of `mandatory`, which are in ascending order, and are not that key itself.
    private static func keys(_ value: [UInt8]) -> [UInt16]? {
        guard !value.isEmpty, value.count.isMultiple(of: 2) else { return nil }
        let keys = stride(from: 0, to: value.count, by: 2).map { UInt16(value[$0]) << 8 | UInt16(value[$0 + 1]) }
        return zip([Key.mandatory] + keys, keys).allSatisfy(<) ? keys : nil
    }
}
