// What the environment says of proxies. There is no standard: this is what curl does, but for two things. The
// machine's own servers are not asked for through a proxy, to which "localhost" is itself (docs/decisions/); and
// HTTP_PROXY in capitals counts, as it does elsewhere, unless a web server may have written it.

import URLLoadingIO
import URLLoadingWire

/// A way for each scheme: `http`, `https`, and anything else.
struct ProxySchemes: Sendable {
    let http: Result<ProxyChain, LoadError>?
    let https: Result<ProxyChain, LoadError>?
    let others: Result<ProxyChain, LoadError>?
    /// For `ftp`, in place of the others'.
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
    /// What `no_proxy` says now.
    package static var environment: ProxyBypass { ProxyEnvironment.current.bypass }
}

struct ProxyEnvironment: Sendable {
    private var schemes: ProxySchemes
    private(set) var bypass: ProxyBypass

    /// - Parameter value: of a variable; `nil` if it is not there.
    init(_ value: (String) -> String?) {
        func set(_ name: String) -> String? { value(name).flatMap { $0.isEmpty ? nil : $0 } }
        // A CGI program finds the field "Proxy" of whoever calls it in HTTP_PROXY (RFC 3875 §4.1.18, CVE-2016-5385).
        let mayBeForged = value("REQUEST_METHOD") != nil
        let all = Self.chain("all_proxy", set("all_proxy") ?? set("ALL_PROXY"))
        schemes = ProxySchemes(
            http: Self.chain("http_proxy", set("http_proxy") ?? (mayBeForged ? nil : set("HTTP_PROXY"))) ?? all,
            https: Self.chain("https_proxy", set("https_proxy") ?? set("HTTPS_PROXY")) ?? all, others: all,
            ftp: Self.chain("ftp_proxy", set("ftp_proxy") ?? set("FTP_PROXY")))
        bypass = ProxyBypass(set("no_proxy") ?? set("NO_PROXY") ?? "")
    }

    static var current: ProxyEnvironment { ProxyEnvironment(Environment.value) }

    /// With other exceptions; the same for `nil`.
    func except(_ bypass: ProxyBypass?) -> ProxyEnvironment {
        var environment = self
        if let bypass { environment.bypass = bypass }
        return environment
    }

    /// With other ways. A variable that names no proxy stays what it is.
    func mapped(_ change: (ProxyChain?) throws(LoadError) -> ProxyChain?) -> ProxyEnvironment {
        func changed(_ way: Result<ProxyChain, LoadError>?) -> Result<ProxyChain, LoadError>? {
            do throws(LoadError) { return try change(try way?.get()).map { .success($0) } } catch {
                return .failure(error)
            }
        }
        var environment = self
        environment.schemes = ProxySchemes(
            http: changed(schemes.http), https: changed(schemes.https), others: changed(schemes.others))
        return environment
    }

    /// Whether it names no proxy at all.
    var isEmpty: Bool { schemes.isEmpty }

    private static func chain(_ name: String, _ text: String?) -> Result<ProxyChain, LoadError>? {
        guard let text else { return nil }
        return Result { () throws(LoadError) in
            do throws(LoadError) { return [try Proxy(text)] } catch {
                // Not without a proxy instead: that may be what somebody forbids.
                throw .badProxy("\(name): \(error.detail ?? "")")
            }
        }
    }

    /// The way to an origin.
    /// - Parameter scheme: of the URL; a stream has none of these.
    func chain(to host: Origin.Host, port: UInt16, scheme: String) throws(LoadError) -> ProxyChain {
        guard !isEmpty, !host.isThisMachine, !bypass.contains(host, port) else { return .direct }
        return try schemes.chain(scheme) ?? .direct
    }
}
