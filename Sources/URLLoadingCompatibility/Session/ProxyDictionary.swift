// SPDX-License-Identifier: Apache-2.0

// Converts the classic API's proxy dictionary into a proxy policy.

import Foundation
import URLLoading

extension ProxyPolicy {
    /// - Parameter dictionary: the proxy settings; `nil` for the default of sessions. See
    ///   ``URLSessionConfiguration/connectionProxyDictionary``.
    init?(_ dictionary: [AnyHashable: Any]?) {
        guard let dictionary else { return nil }
        func value(_ key: String) -> Any? { dictionary[AnyHashable(key)] }
        func text(_ key: String) -> String? { value(key) as? String }
        let user = text("kCFProxyUsernameKey")
        let password = text("kCFProxyPasswordKey")
        func chain(_ name: String, _ kind: Proxy.Kind, _ usualPort: Int) -> Result<ProxyChain, LoadError>? {
            let isOn = (value(name + "Enable") as? NSNumber)?.boolValue ?? (value(name + "Enable") as? Bool) ?? false
            guard isOn, let host = text(name + "Proxy"), !host.isEmpty else { return nil }
            let number = (value(name + "Port") as? NSNumber)?.intValue ?? (value(name + "Port") as? Int) ?? usualPort
            return Result { () throws(LoadError) in
                [try Proxy(kind, host: host, port: UInt16(exactly: number) ?? 0, user: user, password: password)]
            }
        }
        let socks = chain("SOCKS", .socks5, 1080)
        self = .schemes(
            http: chain("HTTP", .http, 80) ?? socks, https: chain("HTTPS", .http, 443) ?? socks, others: socks,
            except: ProxyBypass((value("ExceptionsList") as? [Any])?.compactMap { $0 as? String } ?? []))
    }
}
