// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Decides which requests go through which proxies.
///
/// ```swift
/// configuration.networks.proxyPolicy = .none
/// configuration.networks.proxyPolicy = .fixed([try Proxy("socks5://gate.example:1080")], except: ["intern.example"])
/// configuration.networks.proxyPolicy = .custom { url in url.host() == "intern.example" ? [.direct] : [chain, other] }
/// ```
/// A redirect is a new request and decided anew. Requests that a custom handler answers, and `file` and `data` URLs,
/// use no proxy. Connections through different proxies, or with different credentials for one proxy, are not shared.
public struct ProxyPolicy: Sendable {
    enum Choice: Sendable {
        case none
        case environment(ProxyBypass?)
        case given(ProxyEnvironment)
        case automatic(fallback: [ProxyChain])
        case fixed(ProxyChain, ProxyBypass)
        case schemes(ProxySchemes, ProxyBypass)
        case decided(@Sendable (URL) async throws -> [ProxyChain])
    }
    let choice: Choice

    /// Connects directly to the origin, whatever the environment says.
    public static let none = ProxyPolicy(choice: .none)

    /// Uses `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` as they are set when the session is made. The
    /// default.
    ///
    /// `http_proxy` applies to `http` URLs, `https_proxy` to `https` URLs, and `all_proxy` to streams and to schemes
    /// without a variable of their own. Lower case names precede upper case ones. See ``Proxy/init(_:)`` for the
    /// values, and ``ProxyBypass`` for `no_proxy`. An invalid value ends the load with ``LoadError/Reason/badProxy``.
    /// Hosts of this machine (`localhost`, 127.0.0.0/8, `::1`) are always reached directly. `HTTP_PROXY` in upper case
    /// is ignored in a CGI program, where the client of the web server can set it.
    public static let environment = ProxyPolicy(choice: .environment(nil))

    /// Uses the environment's proxies, with other exceptions than those of `no_proxy`.
    public static func environment(except bypass: ProxyBypass) -> ProxyPolicy {
        ProxyPolicy(choice: .environment(bypass))
    }

    /// Uses the environment's proxies as they are now, each chain changed by a closure; its argument is `nil` for a
    /// scheme without a proxy.
    package static func environment(
        except bypass: ProxyBypass?, _ change: (ProxyChain?) throws(LoadError) -> ProxyChain?
    ) -> ProxyPolicy {
        ProxyPolicy(choice: .given(ProxyEnvironment.current.except(bypass).mapped(change)))
    }

    /// Uses the environment's proxies as they are now, with other values of some variables: for servers on this
    /// machine, too, because a proxy was named.
    /// - Parameter variables: `http_proxy`, `https_proxy`, `ftp_proxy` and `all_proxy`.
    package static func environment(
        replacing variables: [String: String], except bypass: ProxyBypass?
    ) -> ProxyPolicy {
        let environment = ProxyEnvironment.withVariables(variables).except(bypass)
        return ProxyPolicy(choice: .schemes(environment.schemes, environment.bypass))
    }

    /// Uses the environment's proxies or, if it names none, the desktop's settings, PAC scripts included.
    ///
    /// libproxy, which is looked up at run time, provides the desktop's settings; if it is not installed, there are
    /// none. It learns scheme, host and port of a URL, and may take time, because it loads the script. If it fails, the
    /// load ends with ``LoadError/Reason/proxyResolutionFailed``, because a required proxy must not be bypassed.
    public static let automatic = automatic(fallback: [])

    /// Does the same as ``automatic``, with chains to use if libproxy fails.
    ///
    /// ```swift
    /// configuration.networks.proxyPolicy = .automatic(fallback: [.direct])
    /// ```
    /// - Parameter proxyChains: the chains to try in order; an empty list fails the load.
    public static func automatic(fallback proxyChains: [ProxyChain]) -> ProxyPolicy {
        ProxyPolicy(choice: .automatic(fallback: proxyChains))
    }

    /// Uses one chain for all hosts, except for some.
    /// - Parameter bypass: the hosts that are reached directly; hosts of this machine are not included automatically.
    public static func fixed(_ chain: ProxyChain, except bypass: ProxyBypass = .nothing) -> ProxyPolicy {
        ProxyPolicy(choice: .fixed(chain, bypass))
    }

    /// Uses one chain for each scheme, as URLSession's settings do. An invalid proxy fails the loads of its scheme;
    /// `nil` connects directly.
    package static func schemes(
        http: Result<ProxyChain, LoadError>?, https: Result<ProxyChain, LoadError>?,
        others: Result<ProxyChain, LoadError>?,
        except bypass: ProxyBypass
    ) -> ProxyPolicy {
        ProxyPolicy(choice: .schemes(ProxySchemes(http: http, https: https, others: others), bypass))
    }

    /// Asks a closure for every request.
    ///
    /// - Parameter decide: receives the request's URL; for a stream, `tcp://host:port`. Returns the chains to try in
    ///   order: the next one is used if a proxy of the previous one could not be reached. Only ``ProxyChain/direct``
    ///   connects directly; an empty list is ``LoadError/Reason/badDecision``. An error thrown by the closure ends the
    ///   load with ``LoadError/Reason/decisionFailed``. The closure runs in a task of its own, which is cancelled with
    ///   the load.
    public static func custom(_ decide: @escaping @Sendable (URL) async throws -> [ProxyChain]) -> ProxyPolicy {
        ProxyPolicy(choice: .decided(decide))
    }
}
