import FoundationEssentials
import URLLoading

/// What the command line says of certificates: the servers' and ours.
struct TrustOptions: Sendable {
    var certificateFile: String?
    var keyFile: String?
    var passphrase: String?
    var pins: [Configuration.TLS.Pin] = []
    var requiresStatus = false

    /// Our identity, read before anything is loaded; `nil` if there is none.
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
            // Nobody is there to be asked.
            throw (error.underlying as? LoadError) ?? error
        }
    }

    /// PEM is text; PKCS#12 begins as everything in DER does (RFC 7292 §4), whatever the file is called.
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
