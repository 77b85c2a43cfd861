// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingIO

/// A client certificate with its intermediate certificates and its private key.
///
/// ```swift
/// let identity = try await ClientIdentity.load(certificateFile: certificate, keyFile: key) {
///     try await vault.passphrase()
/// }
/// configuration.tls.clientIdentities = [try .init("*.intranet.example", identity)]
/// ```
/// The key stays in memory and appears neither in descriptions nor in errors. In a background session, a challenge
/// decision that presents the identity sends it to the agent, which keeps it in memory as well.
public struct ClientIdentity: Sendable, Hashable, CustomStringConvertible {
    let identity: TLSIdentity
    /// The client's certificate first, then the intermediate certificates.
    public let certificates: [Certificate]

    init(_ identity: TLSIdentity) {
        self.identity = identity
        certificates = identity.certificates.compactMap { Certificate(der: $0) }
    }

    /// Makes an identity of PEM text.
    /// - Parameters:
    ///   - certificatePEM: the client's certificate, then the intermediate certificates.
    ///   - keyPEM: the private key; may be the same text.
    ///   - passphrase: decrypts the key if it is encrypted.
    /// - Throws: ``LoadError/Reason/badClientIdentity``, ``LoadError/Reason/wrongPassphrase``.
    public init(
        certificatePEM: some Collection<UInt8>, keyPEM: some Collection<UInt8>, passphrase: String? = nil
    ) throws(LoadError) {
        let made = Result { () throws(TLSIdentity.Problem) in
            try TLSIdentity(
                certificates: Array(certificatePEM), key: Array(keyPEM), passphrase: passphrase.map { Array($0.utf8) })
        }
        try self.init(made)
    }

    /// Makes an identity of PKCS#12 data (RFC 7292), the format of `.p12` and `.pfx` files.
    /// - Throws: ``LoadError/Reason/badClientIdentity``, also for encryption that OpenSSL no longer supports (40-bit
    ///   RC2); ``LoadError/Reason/wrongPassphrase``.
    public init(pkcs12: some Collection<UInt8>, passphrase: String? = nil) throws(LoadError) {
        let made = Result { () throws(TLSIdentity.Problem) in
            try TLSIdentity(pkcs12: Array(pkcs12), passphrase: passphrase.map { Array($0.utf8) })
        }
        try self.init(made)
    }

    private init(_ made: Result<TLSIdentity, TLSIdentity.Problem>, _ files: Files? = nil) throws(LoadError) {
        do throws(TLSIdentity.Problem) { self.init(try made.get()) } catch { throw LoadError(error, files) }
    }

    /// The paths of an identity's files, for errors.
    fileprivate struct Files: Sendable {
        let certificate: String
        let key: String
    }

    // MARK: Files

    /// Loads an identity from PEM files.
    /// - Parameters:
    ///   - certificateFile: a `file` URL of the certificate and those that issued it.
    ///   - keyFile: a `file` URL of the private key; nil if the key is in `certificateFile`.
    ///   - passphrase: called once if the key is encrypted, otherwise not. ``LoadError/underlying`` has what it throws.
    /// - Throws: ``LoadError/Reason/badClientIdentity``, ``LoadError/Reason/wrongPassphrase``.
    @concurrent public static func load(
        certificateFile: URL, keyFile: URL? = nil, passphrase: (@Sendable () async throws -> String)? = nil
    ) async throws(LoadError) -> ClientIdentity {
        let certificate = try read(certificateFile)
        let key = try keyFile.map { (file) throws(LoadError) in try read(file) } ?? certificate
        let files = Files(certificate: certificateFile.filePath, key: (keyFile ?? certificateFile).filePath)
        return try await open(passphrase) { (words) throws(LoadError) in
            try ClientIdentity(
                Result { () throws(TLSIdentity.Problem) in
                    try TLSIdentity(
                        certificates: Array(certificate), key: Array(key), passphrase: words.map { Array($0.utf8) })
                }, files)
        }
    }

    /// Loads an identity from a PKCS#12 file.
    /// - Parameters:
    ///   - pkcs12File: a `file` URL.
    ///   - passphrase: called once if the file is encrypted, otherwise not. ``LoadError/underlying`` has what it
    ///     throws.
    /// - Throws: ``LoadError/Reason/badClientIdentity``, ``LoadError/Reason/wrongPassphrase``.
    @concurrent public static func load(
        pkcs12File: URL, passphrase: (@Sendable () async throws -> String)? = nil
    ) async throws(LoadError) -> ClientIdentity {
        let bytes = try read(pkcs12File)
        let files = Files(certificate: pkcs12File.filePath, key: pkcs12File.filePath)
        return try await open(passphrase) { (words) throws(LoadError) in
            try ClientIdentity(
                Result { () throws(TLSIdentity.Problem) in
                    try TLSIdentity(pkcs12: Array(bytes), passphrase: words.map { Array($0.utf8) })
                }, files)
        }
    }

    /// Makes the identity without a passphrase first, so that the closure is only called for an encrypted key.
    private static func open(
        _ passphrase: (@Sendable () async throws -> String)?, _ make: (String?) throws(LoadError) -> ClientIdentity
    ) async throws(LoadError) -> ClientIdentity {
        guard let passphrase else { return try make(nil) }
        do throws(LoadError) { return try make(nil) } catch {
            guard error.reason == .wrongPassphrase else { throw error }
        }
        let words: String
        do { words = try await passphrase() } catch {
            throw LoadError(.decisionFailed, phase: .deciding, party: .local, underlying: error)
        }
        return try make(words)
    }

    private static func read(_ file: URL) throws(LoadError) -> Data {
        do { return try Data(contentsOf: file) } catch {
            let why = LoadError.systemWords(error).map { ": \($0)" } ?? ""
            throw LoadError(
                .badClientIdentity, phase: .preparing, party: .local, detail: "\(file.filePath) cannot be read\(why)",
                underlying: error)
        }
    }

    /// The description of the client's certificate: `CN=ada from CN=Staff CA until 2030-01-01`.
    public var description: String { certificates.first?.description ?? "client identity" }

    public static func == (a: ClientIdentity, b: ClientIdentity) -> Bool { a.identity == b.identity }
    public func hash(into hasher: inout Hasher) { hasher.combine(identity) }
}

extension LoadError {
    /// - Parameter files: the files of the identity, for the detail to name the invalid one; `nil` for none.
    fileprivate init(_ problem: TLSIdentity.Problem, _ files: ClientIdentity.Files?) {
        let (reason, file, words): (Reason, String?, String) =
            switch problem {
            case .noCertificate: (.badClientIdentity, files?.certificate, "there is no certificate")
            case .noKey: (.badClientIdentity, files?.key, "there is no private key")
            case .passphrase: (.wrongPassphrase, files?.key, "the key is encrypted; passphrase missing or wrong")
            case .keyOfAnother: (.badClientIdentity, files?.key, "the key belongs to another certificate")
            case .unreadable(let words): (.badClientIdentity, files?.certificate, words)
            }
        self.init(reason, phase: .preparing, party: .local, detail: file.map { "\($0): \(words)" } ?? words)
    }
}

extension URL {
    fileprivate var filePath: String { path(percentEncoded: false) }
}
