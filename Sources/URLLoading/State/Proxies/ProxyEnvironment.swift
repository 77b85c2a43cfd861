// SPDX-License-Identifier: Apache-2.0

// The proxies in the environment variables. There is no standard; this follows curl, with two exceptions. Servers on
// this machine are always reached directly, because a proxy's "localhost" is the proxy itself (docs/decisions/). And
// HTTP_PROXY in capitals counts, as in other clients, unless a web server may have set it.

import URLLoadingIO
import URLLoadingWire

/// The proxy chains by scheme: `http`, `https`, and all others.
struct ProxySchemes: Sendable {
    let http: Result<ProxyChain, LoadError>?
    let https: Result<ProxyChain, LoadError>?
    let others: Result<ProxyChain, LoadError>?
    /// The proxy chain for `ftp`, instead of `others`.
    var ftp: Result<ProxyChain, LoadError>?

    var isEmpty: Bool { http == nil && https == nil && others == nil && ftp == nil }

    func chain(_ scheme: String) throws(LoadError) -> ProxyChain? {
        switch scheme {
        case "http", "ws": try http?.get()
        case "https", "wss": try https?.get()
        case "ftp", "ftps": try (ftp ?? others)?.get()
        default: try others?.get()
        }
    }
}

extension ProxyBypass {
    /// The current exceptions in `no_proxy`.
    package static var environment: ProxyBypass { ProxyEnvironment.current.bypass }
}

struct ProxyEnvironment: Sendable {
    private(set) var schemes: ProxySchemes
    private(set) var bypass: ProxyBypass

    /// - Parameter value: returns the value of a variable; `nil` if it is not set.
    init(_ value: (String) -> String?) {
        func set(_ name: String) -> String? { value(name).flatMap { $0.isEmpty ? nil : $0 } }
        // In a CGI program, HTTP_PROXY contains the "Proxy" field of the client's request (RFC 3875 §4.1.18,
        // CVE-2016-5385).
        let mayBeForged = value("REQUEST_METHOD") != nil
        let all = Self.chain("all_proxy", set("all_proxy") ?? set("ALL_PROXY"))
        schemes = ProxySchemes(
            http: Self.chain("http_proxy", set("http_proxy") ?? (mayBeForged ? nil : set("HTTP_PROXY"))) ?? all,
            https: Self.chain("https_proxy", set("https_proxy") ?? set("HTTPS_PROXY")) ?? all, others: all,
            ftp: Self.chain("ftp_proxy", set("ftp_proxy") ?? set("FTP_PROXY")))
        bypass = ProxyBypass(set("no_proxy") ?? set("NO_PROXY") ?? "")
    }

    static var current: ProxyEnvironment { ProxyEnvironment(Environment.value) }

    /// The environment with other values of some variables.
    static func withVariables(_ variables: [String: String]) -> ProxyEnvironment {
        ProxyEnvironment { variables[$0] ?? Environment.value($0) }
    }

    /// Returns the environment with other exceptions; unchanged for `nil`.
    func except(_ bypass: ProxyBypass?) -> ProxyEnvironment {
        var environment = self
        if let bypass { environment.bypass = bypass }
        return environment
    }

    /// Returns the environment with changed proxy chains. An invalid variable stays an error.
    func mapped(_ change: (ProxyChain?) throws(LoadError) -> ProxyChain?) -> ProxyEnvironment {
        func changed(_ proxyChain: Result<ProxyChain, LoadError>?) -> Result<ProxyChain, LoadError>? {
            do throws(LoadError) { return try change(try proxyChain?.get()).map { .success($0) } } catch {
                return .failure(error)
            }
        }
        var environment = self
        environment.schemes = ProxySchemes(
            http: changed(schemes.http), https: changed(schemes.https), others: changed(schemes.others),
            // Without a proxy of its own, ftp has that of `others`.
            ftp: schemes.ftp.flatMap(changed))
        return environment
    }

    /// Whether the environment names no proxy.
    var isEmpty: Bool { schemes.isEmpty }

    private static func chain(_ name: String, _ text: String?) -> Result<ProxyChain, LoadError>? {
        guard let text else { return nil }
        return Result { () throws(LoadError) in
            do throws(LoadError) { return [try Proxy(text)] } catch {
                // An invalid variable is an error: a direct connection might be forbidden.
                throw .badProxy("\(name): \(error.detail ?? "")")
            }
        }
    }

    /// Returns the proxy chain to an origin.
    /// - Parameter scheme: the scheme of the URL; for a stream, any other.
    func chain(to host: Origin.Host, port: UInt16, scheme: String) throws(LoadError) -> ProxyChain {
        guard !isEmpty, !host.isThisMachine, !bypass.contains(host, port) else { return .direct }
        return try schemes.chain(scheme) ?? .direct
    }
}
