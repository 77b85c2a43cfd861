import FoundationEssentials
import URLLoading

extension OptionTable {
    static let trust: [OptionRule] = [
        OptionRule(
            .security, "E", "cert", "FILE",
            "the client certificate: PEM, with its intermediates, or PKCS#12"
        ) {
            $0.trust.certificateFile = $1
        }.also("certificate").like(wget: "--certificate=FILE", httpie: "--cert FILE"),
        OptionRule(.security, nil, "key", "FILE", "the private key in PEM, if the file of --cert does not contain it") {
            $0.trust.keyFile = $1
        }.also("private-key").like(wget: "--private-key=FILE", httpie: "--cert-key FILE"),
        OptionRule(.security, nil, "cert-type", "TYPE", "ignored: PEM and PKCS#12 are recognised") { _, _ in }
            .also("key-type"),
        OptionRule(
            .security, nil, "pass", "PASSPHRASE",
            "the passphrase of the key; other users can see arguments: @FILE reads it from a file"
        ) { (options, text) throws(UsageError) in
            if text.hasPrefix("@") { try OptionValue.readable(String(text.dropFirst()), "--pass") }
            options.trust.passphrase = text
        }.like(httpie: "--cert-key-pass TEXT"),
        OptionRule(
            .security, nil, "pin", "sha256//BASE64",
            "public key pin: accept only chains with this key; several with ; or repeated"
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

/// Options for certificates: trusted authorities, and the client's identity.
struct TrustOptions: Sendable {
    var certificateFile: String?
    var keyFile: String?
    var passphrase: String?
    var pins: [Configuration.TLS.Pin] = []
    var requiresStatus = false

    /// Reads the client identity; `nil` if none was given.
    func identity() async throws(LoadError) -> ClientIdentity? {
        guard let certificateFile else { return nil }
        let (given, file) = (passphrase, keyFile ?? certificateFile)
        let words: @Sendable () async throws -> String = { try given.map(Self.read) ?? Self.ask(file) }
        do throws(LoadError) {
            if keyFile == nil, Self.isPKCS12(certificateFile) {
                return try await .load(pkcs12File: URL(filePath: certificateFile), passphrase: words)
            }
            return try await .load(
                certificateFile: URL(filePath: certificateFile), keyFile: keyFile.map { URL(filePath: $0) },
                passphrase: words)
        } catch {
            // Without a terminal the passphrase cannot be asked for; the underlying error says so.
            throw (error.underlying as? LoadError) ?? error
        }
    }

    /// PEM is text. PKCS#12 begins with a DER sequence, the byte 0x30 (RFC 7292 §4). The name of the file does not
    /// matter.
    private static func isPKCS12(_ path: String) -> Bool {
        (try? Data(contentsOf: URL(filePath: path)))?.first == 0x30
    }

    private static func ask(_ file: String) throws(LoadError) -> String {
        guard let answer = PasswordPrompt.ask("Passphrase of \(file): ") else {
            throw LoadError(.wrongPassphrase, phase: .preparing, party: .local)
        }
        return answer
    }

    private static func read(_ given: String) throws -> String {
        guard given.hasPrefix("@") else { return given }
        let text = String(decoding: try Data(contentsOf: URL(filePath: String(given.dropFirst()))), as: UTF8.self)
        return String(text.prefix { $0 != "\n" && $0 != "\r\n" })
    }

    func apply(_ identity: ClientIdentity?, to tls: inout Configuration.TLS) throws(LoadError) {
        if let identity { tls.clientIdentities = [try .init("*", identity)] }
        if !pins.isEmpty { tls.pins = [try .init("*", pins)] }
        if requiresStatus { tls.ocspStapling = .required }
    }
}
