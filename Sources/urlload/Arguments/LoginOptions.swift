// What the command line says of who asks. With curl's names; but a password is sent when a server asks for it, and
// not before.

import FoundationEssentials
import URLLoading

struct LoginOptions: Sendable, Hashable {
    var user: String?
    /// `nil`: to be asked for.
    var password: String?
    var token: String?
    var methods: Set<Challenge.Method>?
    /// With proxies: in whichever way they want, unless it is said.
    var proxyMethods: Set<Challenge.Method>?
    /// Proxies get user and password when they ask, and not before.
    var waitsForProxyChallenge = false
    var netrc: Netrc?

    var needsPassword: Bool { user != nil && password == nil }

    /// `USER[:PASSWORD]`.
    mutating func take(user text: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        (user, password) = (parts[0], parts.count > 1 ? parts[1] : nil)
    }

    mutating func allow(_ method: Challenge.Method) { methods = (methods ?? []).union([method]) }

    mutating func allowProxy(_ method: Challenge.Method) { proxyMethods = (proxyMethods ?? []).union([method]) }

    /// For the servers that the command line names, and for no others that they lead to.
    func settings(_ urls: [URL]) -> Configuration.Authentication {
        var settings = Configuration.Authentication()
        settings.methods = methods
        // What is said of servers is not said of proxies.
        settings.proxyMethods = proxyMethods ?? (methods == nil ? nil : [.negotiate, .digest, .ntlm, .basic])
        settings.waitsForProxyChallenge = waitsForProxyChallenge
        settings.netrc = netrc
        if let user {
            let store = CredentialStore()
            // A password gets a ticket where nothing else was asked for.
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
