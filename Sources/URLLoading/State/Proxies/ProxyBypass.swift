// SPDX-License-Identifier: Apache-2.0

import URLLoadingWire

/// The hosts that are reached without a proxy, in the format of `no_proxy`.
///
/// ```swift
/// configuration.networks.proxyPolicy = .fixed([proxy], except: ["intern.example", "10.0.0.0/8", "localhost:8080"])
/// ```
/// An entry is
/// - a name: that host and all its subdomains, written `example.org` or `.example.org`, or the subdomains only, written
///   `*.example.org`;
/// - an address, IPv6 with or without brackets: that address, if the URL contains it;
/// - a block of addresses: `10.0.0.0/8`, `fd00::/8`;
/// - each of these with a port, `host:port`, IPv6 in brackets: that port only;
/// - `*`: every host.
///
/// Names are not resolved: the URL's host is compared in normal form.
public struct ProxyBypass: Sendable, Hashable, ExpressibleByArrayLiteral, CustomStringConvertible {
    /// No exceptions: every host goes through the proxy.
    public static let nothing = ProxyBypass([])

    enum Entry: Sendable, Hashable {
        case everything
        case name(String, includesDomain: Bool)
        case block([UInt8], length: Int)
    }
    private struct Rule: Sendable, Hashable {
        let entry: Entry
        let port: UInt16?
    }
    private let rules: [Rule]
    /// The entries, separated by commas.
    public let description: String

    /// Creates rules from a text.
    /// - Parameter text: entries separated by commas or white space, as in `no_proxy`. An invalid entry matches no
    ///   host.
    public init(_ text: String) {
        self.init(text.split { $0 == "," || $0.isWhitespace }.map(String.init))
    }

    public init(arrayLiteral entries: String...) { self.init(entries) }

    /// Creates rules from entries as in `no_proxy`; entries that are invalid are ignored.
    public init(_ entries: [String]) {
        rules = entries.compactMap(Self.rule)
        description = entries.joined(separator: ",")
    }

    /// Returns whether a host is reached without a proxy.
    /// - Parameter host: a name or an address; IPv6 in brackets.
    public func contains(host: String, port: UInt16) -> Bool {
        guard let host = try? Origin.Host(host) else { return false }
        return contains(host, port)
    }

    func contains(_ host: Origin.Host, _ port: UInt16) -> Bool {
        rules.contains { ($0.port == nil || $0.port == port) && Self.matches($0.entry, host) }
    }

    private static func matches(_ entry: Entry, _ host: Origin.Host) -> Bool {
        switch (entry, host.kind) {
        case (.everything, _): return true
        case (.name(let name, let includesDomain), .name):
            guard let asked = host.dnsName else { return false }
            return (includesDomain && asked == name) || asked.hasSuffix("." + name)
        case (.block(let bytes, let length), .ipv4(let address)),
            (.block(let bytes, let length), .ipv6(let address, _)):
            return bytes.count == address.count && isSame(bytes, address, bits: length)
        case (.name, _), (.block, .name): return false
        }
    }

    private static func isSame(_ a: [UInt8], _ b: [UInt8], bits: Int) -> Bool {
        let whole = bits / 8
        let rest = bits % 8
        guard a[..<whole] == b[..<whole] else { return false }
        return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0
    }

    // MARK: Reading

    private static func rule(_ text: String) -> Rule? {
        let text = text.lowercased()
        if let entry = entry(text) { return Rule(entry: entry, port: nil) }
        guard let colon = text.lastIndex(of: ":"), let port = PortText.number(text[text.index(after: colon)...]),
            let entry = entry(String(text[..<colon]))
        else { return nil }
        return Rule(entry: entry, port: port)
    }

    private static func entry(_ text: String) -> Entry? {
        if text == "*" { return .everything }
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        if let bytes = address(String(parts.first ?? "")) {
            guard parts.count < 3, let length = parts.count == 2 ? length(parts[1]) : bytes.count * 8,
                length <= bytes.count * 8
            else { return nil }
            return .block(bytes, length: length)
        }
        let isBelow = text.hasPrefix("*.")
        var name = isBelow ? text.dropFirst(2) : text.drop { $0 == "." }
        if name.last == "." { name.removeLast() }
        guard !name.contains(":"), let host = try? Origin.Host(String(name)), let plain = host.dnsName else {
            return nil
        }
        return .name(plain, includesDomain: !isBelow)
    }

    private static func length(_ text: Substring) -> Int? {
        guard (1...3).contains(text.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(text)
    }

    private static func address(_ text: String) -> [UInt8]? {
        let isBare = text.first != "[" && text.contains(":")
        switch (try? Origin.Host(isBare ? "[\(text)]" : text))?.kind {
        case .ipv4(let bytes), .ipv6(let bytes, nil): return bytes
        default: return nil
        }
    }
}
