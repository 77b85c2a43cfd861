// SPDX-License-Identifier: Apache-2.0

import URLLoading
import URLLoadingIO

extension OptionTable {
    static let connection: [OptionRule] = [
        OptionRule(.connection, "4", flag: "ipv4", "connect to IPv4 addresses alone") { $0.networks.family = .ipv4 }
            .also("inet4-only").like(wget: "-4"),
        OptionRule(.connection, "6", flag: "ipv6", "connect to IPv6 addresses alone") { $0.networks.family = .ipv6 }
            .also("inet6-only").like(wget: "-6"),
        OptionRule(
            .connection, "x", "proxy", "PROXY",
            "the proxy: http://, https:// or socks4:// to socks5h://HOST:PORT; '' for none"
        ) { (options, text) throws(UsageError) in
            options.networks.forbidsProxies = text.isEmpty
            options.networks.proxy = text.isEmpty ? nil : try NetworkOptions.proxy(text, "--proxy")
        }.like(wget: "-e http_proxy=…", httpie: "--proxy http:PROXY"),
        OptionRule(.connection, nil, "socks5", "HOST:PORT", "through this SOCKS 5 proxy; names are resolved here") {
            (options, text) throws(UsageError) in
            options.networks.proxy = try NetworkOptions.proxy(text, "--socks5", scheme: "socks5")
        },
        OptionRule(.connection, nil, "socks5-hostname", "HOST:PORT", "like --socks5, but the proxy resolves the names")
        {
            (options, text) throws(UsageError) in
            options.networks.proxy = try NetworkOptions.proxy(text, "--socks5-hostname", scheme: "socks5h")
        },
        OptionRule(.connection, nil, "socks4", "HOST:PORT", "through this SOCKS 4 proxy; names are resolved here") {
            (options, text) throws(UsageError) in
            options.networks.proxy = try NetworkOptions.proxy(text, "--socks4", scheme: "socks4")
        },
        OptionRule(
            .connection, nil, "socks4a", "HOST:PORT", "like --socks4, but the proxy resolves the names (SOCKS 4A)"
        ) {
            (options, text) throws(UsageError) in
            options.networks.proxy = try NetworkOptions.proxy(text, "--socks4a", scheme: "socks4a")
        },
        OptionRule(.connection, nil, "preproxy", "PROXY", "a SOCKS proxy in front of the proxy") {
            (options, text) throws(UsageError) in
            options.networks.preproxy = try NetworkOptions.proxy(text, "--preproxy")
        },
        OptionRule(
            .connection, "U", "proxy-user", "USER[:PASSWORD]",
            "proxy authentication; a missing password is asked for"
        ) { $0.networks.proxyUser = $1 },
        OptionRule(
            .connection, nil, "noproxy", "LIST", "hosts to reach without a proxy, in place of no_proxy; * for all"
        ) {
            $0.networks.bypass = ProxyBypass($1)
        }.like(wget: "-e no_proxy=…"),
        OptionRule(.connection, nil, "unix-socket", "PATH", "connect to this Unix socket, whatever the host") {
            (options, text) throws(UsageError) in
            do throws(LoadError) { options.networks.overrides.append(try .unixSocket(text, for: nil)) } catch {
                throw UsageError("--unix-socket: no path of a socket: \(text)")
            }
        },
        OptionRule(
            .connection, nil, "abstract-unix-socket", "NAME", "like --unix-socket, for a name in the abstract namespace"
        ) {
            (options, text) throws(UsageError) in
            do throws(LoadError) { options.networks.overrides.append(try .abstractUnixSocket(text, for: nil)) } catch {
                throw UsageError("--abstract-unix-socket: no name of a socket: \(text)")
            }
        },
        OptionRule(
            .connection, nil, "resolve", "HOST:PORT:ADDRESS",
            "use this address for the host, or several, separated by commas"
        ) { (options, text) throws(UsageError) in
            options.networks.overrides.append(try NetworkOptions.addresses(text))
        },
        OptionRule(
            .connection, nil, "connect-to", "A:PORT:B:PORT", "connect to B in place of A; parts may be empty"
        ) { (options, text) throws(UsageError) in
            options.networks.overrides.append(try NetworkOptions.target(text))
        },
        OptionRule(
            .connection, nil, "local-port", "N[-M]", "connect from this port, or from the first free one up to M"
        ) { (options, text) throws(UsageError) in
            options.networks.sockets.ports = try NetworkOptions.ports(text)
        },
        OptionRule(
            .connection, nil, "keepalive-time", "SECONDS", "let TCP probe a silent connection that often; 0: every 60"
        ) { (options, text) throws(UsageError) in
            options.networks.sockets.probe(every: try OptionValue.count(text, "--keepalive-time", from: 0))
        },
        OptionRule(
            .connection, nil, "keepalive-cnt", "N", "end the connection after N unanswered probes (--keepalive-time)"
        ) { (options, text) throws(UsageError) in
            options.networks.sockets.probe(times: try OptionValue.count(text, "--keepalive-cnt", from: 1))
        },
        OptionRule(.connection, nil, flag: "no-keepalive", "let TCP send no probes (default)") {
            $0.networks.sockets.keepAlive = nil
        },
        OptionRule(.connection, nil, "interface", "NAME", "connect from this interface, or from this address of it") {
            (options, text) throws(UsageError) in
            options.networks.interface = try NetworkOptions.interface(text)
        }.like(wget: "--bind-address=ADDRESS"),
    ]
}
