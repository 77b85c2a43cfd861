// The options of certificates.

import URLLoading

extension OptionTable {
    static let trust: [OptionRule] = [
        OptionRule(
            .security, "E", "cert", "FILE",
            "who we are to servers that ask: PEM, with those that vouch for it, or PKCS#12"
        ) {
            $0.trust.certificateFile = $1
        }.also("certificate").like(wget: "--certificate=FILE", httpie: "--cert FILE"),
        OptionRule(.security, nil, "key", "FILE", "its private key in PEM, if FILE of --cert does not hold it") {
            $0.trust.keyFile = $1
        }.also("private-key").like(wget: "--private-key=FILE", httpie: "--cert-key FILE"),
        OptionRule(.security, nil, "cert-type", "TYPE", "its content tells: PEM or PKCS#12") { _, _ in }
            .also("key-type"),
        OptionRule(
            .security, nil, "pass", "PASSPHRASE",
            "opens the key without a question; any user may see it while we run: @FILE reads it"
        ) { (options, text) throws(UsageError) in
            if text.hasPrefix("@") { try OptionValue.readable(String(text.dropFirst()), "--pass") }
            options.trust.passphrase = text
        }.like(httpie: "--cert-key-pass TEXT"),
        OptionRule(
            .security, nil, "pin", "sha256//BASE64",
            "accept only servers whose chain has this public key; several, with ; or again"
        ) { (options, text) throws(UsageError) in
            for part in text.split(separator: ";") {
                guard let pin = Configuration.TLS.Pin(String(part)) else {
                    throw UsageError("--pin takes sha256// and a digest in Base64, not \(part)")
                }
                options.trust.pins.append(pin)
            }
        }.also("pinnedpubkey").like(wget: "--pinnedpubkey=…"),
        OptionRule(
            .security, nil, flag: "cert-status", "the server must staple a good status to its certificate (OCSP)"
        ) {
            $0.trust.requiresStatus = true
        },
    ]
}
