// SPDX-License-Identifier: Apache-2.0

// The options of authentication.

import FoundationEssentials
import Glibc
import URLLoading

extension OptionTable {
    static let login: [OptionRule] = [
        OptionRule(
            .login, "u", "user", "USER[:PASSWORD]",
            "user and password for the servers of the URLs; a missing password is asked for"
        ) {
            $0.login.take(user: $1)
        }.like(wget: "--user=USER --password=…", httpie: "-a USER:PASSWORD"),
        OptionRule(
            .login, nil, flag: "basic", "Basic only, sent preemptively: over http the password is readable"
        ) {
            $0.login.allow(.basic)
        }.like(wget: "--auth-no-challenge", httpie: "-A basic"),
        OptionRule(.login, nil, flag: "digest", "Digest only") { $0.login.allow(.digest) }
            .like(httpie: "-A digest"),
        OptionRule(
            .login, nil, flag: "negotiate",
            "Kerberos only: a ticket of your cache, or obtained with -u USER@REALM"
        ) { $0.login.allow(.negotiate) },
        OptionRule(.login, nil, flag: "ntlm", "NTLM only; USER may be DOMAIN\\USER") { $0.login.allow(.ntlm) },
        OptionRule(.login, nil, flag: "anyauth", "the strongest scheme that the server offers (default)") {
            $0.login.methods = nil
        },
        OptionRule(.login, nil, "oauth2-bearer", "TOKEN", "send this token to the servers of the URLs") {
            (options, text) throws(UsageError) in
            options.login.token = try OptionValue.token(text)
        }.also("bearer").like(httpie: "-A bearer -a TOKEN"),
        OptionRule(
            .login, nil, "aws-sigv4", "PROVIDER1[:…]",
            "sign for PROVIDER1[:PROVIDER2[:REGION[:SERVICE]]] with the key of -u or of ~/.aws"
        ) { (options, text) throws(UsageError) in
            options.login.signature = try SignatureOption(text)
        },
        OptionRule(.login, nil, "ftp-account", "TEXT", "for ftp servers that ask for an account besides a password") {
            $0.ftp.account = $1
        },
        OptionRule(.login, "n", flag: "netrc", "users and passwords from ~/.netrc, or the file that NETRC names") {
            $0.login.netrc = .standard
        }.also("netrc-optional").like(wget: "(default)", httpie: "(default)"),
        OptionRule(.login, nil, "netrc-file", "FILE", "users and passwords from FILE, in the format of netrc") {
            (options, path) throws(UsageError) in
            try OptionValue.readable(path, "--netrc-file")
            options.login.netrc = .file(URL(filePath: path))
        },
        OptionRule(.login, nil, flag: "proxy-basic", "proxy authentication: Basic only") {
            $0.login.allowProxy(.basic)
        },
        OptionRule(
            .login, nil, flag: "proxy-digest",
            "proxy authentication: Digest only; nothing is sent before a 407"
        ) { $0.login.allowProxy(.digest) },
        OptionRule(.login, nil, flag: "proxy-negotiate", "proxy authentication: Kerberos only") {
            $0.login.allowProxy(.negotiate)
        },
        OptionRule(.login, nil, flag: "proxy-ntlm", "proxy authentication: NTLM only") { $0.login.allowProxy(.ntlm) },
        OptionRule(
            .login, nil, flag: "proxy-anyauth", "proxy authentication: the strongest scheme offered, only after a 407"
        ) { options in
            (options.login.proxyMethods, options.login.waitsForProxyChallenge) = (nil, true)
        },
    ]
}

extension OptionValue {
    /// Checked before the first load, where the cause is clear: a missing file would otherwise fail later and
    /// elsewhere.
    static func readable(_ path: String, _ option: String) throws(UsageError) {
        guard access(path, R_OK) == 0 else {
            throw UsageError("\(option): \(path) cannot be read: \(String(cString: strerror(errno)))")
        }
    }

    /// The error does not contain the token: it is a secret.
    static func token(_ text: String) throws(UsageError) -> String {
        // RFC 6750 §2.1 limits the characters of a token; the library would not send any other.
        guard (try? BearerTokens(for: [], token: text)) != nil else {
            throw UsageError("a token has letters, digits and -._~+/= in it, and nothing else")
        }
        return text
    }
}
