// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import URLLoadingWire

extension URL {
    /// The URL without userinfo, as it may be stored.
    package var withoutUserinfo: URL {
        guard absoluteString.utf8.contains(UInt8(ascii: "@")) else { return self }
        if let reference = try? URIReference(absoluteString) {
            return URL(string: reference.removingUserinfo.absoluteString) ?? self
        }
        return URL(string: String(decoding: Array(absoluteString.utf8).withoutUserinfo, as: UTF8.self)) ?? self
    }

    /// The URL for descriptions of the classic API: without userinfo and the values of secret parameters.
    package var redactedText: String { Secrets.hidden(inURL: absoluteString) }

    fileprivate var hasClearAuthority: Bool {
        guard absoluteString.utf8.contains(UInt8(ascii: "@")) else { return true }
        let rest = absoluteString.dropFirst(scheme.map { $0.count + 1 } ?? 0)
        return rest.hasPrefix("//") && (try? URIReference(absoluteString)) != nil
    }

    /// The host in the form of DNS and TLS; `nil` without one. An internationalised name is its A-label (RFC 5890
    /// §2.3.2.1), such as `xn--bcher-kva.example`: every log can show it, and names that look alike stay distinct (RFC
    /// 3986 §7.6, UTS 36).
    package var hostInNormalForm: String? {
        guard let host = host() else { return nil }
        let isPlain = host.utf8.allSatisfy { $0 < 0x80 && $0 != UInt8(ascii: "%") }
        return isPlain ? host : (try? Origin.Host(host))?.description ?? host
    }

    /// The URL for logs, without userinfo, query and fragment, which often contain secrets.
    package var withoutSecrets: String {
        let scheme = scheme?.lowercased() ?? ""
        // All of a data URL is content.
        guard scheme != "data" else { return "data:…" }
        guard hasClearAuthority else { return "\(scheme):…" }
        var text = "\(scheme):"
        if let host = hostInNormalForm { text += host.contains(":") ? "//[\(host)]" : "//\(host)" }
        if let port { text += ":\(port)" }
        return text + path()
    }
}

extension Request {
    /// The URL as a log, a span or an archive may show it: without userinfo, and with `(removed)` in place of the value
    /// of each parameter whose name says that it is a secret, such as `token` or `api_key`. The path is not examined.
    /// Of a `data` URL, and of one that does not clearly separate the host from a password, only the scheme is shown.
    ///
    /// ```swift
    /// span["url.full"] = load.request.redactedURL     // https://example.org/search?q=swift&token=(removed)
    /// ```
    public var redactedURL: String {
        let isShown = url.hasClearAuthority && url.scheme?.lowercased() != "data"
        return isShown ? url.redactedText : url.withoutSecrets
    }
}
