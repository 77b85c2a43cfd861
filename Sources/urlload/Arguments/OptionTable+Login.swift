// The options of authentication.

import FoundationEssentials
import URLLoading

extension OptionTable {
    static let login: [OptionRule] = [
        OptionRule(
            .login, "u", "user", "USER[:PASSWORD]",
            "who asks, for the servers of the URLs; a password left out is asked for"
        ) {
            $0.login.take(user: $1)
        }.like(wget: "--user=USER --password=…", httpie: "-a USER:PASSWORD"),
        OptionRule(
            .login, nil, flag: "basic", "with Basic alone, and at once: over http the password is readable on the way"
        ) {
            $0.login.allow(.basic)
        }.like(wget: "--auth-no-challenge", httpie: "-A basic"),
        OptionRule(.login, nil, flag: "digest", "with Digest alone") { $0.login.allow(.digest) }
            .like(httpie: "-A digest"),
        OptionRule(
            .login, nil, flag: "negotiate",
            "with a Kerberos ticket alone: of your cache, or got with the password of -u USER@REALM"
        ) { $0.login.allow(.negotiate) },
        OptionRule(.login, nil, flag: "ntlm", "with NTLM alone; USER may be DOMAIN\\USER") { $0.login.allow(.ntlm) },
        OptionRule(.login, nil, flag: "anyauth", "with the strongest way the server offers (default)") {
            $0.login.methods = nil
        },
        OptionRule(.login, nil, "oauth2-bearer", "TOKEN", "send this token to the servers of the URLs") {
            (options, text) throws(UsageError) in
            options.login.token = try OptionValue.token(text)
        }.also("bearer").like(httpie: "-A bearer -a TOKEN"),
        OptionRule(.login, nil, "ftp-account", "TEXT", "for ftp servers that ask for an account besides a password") {
            $0.ftp.account = $1
        },
        OptionRule(.login, "n", flag: "netrc", "users and passwords from ~/.netrc, or the file that NETRC names") {
            $0.login.netrc = .standard
        }.also("netrc-optional").like(wget: "(default)", httpie: "(default)"),
        OptionRule(.login, nil, "netrc-file", "FILE", "the same from FILE") { (options, path) throws(UsageError) in
            try OptionValue.readable(path, "--netrc-file")
            options.login.netrc = .file(URL(filePath: path))
        },
        OptionRule(.login, nil, flag: "proxy-basic", "proxies get --proxy-user with Basic alone") {
            $0.login.allowProxy(.basic)
        },
        OptionRule(
            .login, nil, flag: "proxy-digest", "with Digest alone; the password is not sent before the proxy asks"
        ) { $0.login.allowProxy(.digest) },
        OptionRule(.login, nil, flag: "proxy-negotiate", "with a Kerberos ticket alone") {
            $0.login.allowProxy(.negotiate)
        },
        OptionRule(.login, nil, flag: "proxy-ntlm", "with NTLM alone") { $0.login.allowProxy(.ntlm) },
        OptionRule(
            .login, nil, flag: "proxy-anyauth", "with the strongest method the proxy offers, and only when it asks"
        ) { options in
            (options.login.proxyMethods, options.login.waitsForProxyChallenge) = (nil, true)
        },
    ]
}

extension OptionValue {
    /// A file that was named is meant: to go on without it would fail elsewhere, and later.
    static func readable(_ path: String, _ option: String) throws(UsageError) {
        guard FileManager.default.isReadableFile(atPath: path) else {
            throw UsageError("\(option): \(path) cannot be read")
        }
    }

    /// The words leave it out: it is a secret.
    static func token(_ text: String) throws(UsageError) -> String {
        // Only what can be said: another would be sent by nobody.
        guard (try? BearerTokens(for: [], token: text)) != nil else {
            throw UsageError("a token has letters, digits and -._~+/= in it, and nothing else")
        }
        return text
    }
}
