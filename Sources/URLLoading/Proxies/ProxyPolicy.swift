public import FoundationEssentials

/// Which requests go through a proxy, and through which.
///
/// ```swift
/// configuration.proxyPolicy = .none
/// configuration.proxyPolicy = .fixed([try Proxy("socks5://gate.example:1080")], except: ["intern.example"])
/// configuration.proxyPolicy = .custom { url in url.host() == "intern.example" ? [.direct] : [way, otherWay] }
/// ```
/// A redirect is a new request and decided anew. Requests that a handler answers, `file` and `data` URLs among
/// them, go nowhere. Connections through different proxies, or with different credentials for one, are never
/// used for one another.
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

    /// Straight to the origin, whatever the environment says.
    public static let none = ProxyPolicy(choice: .none)

    /// What `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` say when the session is made, in small letters or in
    /// capitals; small ones go first. The default.
    ///
    /// `http_proxy` is for URLs of `http`, `https_proxy` for those of `https`, `all_proxy` for both where they have none
    /// of their own, and for streams. See ``Proxy/init(_:)`` for what they may hold and ``ProxyBypass`` for `no_proxy`.
    /// A variable that names no proxy ends the load with ``LoadError/Reason/badProxy``. Hosts of this machine
    /// (`localhost`, 127.0.0.0/8, `::1`) are always reached directly. `HTTP_PROXY` in capitals does not count in a CGI
    /// program, where whoever calls can set it.
    public static let environment = ProxyPolicy(choice: .environment(nil))

    /// The same, with other exceptions than those of `no_proxy`.
    public static func environment(except bypass: ProxyBypass) -> ProxyPolicy {
        ProxyPolicy(choice: .environment(bypass))
    }

    /// What the environment says now, each of its ways made another; of a scheme that has none, `nil`.
    package static func environment(
        except bypass: ProxyBypass?, _ change: (ProxyChain?) throws(LoadError) -> ProxyChain?
    ) -> ProxyPolicy {
        ProxyPolicy(choice: .given(ProxyEnvironment.current.except(bypass).mapped(change)))
    }

    /// What the environment says; if it names no proxy, what the desktop's settings say, scripts (PAC) included.
    ///
    /// The latter are known to libproxy, which is looked for at run time; where it is not installed there are none. It
    /// is told scheme, host and port of a URL and nothing more, and may take its time: a script is loaded by it. Where it
    /// fails the load ends with ``LoadError/Reason/proxyResolutionFailed``: a proxy that somebody wants is not passed by.
    public static let automatic = automatic(fallback: [])

    /// The same, with ways for when the desktop's settings cannot be asked.
    ///
    /// ```swift
    /// configuration.proxyPolicy = .automatic(fallback: [.direct])
    /// ```
    /// - Parameter ways: to try in order; an empty list is the error.
    public static func automatic(fallback ways: [ProxyChain]) -> ProxyPolicy {
        ProxyPolicy(choice: .automatic(fallback: ways))
    }

    /// Always the same way, but for some hosts.
    /// - Parameter bypass: which hosts are reached directly; those of this machine are not by themselves.
    public static func fixed(_ chain: ProxyChain, except bypass: ProxyBypass = .nothing) -> ProxyPolicy {
        ProxyPolicy(choice: .fixed(chain, bypass))
    }

    /// One for each scheme, as the classic shape has them. A proxy that is none fails the loads it is for; `nil` is the
    /// direct way.
    package static func schemes(
        http: Result<ProxyChain, LoadError>?, https: Result<ProxyChain, LoadError>?,
        others: Result<ProxyChain, LoadError>?,
        except bypass: ProxyBypass
    ) -> ProxyPolicy {
        ProxyPolicy(choice: .schemes(ProxySchemes(http: http, https: https, others: others), bypass))
    }

    /// A closure is asked for every request.
    ///
    /// - Parameter decide: gets the request's URL; of a stream, `tcp://host:port`. Returns ways to try in order: the
    ///   next one is tried when a proxy of the one before could not be reached. A way is direct only if it says so, and
    ///   an empty list is ``LoadError/Reason/badDecision``. What it throws ends the load with
    ///   ``LoadError/Reason/decisionFailed``. It runs in a task of its own, which is cancelled with the load.
    public static func custom(_ decide: @escaping @Sendable (URL) async throws -> [ProxyChain]) -> ProxyPolicy {
        ProxyPolicy(choice: .decided(decide))
    }
}
