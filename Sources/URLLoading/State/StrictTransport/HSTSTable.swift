// SPDX-License-Identifier: Apache-2.0

// The hosts that demand TLS (RFC 6797 §8). A value without a lock, a clock or a disk. Names are in normal form without
// a trailing dot, so that another spelling of a host does not evade its policy.

public import FoundationEssentials
import URLLoadingWire

struct HSTSTable: Sendable {
    private(set) var hosts: [String: HSTSHost] = [:]
    /// More hosts than a user visits; a server with many names must not fill the memory.
    static let most = 20_000

    /// Whether a host is known, itself or through a parent domain (§8.2).
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

    /// Sets the policy of exactly this host: its subdomains and parent domains keep theirs. Returns the entry that was
    /// evicted.
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

    /// Removes and returns the hosts whose policy was received at a moment or later.
    mutating func remove(since moment: Date) -> [HSTSHost] {
        let removed = hosts.values.filter { $0.creationDate >= moment }
        for host in removed { hosts[host.name] = nil }
        return removed
    }

    var count: Int { hosts.count }
    var persistentRows: [HSTSHost] { Array(hosts.values) }

    mutating func replacePersistent(with rows: [HSTSHost], now: Date) -> PersistedReplacement<HSTSHost> {
        self = HSTSTable()
        return PersistedReplacement(removed: rows.filter { !$0.isExpired(now) }.compactMap { set($0) })
    }
}

/// A host that demands TLS.
public struct HSTSHost: Sendable, Hashable, CustomStringConvertible {
    /// The name in normal form, without a trailing dot.
    public let name: String
    /// Whether the policy includes all subdomains.
    public let includesSubdomains: Bool
    /// When the policy expires.
    public let expires: Date
    /// When the policy was last received.
    public let creationDate: Date

    /// Fails for a name that is not a host's: an address has no such policy (RFC 6797 §8.1.1).
    public init?(_ name: String, includesSubdomains: Bool = false, expires: Date) {
        guard let host = try? Origin.Host(name.hasPrefix(".") ? String(name.dropFirst()) : name),
            let plain = host.dnsName
        else { return nil }
        self.init(checked: plain, includesSubdomains: includesSubdomains, expires: expires, creation: Date.now)
    }

    init(checked name: String, includesSubdomains: Bool, expires: Date, creation: Date) {
        self.name = name
        self.includesSubdomains = includesSubdomains
        self.expires = expires
        self.creationDate = creation
    }

    /// The host with its expiry, `example.org until 2030-01-01`; with a leading dot if it includes subdomains.
    public var description: String {
        "\(includesSubdomains ? "." : "")\(name) until \(expires.formatted(.iso8601.year().month().day()))"
    }
}
