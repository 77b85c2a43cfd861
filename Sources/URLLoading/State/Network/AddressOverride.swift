// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO
import URLLoadingWire

/// Connects requests for a host to another address, host or Unix socket. The request itself does not change: the Host
/// field, the name that the certificate must match, and cookies follow the URL.
///
/// ```swift
/// configuration.networks.addressOverrides = [
///     try .unixSocket("/run/docker.sock", for: "docker"),             // http://docker/…
///     try .addresses(["192.0.2.7"], of: "api.example"),               // before the name has moved
///     try .connect("www.example", port: 443, to: "staging.example"),  // another server, under its name
/// ]
/// ```
/// - Throws: each factory method throws ``LoadError/Reason/badURL`` for an invalid host, address or path.
public struct AddressOverride: Sendable, Hashable {
    enum Place: Sendable, Hashable {
        case unix(SocketAddress)
        case addresses([[UInt8]])
        case target(Origin.Host?, UInt16?)
    }
    /// `nil` for any host.
    let host: Origin.Host?
    let port: UInt16?
    let place: Place

    private init(_ host: String?, _ port: UInt16?, _ place: Place) throws(LoadError) {
        self.host = try Self.parse(host)
        self.port = port
        self.place = place
    }

    /// Connects to a Unix socket in the file system. Proxies and ``Configuration/Networks/addressPolicy`` do not apply.
    /// - Parameters:
    ///   - path: less than 108 bytes, the limit of the system.
    ///   - host: the host to override; `nil` for every host.
    ///   - port: the port to override; `nil` for every port of the host.
    public static func unixSocket(_ path: String, for host: String?, port: UInt16? = nil) throws(LoadError)
        -> AddressOverride
    {
        try AddressOverride(host, port) { () throws(IOFailure) in try .unix(path) }
    }

    /// Connects to a Unix socket in Linux's abstract namespace, which has no file.
    /// - Parameter name: without the leading zero byte.
    public static func abstractUnixSocket(_ name: String, for host: String?, port: UInt16? = nil) throws(LoadError)
        -> AddressOverride
    {
        try AddressOverride(host, port) { () throws(IOFailure) in try .abstractUnix(name) }
    }

    private init(_ host: String?, _ port: UInt16?, _ unix: () throws(IOFailure) -> SocketAddress) throws(LoadError) {
        let address: SocketAddress
        do throws(IOFailure) { address = try unix() } catch { throw LoadError(error, .preparing) }
        try self.init(host, port, .unix(address))
    }

    /// Uses these addresses instead of resolving a name, of an origin or of a proxy. Names that a proxy resolves are
    /// not affected.
    /// - Parameters:
    ///   - addresses: IPv4 or IPv6 addresses without brackets and zone; at least one.
    ///   - host: `nil` for every name; addresses in URLs are not overridden then.
    public static func addresses(_ addresses: [String], of host: String?, port: UInt16? = nil) throws(LoadError)
        -> AddressOverride
    {
        var all: [[UInt8]] = []
        for text in addresses {
            guard let bytes = Origin.Host.addressBytes(text) else {
                throw .invalidOverride("not an IP address: \(text)")
            }
            all.append(bytes)
        }
        guard !all.isEmpty else { throw .invalidOverride("no address of \(host ?? "any host")") }
        return try AddressOverride(host, port, .addresses(all))
    }

    /// Connects to another host and port. Through proxies as well: an HTTP proxy is asked for a tunnel, even for
    /// `http`, because a forwarded request would name the URL's host.
    /// - Parameters:
    ///   - host: the host to override; `nil` for every host.
    ///   - other: the host to connect to; `nil` for the same host.
    ///   - otherPort: the port to connect to; `nil` for the same port.
    public static func connect(
        _ host: String?, port: UInt16? = nil, to other: String?, onPort otherPort: UInt16? = nil
    ) throws(LoadError) -> AddressOverride {
        try AddressOverride(host, port, .target(parse(other), otherPort))
    }

    private static func parse(_ host: String?) throws(LoadError) -> Origin.Host? {
        guard let host else { return nil }
        do throws(WireViolation) { return try Origin.Host(host) } catch { throw LoadError(error, .preparing) }
    }

    func matches(_ host: Origin.Host, _ port: UInt16) -> Bool {
        (self.host == nil || self.host == host) && (self.port == nil || self.port == port)
    }
}

/// The address overrides of a configuration; the first one that matches applies.
public struct AddressOverrides: Sendable, Hashable, ExpressibleByArrayLiteral {
    private let all: [AddressOverride]

    /// Creates the list; the first entry that matches applies.
    public init(_ overrides: [AddressOverride]) { all = overrides }
    public init(arrayLiteral overrides: AddressOverride...) { all = overrides }

    /// Returns the host and port that connections, or tunnels of a proxy, are made to.
    func target(of origin: Origin) -> (host: Origin.Host, port: UInt16) {
        for case .target(let host, let port) in all.lazy.filter({ $0.matches(origin.host, origin.port) }).map(\.place) {
            return (host ?? origin.host, port ?? origin.port)
        }
        return (origin.host, origin.port)
    }

    func moves(_ origin: Origin) -> Bool { target(of: origin) != (origin.host, origin.port) }

    func unixSocket(for origin: Origin) -> SocketAddress? {
        for case .unix(let address) in all.lazy.filter({ $0.matches(origin.host, origin.port) }).map(\.place) {
            return address
        }
        return nil
    }

    func addresses(of host: Origin.Host, _ port: UInt16) -> [SocketAddress]? {
        for override in all where override.matches(host, port) {
            guard case .addresses(let addresses) = override.place, override.host != nil || !host.isAddress else {
                continue
            }
            return addresses.compactMap { SocketAddress(octets: $0, port: port) }
        }
        return nil
    }
}

extension LoadError {
    fileprivate static func invalidOverride(_ detail: String) -> LoadError {
        LoadError(.badURL, phase: .preparing, party: .local, detail: detail)
    }
}

extension Origin.Host {
    /// Returns the bytes of an address written without brackets and zone; `nil` for other text.
    static func addressBytes(_ text: String) -> [UInt8]? {
        switch (try? Origin.Host(text.contains(":") ? "[\(text)]" : text))?.kind {
        case .ipv4(let bytes), .ipv6(let bytes, nil): bytes
        default: nil
        }
    }
}

extension SocketAddress {
    /// Makes an address of four or sixteen bytes; fails for another number.
    init?(octets: [UInt8], port: UInt16) {
        switch octets.count {
        case 4: self = .ipv4((octets[0], octets[1], octets[2], octets[3]), port: port)
        case 16: self = .ipv6(octets, port: port)
        default: return nil
        }
    }
}
