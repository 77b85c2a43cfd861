// SPDX-License-Identifier: Apache-2.0

// An option of curl, wget or httpie that this command does not have. The error for it names the nearest option.

struct ForeignOption: Sendable {
    /// The names of the option, with dashes.
    let names: [String]
    /// The option with the same or a similar effect; `nil` for none.
    let nearest: String?
    /// The reason, or the difference; may be empty.
    let note: String

    init(_ names: String, near nearest: String? = nil, _ note: String = "") {
        self.names = names.split(separator: " ").map(String.init)
        self.nearest = nearest
        self.note = note
    }

    /// - Parameter tool: the name of the tool that has the option.
    func words(_ option: String, of tool: String) -> String {
        let reason = note.isEmpty ? "" : ": \(note)"
        let hint = nearest.map { "; nearest is \($0)" } ?? ""
        return "\(option) of \(tool) is not supported\(reason)\(hint)"
    }

    static let curl: [ForeignOption] = http + connections + tls + proxies + ftp + otherProtocols + tools

    private static let http = [
        ForeignOption("--location-trusted", near: "-L", "credentials stay with the server they were given for"),
        ForeignOption("--http0.9", near: "--http1.0"),
        ForeignOption("--request-target", near: "the URL itself; --path-as-is keeps its path"),
        ForeignOption("--ignore-content-length", "a body that is not as long as its head says is an error"),
        ForeignOption("--raw", near: "--no-compressed"),
        ForeignOption("--form-escape", near: "--form-string"),
        ForeignOption("--alt-svc"),
        ForeignOption("--crlf -B --use-ascii", "bodies are sent and written as they are"),
        ForeignOption("--proto-default", near: "the scheme in the URL"),
        ForeignOption("--disallow-username-in-url", near: "-u"),
        ForeignOption("--variable --expand-url --expand-data --expand-header", near: "the shell's variables"),
    ]

    private static let connections = [
        ForeignOption("--speed-limit -Y --speed-time -y", near: "--timeout"),
        ForeignOption("--tcp-fastopen --mptcp --ip-tos --vlan-priority"),
        ForeignOption("--happy-eyeballs-timeout-ms", near: "-4 or -6"),
        ForeignOption("--dns-interface --dns-ipv4-addr --dns-ipv6-addr --dns-servers", near: "--resolve"),
        ForeignOption("--doh-url --doh-insecure --doh-cert-status", near: "--resolve"),
        ForeignOption("--haproxy-protocol --haproxy-clientip"),
    ]

    private static let tls = [
        ForeignOption("--capath --ca-native --proxy-ca-native --dump-ca-embed", near: "--cacert"),
        ForeignOption(
            "--tls13-ciphers --curves --sigalgs --engine --egd-file --random-file", near: "--tls-min"),
        ForeignOption("--crlfile", near: "--cert-status"),
        ForeignOption("--sslv2 -2 --sslv3 -3", near: "--tls-min 1.0", "SSL is not in OpenSSL any more"),
        ForeignOption("--ssl", near: "--ssl-reqd"),
        ForeignOption("--no-alpn --no-npn --no-sessionid --false-start --ech --ssl-sessions", near: "--http1.1"),
        ForeignOption(
            "--ssl-allow-beast --ssl-auto-client-cert --ssl-no-revoke --ssl-revoke-best-effort"),
        ForeignOption("--tlsauthtype --tlsuser --tlspassword", near: "--cert"),
    ]

    private static let proxies = [
        ForeignOption("--proxytunnel -p", "https goes through a tunnel, http is forwarded"),
        ForeignOption("--proxy1.0 --proxy-http2", near: "-x"),
        ForeignOption("--proxy-header", near: "-H 'Proxy-Authorization: …'"),
        ForeignOption(
            "--proxy-insecure --proxy-cacert --proxy-capath --proxy-crlfile --proxy-pinnedpubkey", near: "--cacert"),
        ForeignOption("--proxy-cert --proxy-cert-type --proxy-key --proxy-key-type --proxy-pass", near: "--cert"),
        ForeignOption(
            "--proxy-ciphers --proxy-tls13-ciphers --proxy-ssl-allow-beast --proxy-ssl-auto-client-cert "
                + "--proxy-tlsauthtype --proxy-tlsuser --proxy-tlspassword --proxy-tlsv1"),
        ForeignOption("--proxy-service-name --service-name --socks5-gssapi-service --delegation", near: "--negotiate"),
        ForeignOption("--socks5-basic --socks5-gssapi --socks5-gssapi-nec", near: "--socks5-hostname"),
        ForeignOption("--suppress-connect-headers", "heads of proxies are shown with -v alone"),
        ForeignOption("--ntlm-wb", near: "--ntlm"),
        ForeignOption("--sasl-authzid --sasl-ir --login-options", near: "-u"),
    ]

    private static let ftp = [
        ForeignOption("--append -a", near: "-C with -T"),
        ForeignOption("--quote -Q --list-only -l", "ftp loads and stores files"),
        ForeignOption(
            "--ftp-pasv --ftp-skip-pasv-ip --disable-epsv --disable-eprt --ftp-port -P --ftp-pret",
            "connections for data are made from here (EPSV, PASV)"),
        ForeignOption("--ftp-create-dirs --ftp-method --ftp-alternative-to-user"),
        ForeignOption("--ftp-ssl-ccc --ftp-ssl-ccc-mode --ftp-ssl-control", near: "--ssl-reqd"),
        ForeignOption("--krb", near: "--negotiate"),
    ]

    private static let otherProtocols = [
        ForeignOption(
            "--mail-from --mail-rcpt --mail-auth --mail-rcpt-allowfails --telnet-option -t --tftp-blksize "
                + "--tftp-no-options --pubkey --hostpubmd5 --hostpubsha256 --compressed-ssh --upload-flags",
            "only http, https, ftp, ftps, file and data are loaded")
    ]

    private static let tools = [
        ForeignOption("--create-file-mode", near: "umask"),
        ForeignOption("--libcurl", near: "docs/guides of the library"),
        ForeignOption("--manual -M", near: "--help all"),
        ForeignOption("--metalink --xattr --ipfs-gateway"),
        ForeignOption("--trace-time --trace-ids --trace-config", near: "--har"),
    ]
}
