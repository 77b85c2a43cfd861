// SPDX-License-Identifier: Apache-2.0

// The options of certificates.

import URLLoading

extension OptionTable {
    static let trust: [OptionRule] = [
        OptionRule(
            .security, "E", "cert", "FILE",
            "the client certificate: PEM, with its intermediates, or PKCS#12"
        ) {
            $0.tls.certificateFile = $1
        }.also("certificate").like(wget: "--certificate=FILE", httpie: "--cert FILE"),
        OptionRule(.security, nil, "key", "FILE", "the private key in PEM, if the file of --cert does not contain it") {
            $0.tls.keyFile = $1
        }.also("private-key").like(wget: "--private-key=FILE", httpie: "--cert-key FILE"),
        OptionRule(.security, nil, "cert-type", "TYPE", "ignored: PEM and PKCS#12 are recognised") { _, _ in }
            .also("key-type"),
        OptionRule(
            .security, nil, "pass", "PASSPHRASE",
            "the passphrase of the key; other users can see arguments: @FILE reads it from a file"
        ) { (options, text) throws(UsageError) in
            if text.hasPrefix("@") { try OptionValue.readable(String(text.dropFirst()), "--pass") }
            options.tls.passphrase = text
        }.like(httpie: "--cert-key-pass TEXT"),
        OptionRule(
            .security, nil, "pin", "sha256//BASE64",
            "public key pin: accept only chains with this key; several with ; or repeated"
        ) { (options, text) throws(UsageError) in
            for part in text.split(separator: ";") {
                guard let pin = Configuration.TLS.Pin(String(part)) else {
                    throw UsageError("--pin takes sha256// and a digest in Base64, not \(part)")
                }
                options.tls.pins.append(pin)
            }
        }.also("pinnedpubkey").like(wget: "--pinnedpubkey=…"),
        OptionRule(
            .security, nil, flag: "cert-status", "the server must staple a good status to its certificate (OCSP)"
        ) {
            $0.tls.requiresStatus = true
        },
        OptionRule(
            .security, nil, "ciphers", "DEFAULT@SECLEVEL=N",
            "the security level of OpenSSL: 2, or 1 or 0 for old servers, which is not safe"
        ) { (options, text) throws(UsageError) in
            options.tls.strength = try OptionValue.strength(text, "--ciphers")
        },
        OptionRule(
            .security, nil, flag: "insecure-renegotiation",
            "accept servers without secure renegotiation (RFC 5746), which is not safe"
        ) {
            $0.tls.allowsInsecureRenegotiation = true
        },
        OptionRule(
            .security, nil, flag: "missing-close-notify",
            "a response without a length may end with its TLS connection, so that it may be cut"
        ) {
            $0.tls.allowsMissingCloseNotify = true
        },
        OptionRule(
            .security, nil, flag: "fetch-issuers",
            "fetch intermediate certificates that a server does not send, as browsers do"
        ) {
            $0.tls.fetchesMissingIssuers = true
        },
    ]
}
