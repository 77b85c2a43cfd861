// Which hosts want to be spoken to over TLS alone (RFC 6797 §8). A value without a lock, a clock or a disk. Names are in
// normal form without a dot at their end, so that no other spelling of one passes by (security 29).

public import FoundationEssentials
import URLLoadingWire

struct HSTSTable: Sendable {
    private(set) var hosts: [String: HSTSHost] = [:]
    /// More hosts than this nobody visits; a server with many names must not fill the memory.
    static let most = 20_000

    /// Whether a host, or one it lies below, is known (§8.2).
    func requiresTLS(_ host: String, now: Date) -> Bool {
        guard !hosts.isEmpty else { return false }
        if let known = hosts[host], known.expires > now { return true }
        var rest = Substring(host)
        while let dot = rest.utf8.firstIndex(of: UInt8(ascii: ".")) {
            rest = rest[rest.index(after: dot)...]
            if let known = hosts[String(rest)], known.includesSubdomains, known.expires > now { return true }
        }
        return false
    }

    /// Of exactly this host: those below and above it have a policy of their own (security 30).
    mutating func set(_ host: HSTSHost) -> HSTSHost? {
        var removed: HSTSHost?
        if hosts[host.name] == nil, hosts.count >= Self.most {
            removed = hosts.values.min { $0.expires < $1.expires }
            if let removed { hosts[removed.name] = nil }
        }
        hosts[host.name] = host
        return removed
    }

    mutating func remove(_ name: String) -> HSTSHost? { hosts.removeValue(forKey: name) }

    mutating func remove(since moment: Date) -> Int {
        let count = hosts.count
        hosts = hosts.filter { $0.value.creationDate < moment }
        return count - hosts.count
    }
}

/// A host that wants to be spoken to over TLS alone.
public struct HSTSHost: Sendable, Hashable, CustomStringConvertible {
    /// In normal form, without a dot at its end.
    public let name: String
    /// Whether the same holds for every host below it.
    public let includesSubdomains: Bool
    /// Until when.
    public let expires: Date
    /// When it was said last.
    public let creationDate: Date

    /// `nil` for what is no name of a host: an address has no such policy (RFC 6797 §8.1.1).
    public init?(_ name: String, includesSubdomains: Bool = false, expires: Date) {
        guard let host = try? Origin.Host(name.hasPrefix(".") ? String(name.dropFirst()) : name),
            let plain = host.dnsName
        else { return nil }
        self.init(checked: plain, includesSubdomains, expires, creation: Date.now)
    }

    init(checked name: String, _ includesSubdomains: Bool, _ expires: Date, creation: Date) {
        self.name = name
        self.includesSubdomains = includesSubdomains
        self.expires = expires
        self.creationDate = creation
    }

    /// `example.org until 2030-01-01`, with a dot in front if it includes what lies below.
    public var description: String {
        "\(includesSubdomains ? "." : "")\(name) until \(expires.formatted(.iso8601.year().month().day()))"
    }
}
