// SPDX-License-Identifier: Apache-2.0

// Options for the way to a host: proxies, address overrides, local interface. With curl's meanings.

import URLLoading
import URLLoadingIO
import URLLoadingWire

struct NetworkOptions: Sendable {
    /// An address family.
    enum Family: Sendable, Hashable { case ipv4, ipv6 }

    /// The only address family to connect to; `nil` for both.
    var family: Family?
    var proxy: Proxy?
    /// httpie's proxies by scheme, in place of the environment's: `http_proxy` and the like.
    var schemeProxies: [String: String] = [:]
    /// A SOCKS proxy in front of ``proxy``.
    var preproxy: Proxy?
    /// `--proxy ""`: no proxy, also if the environment names one.
    var forbidsProxies = false
    var proxyUser: String?
    /// The hosts without a proxy, in place of no_proxy in the environment.
    var bypass: ProxyBypass?
    var overrides: [AddressOverride] = []
    var interface: NetworkInterface?
    var sockets = SocketSetup()

    /// Returns the proxy policy; `nil` for the session's default.
    func policy() throws(UsageError) -> ProxyPolicy? {
        if forbidsProxies { return ProxyPolicy.none }
        if !schemeProxies.isEmpty { return .environment(replacing: schemeProxies, except: bypass) }
        guard let proxy else {
            guard proxyUser != nil || preproxy != nil else { return bypass.map { .environment(except: $0) } }
            // Checked here, so that an error in the command line is reported before the load begins.
            if let http = try? Proxy(.http, host: "localhost") { _ = try withUser(http) }
            return .environment(except: bypass) { [self] (proxyChain) throws(LoadError) in
                guard var proxies = proxyChain?.proxies, let last = proxies.popLast() else {
                    return preproxy.map { [$0] }
                }
                do throws(UsageError) { proxies.append(try withUser(last)) } catch {
                    throw LoadError(.badProxy, phase: .preparing, party: .local, detail: error.words)
                }
                return ProxyChain([preproxy].compactMap(\.self) + proxies)
            }
        }
        return .fixed(ProxyChain([preproxy, try withUser(proxy)].compactMap(\.self)), except: bypass ?? .environment)
    }

    private func withUser(_ proxy: Proxy) throws(UsageError) -> Proxy {
        guard let proxyUser else { return proxy }
        let parts = proxyUser.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        do throws(LoadError) {
            return try proxy.asked(byDefault: parts[0], parts.count > 1 ? parts[1] : nil)
        } catch { throw UsageError("--proxy-user: \(error.detail ?? "")") }
    }

    // MARK: Values

    /// - Parameter scheme: the scheme that the option implies; `nil` if the text may contain one.
    static func proxy(_ text: String, _ option: String, scheme: String? = nil) throws(UsageError) -> Proxy {
        let written = text.firstRange(of: "://").map { text[..<$0.lowerBound].lowercased() }
        if let scheme, let written, written != scheme {
            throw UsageError("\(option) is for \(scheme)://; --proxy takes \(written):// if it is a kind of proxy")
        }
        do throws(LoadError) { return try Proxy((written == nil ? scheme.map { $0 + "://" } ?? "" : "") + text) } catch
        {
            // The error must not contain the text, which may include a password.
            throw UsageError("\(option): \(error.detail ?? "no proxy")")
        }
    }

    /// Parses `HOST:PORT:ADDRESS[,ADDRESS…]`; the host `*` matches every name.
    static func addresses(_ text: String) throws(UsageError) -> AddressOverride {
        let wrong = UsageError("--resolve takes HOST:PORT:ADDRESS[,ADDRESS…], not \(text)")
        guard let (host, afterHost) = field(text.hasPrefix("+") ? text.dropFirst() : text[...]),
            let (portText, rest) = field(afterHost), let port = PortText.number(portText), !host.isEmpty
        else { throw wrong }
        let all = rest.split(separator: ",").map {
            $0.first == "[" && $0.last == "]" ? String($0.dropFirst().dropLast()) : String($0)
        }
        do throws(LoadError) {
            return try .addresses(all, of: host == "*" ? nil : host, port: port)
        } catch { throw UsageError("--resolve: \(error.detail ?? "")") }
    }

    /// Parses `HOST1:PORT1:HOST2:PORT2`; each part may be empty.
    static func target(_ text: String) throws(UsageError) -> AddressOverride {
        guard let (host, afterHost) = field(text[...]), let (portText, afterPort) = field(afterHost),
            let (other, otherText) = field(afterPort),
            let port = port(portText), let otherPort = Self.port(String(otherText))
        else { throw UsageError("--connect-to takes HOST1:PORT1:HOST2:PORT2, not \(text)") }
        do throws(LoadError) {
            return try .connect(
                host.isEmpty ? nil : host, port: port, to: other.isEmpty ? nil : other, onPort: otherPort)
        } catch { throw UsageError("--connect-to: \(error.detail ?? "")") }
    }

    /// Parses `N` or `N-M`, ports above 0.
    static func ports(_ text: String) throws(UsageError) -> ClosedRange<UInt16> {
        let ends = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
            .map { UInt16(AddressText.trimmed($0)) ?? 0 }
        guard let first = ends.first, let last = ends.last, first > 0, first <= last else {
            throw UsageError("--local-port takes a port or a range of ports, such as 20000-20100, not \(text)")
        }
        return first...last
    }

    /// Parses a name or a local address; the prefixes `if!` and `host!` say which.
    static func interface(_ text: String) throws(UsageError) -> NetworkInterface {
        if text.hasPrefix("if!") { return .named(String(text.dropFirst(3))) }
        let isHost = text.hasPrefix("host!")
        do throws(LoadError) { return try .address(isHost ? String(text.dropFirst(5)) : text) } catch {
            guard !isHost else {
                throw UsageError("--interface takes the name of an interface or an address, not \(text)")
            }
            return .named(text)
        }
    }

    /// Returns the text up to the next colon outside brackets, and the text after that colon.
    private static func field(_ text: Substring) -> (String, Substring)? {
        let inside = text.first == "[" ? text.firstIndex(of: "]") : nil
        guard let colon = text[(inside ?? text.startIndex)...].firstIndex(of: ":") else { return nil }
        return (String(text[..<colon]), text[text.index(after: colon)...])
    }

    /// Parses a port. The inner `nil` means an empty text, the outer one an invalid port.
    private static func port(_ text: String) -> UInt16?? {
        if text.isEmpty { return .some(nil) }
        return PortText.number(text).map { .some($0) }
    }
}

extension SocketSetup {
    /// curl's default interval in seconds.
    private static let usualInterval: Int32 = 60
    /// The longest interval that Linux accepts, in seconds (tcp(7), MAX_TCP_KEEPIDLE).
    private static let longestInterval = 32_767
    private static let mostProbes = 127

    mutating func probe(every seconds: Int) {
        let interval = seconds == 0 ? Self.usualInterval : Int32(min(seconds, Self.longestInterval))
        keepAlive = KeepAlive(seconds: interval, count: keepAlive?.count)
    }

    mutating func probe(times count: Int) {
        keepAlive = KeepAlive(
            seconds: keepAlive?.seconds ?? Self.usualInterval, count: Int32(min(count, Self.mostProbes)))
    }
}
