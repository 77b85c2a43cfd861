// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import URLLoading

/// Options for TLS: versions, trusted authorities, and the client's identity.
struct TLSOptions: Sendable {
    var rootsFile: String?
    /// Trusted certificates in PEM; the demonstration has no file.
    var rootsText: String?
    var minimumVersion: Configuration.TLS.Version?
    var maximumVersion: Configuration.TLS.Version?
    var isInsecure = false
    var certificateFile: String?
    var keyFile: String?
    var passphrase: String?
    var pins: [Configuration.TLS.Pin] = []
    var requiresStatus = false
    /// The strength conceded to all hosts; `nil` for the default.
    var strength: Configuration.TLS.UnsafeConcessions.Strength?
    var allowsInsecureRenegotiation = false
    var allowsMissingCloseNotify = false
    var fetchesMissingIssuers = false

    /// Applies the trusted roots, the versions, and what is conceded to servers: to all that the command talks to, as
    /// in curl.
    func apply(to tls: inout Configuration.TLS) {
        if let rootsText { tls.trustRoots = .pem(rootsText) }
        if let rootsFile { tls.trustRoots = .file(URL(filePath: rootsFile)) }
        tls.unsafelySkipsVerification = isInsecure
        let maximum = maximumVersion ?? .tls13
        let minimum = min(minimumVersion ?? .tls12, maximum)
        (tls.minimumVersion, tls.maximumVersion) = (max(minimum, .tls12), max(maximum, .tls12))
        tls.fetchesMissingIssuers = fetchesMissingIssuers
        let isOld = minimum < .tls12
        guard isOld || strength != nil || allowsInsecureRenegotiation || allowsMissingCloseNotify,
            var all = try? Configuration.TLS.UnsafeConcessions("*")
        else { return }
        if isOld { (all.minimumVersion, all.maximumVersion) = (minimum, maximum) }
        all.minimumStrength = strength
        all.allowsInsecureRenegotiation = allowsInsecureRenegotiation
        all.allowsMissingCloseNotify = allowsMissingCloseNotify
        tls.unsafeConcessions = [all]
    }

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
