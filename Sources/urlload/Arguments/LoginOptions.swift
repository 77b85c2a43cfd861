// SPDX-License-Identifier: Apache-2.0

// The options for credentials, with curl's names. Unlike curl, a password is sent only after a server has asked for it.

import FoundationEssentials
import URLLoading

struct LoginOptions: Sendable, Hashable {
    var user: String?
    /// `nil` if the password is to be asked for at the terminal.
    var password: String?
    var token: String?
    var methods: Set<Challenge.Method>?
    /// The authentication schemes for proxies; `nil` for every scheme that a proxy offers.
    var proxyMethods: Set<Challenge.Method>?
    /// True if the proxy gets user and password only after a 407.
    var waitsForProxyChallenge = false
    var netrc: Netrc?
    /// The value of `--aws-sigv4`: user and password are a key, and not sent.
    var signature: SignatureOption?

    var needsPassword: Bool { user != nil && password == nil }

    /// Parses `USER[:PASSWORD]`.
    mutating func take(user text: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        (user, password) = (parts[0], parts.count > 1 ? parts[1] : nil)
    }

    mutating func allow(_ method: Challenge.Method) { methods = (methods ?? []).union([method]) }

    mutating func allowProxy(_ method: Challenge.Method) { proxyMethods = (proxyMethods ?? []).union([method]) }

    /// Limits the credentials to the servers in `urls`, so that a redirect to another server does not get them.
    func settings(_ urls: [URL]) -> Configuration.Authentication {
        var settings = Configuration.Authentication()
        settings.methods = methods
        // The schemes chosen for servers do not restrict those for proxies.
        settings.proxyMethods = proxyMethods ?? (methods == nil ? nil : [.negotiate, .digest, .ntlm, .basic])
        settings.waitsForProxyChallenge = waitsForProxyChallenge
        settings.netrc = netrc
        if let user, signature == nil {
            let store = CredentialStore()
            // With `--negotiate` alone, user and password obtain a Kerberos ticket.
            let method: Challenge.Method = methods == [.negotiate] ? .negotiate : .any
            for url in urls {
                guard let space = try? ProtectionSpace(server: url, method: method) else { continue }
                store.set(Credential(user: user, password: password ?? ""), for: space)
            }
            settings.credentialStore = store
        }
        if let token { settings.bearer = try? BearerTokens(for: urls.map(\.absoluteString), token: token) }
        return settings
    }
}
