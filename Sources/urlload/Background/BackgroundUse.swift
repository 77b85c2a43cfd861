// SPDX-License-Identifier: Apache-2.0

// What `urlload bg get` and `bg put` do with each option: one entry for every option of the command line.

/// The treatment of one option in the background.
enum BackgroundUse: Sendable, Equatable {
    /// Sent to the agent with the transfer, or applied to its files.
    case carried
    /// Concerns the messages of this command, or is always so.
    case local
    /// Refused, with the reason.
    case refused(String)

    private static let body = "the body of a background transfer is a file (-T)"
    private static let route = "the agent connects directly, or through the proxies of the environment"
    private static let socket = "the agent sets no options of sockets"
    private static let output = "nothing is written here: the transfer goes on without this command"
    private static let part = "the agent continues its own interrupted downloads, and no other part"
    private static let retry = "the agent retries until --max-time, by rules of its own"
    private static let condition = "an answer without a body would be saved as the file"
    private static let name = "the file's name is chosen before the response is known"
    private static let store = "the agent has no files of cookies, HSTS hosts and responses of this command"
    private static let redirect = "the agent follows redirects to http and https, up to --max-redirects"

    static let all: [String: BackgroundUse] = [
        // Names, files and success.
        "output": .carried, "remote-name": .carried, "remote-name-all": .carried, "output-dir": .carried,
        "create-dirs": .carried, "fail": .carried, "fail-with-body": .carried, "clobber": .local,
        "no-clobber": .refused(name), "skip-existing": .refused(name), "remote-header-name": .refused(name),
        "continue-at": .refused(part), "remote-time": .refused("the file gets the time of its download"),
        "remove-on-error": .local, "input-file": .carried, "checksum": .carried, "parallel-ranges": .carried,
        // The request.
        "request": .carried, "url": .carried, "globoff": .carried, "path-as-is": .carried, "header": .carried,
        "user-agent": .carried, "referer": .carried, "range": .carried, "get": .carried, "url-query": .carried,
        "upload-file": .carried, "no-compressed": .carried,
        "head": .refused("a download has a body"), "compressed": .refused("the file keeps the bytes as they are sent"),
        "time-cond": .refused(condition), "etag-compare": .refused(condition), "etag-save": .refused(output),
        "data": .refused(body), "data-binary": .refused(body), "data-raw": .refused(body),
        "data-urlencode": .refused(body), "json": .refused(body), "form": .refused(body),
        "form-string": .refused(body), "resumable": .refused("the agent keeps the state of a resumable upload itself"),
        // Redirects and connections.
        "location": .carried, "no-location": .refused(redirect), "max-redirects": .carried,
        "post301": .refused(redirect), "post302": .refused(redirect), "post303": .refused(redirect),
        "proto": .refused(redirect), "proto-redir": .refused(redirect),
        "ipv4": .refused(route), "ipv6": .refused(route), "proxy": .refused(route), "socks5": .refused(route),
        "socks5-hostname": .refused(route), "socks4": .refused(route), "socks4a": .refused(route),
        "preproxy": .refused(route), "proxy-user": .refused(route), "noproxy": .refused(route),
        "unix-socket": .refused(route), "abstract-unix-socket": .refused(route), "resolve": .refused(route),
        "connect-to": .refused(route), "interface": .refused(route),
        "local-port": .refused(route), "keepalive-time": .refused(socket), "keepalive-cnt": .refused(socket),
        "no-keepalive": .refused(socket), "tcp-nodelay": .local,
        // Authentication.
        "user": .carried, "basic": .carried, "digest": .carried, "negotiate": .carried, "ntlm": .carried,
        "anyauth": .carried, "oauth2-bearer": .carried, "netrc": .carried, "netrc-file": .carried,
        "aws-sigv4": .refused("the agent has no keys"),
        "ftp-account": .refused("only http and https are carried out in the background"),
        "proxy-basic": .refused(route), "proxy-digest": .refused(route), "proxy-negotiate": .refused(route),
        "proxy-ntlm": .refused(route), "proxy-anyauth": .refused(route),
        // Cookies, HSTS, the cache.
        "cookies": .refused(store), "cookie": .refused(store), "cookie-jar": .refused(store),
        "junk-session-cookies": .refused(store), "hsts": .refused(store), "cache": .refused(store),
        "cache-policy": .refused(store),
        // Security.
        "cacert": .carried, "tls-min": .carried, "tlsv1.2": .carried, "tlsv1.3": .carried, "tls-max": .carried,
        "insecure": .carried, "pin": .carried, "cert-status": .carried,
        "tlsv1.0": .carried, "tlsv1.1": .carried, "ciphers": .carried, "insecure-renegotiation": .carried,
        "missing-close-notify": .carried, "fetch-issuers": .carried,
        "ssl-reqd": .refused("only http and https are carried out in the background"),
        "cert": .refused("the agent has no client certificates"),
        "key": .refused("the agent has no client certificates"),
        "cert-type": .local, "pass": .refused("the agent has no client certificates"),
        // Limits and retries.
        "timeout": .carried, "connect-timeout": .carried, "expect100-timeout": .carried, "max-time": .carried,
        "max-connections": .carried, "strict": .carried, "http1.1": .carried, "http2": .carried,
        "http2-prior-knowledge": .carried, "http3": .carried, "http3-only": .carried, "tls-earlydata": .carried,
        "http1.0": .refused("the agent speaks HTTP/1.1 and HTTP/2"),
        "max-filesize": .refused("the agent has no limit of size"),
        "limit-rate": .refused("the agent has no limit of rate"),
        "parallel": .local, "parallel-max": .refused("the agent decides how many transfers run at once"),
        "parallel-immediate": .local, "tr-encoding": .local, "rate": .refused("the agent decides when transfers run"),
        "retry": .refused(retry), "retry-connrefused": .refused(retry), "retry-all-errors": .refused(retry),
        "retry-delay": .refused(retry), "retry-max-time": .refused(retry),
        // Output.
        "include": .refused(output), "dump-header": .refused(output), "write-out": .refused(output),
        "fail-early": .refused(output), "summary": .refused(output), "pretty": .refused(output),
        "sse": .refused(output), "stderr": .refused(output), "verbose": .refused(output), "trace": .refused(output),
        "trace-ascii": .refused(output), "har": .refused(output), "qlog": .refused(output),
        "waterfall": .refused(output),
        "report": .refused(output), "silent": .local, "show-error": .local, "progress-bar": .local,
        "no-buffer": .local, "styled-output": .local, "trace-secrets": .local,
        // The command line itself.
        "next": .local, "config": .local, "disable": .local, "generate": .local, "help": .local, "version": .local,
    ]

    /// Why the options of a command line cannot be used; `nil` if they can.
    static func problem(_ options: Options) -> String? {
        for name in options.given {
            // The data of -G is a part of the URL.
            if options.data.sendsDataAsQuery, name.hasPrefix("data") { continue }
            switch all[name] {
            case .carried?, .local?: continue
            case .refused(let reason)?: return "--\(name) cannot be used in the background: \(reason)"
            case nil: return "--\(name) cannot be used in the background"
            }
        }
        return nil
    }
}
