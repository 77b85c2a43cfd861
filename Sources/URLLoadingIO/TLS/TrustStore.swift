// SPDX-License-Identifier: Apache-2.0

// The trusted certificates. The system's are read once per process, when the first context needs them, and shared by
// all contexts: reading a bundle of 140 certificates takes 16 to 19 ms of CPU time.

import Glibc
import Synchronization
import URLLoadingCOpenSSL

final class TrustStore: Sendable {
    // Unsafe: an X509_STORE does its own locking.
    nonisolated(unsafe) let pointer: OpaquePointer

    private init() throws(TLSFailure) {
        guard let pointer = X509_STORE_new() else { throw .local(.other, "X509_STORE_new") }
        self.pointer = pointer
    }

    deinit { X509_STORE_free(pointer) }

    static func make(_ roots: TLSConfiguration.Roots) throws(TLSFailure) -> TrustStore {
        ERR_clear_error()
        switch roots {
        case .system: return try system()
        case .file(let path):
            let store = try TrustStore()
            try store.load(file: path)
            return store
        case .pem(let pem):
            let store = try TrustStore()
            try store.add(pem: pem)
            return store
        case .systemAnd(let pem):
            let system = try system()
            let store = try TrustStore()
            try store.useDirectory(SystemRoots.current.directory)
            guard c_X509_STORE_copy(system.pointer, store.pointer) == 1 else {
                throw .local(.other, "X509_STORE_add_cert")
            }
            try store.add(pem: pem)
            return store
        }
    }

    // MARK: System roots

    /// Only success is cached: a process without free descriptors may have some later.
    private static let shared = Lock<TrustStore?>(nil)

    /// Makes the next context that needs the system's roots reread them.
    static func forgetSystem() { shared.withLock { $0 = nil } }

    private static func system() throws(TLSFailure) -> TrustStore {
        try shared.withLock { (shared) throws(TLSFailure) -> TrustStore in
            if let store = shared { return store }
            let store = try TrustStore()
            let roots = SystemRoots.current
            try store.useDirectory(roots.directory)
            if let file = roots.file { try store.load(file: file) }
            shared = store
            return store
        }
    }

    /// Uses a hashed directory, from which OpenSSL reads single certificates when a chain needs them.
    private func useDirectory(_ path: String?) throws(TLSFailure) {
        guard let path else { return }
        guard X509_STORE_load_path(pointer, path) == 1 else {
            throw .local(.rootsUnavailable(path), "X509_STORE_load_path")
        }
    }

    private func load(file path: String) throws(TLSFailure) {
        guard X509_STORE_load_file(pointer, path) == 1 else { throw .unreadableRoots(path) }
    }

    private func add(pem: [UInt8]) throws(TLSFailure) {
        for certificate in try PEM.certificates(pem) {
            guard X509_STORE_add_cert(pointer, certificate.pointer) == 1 else {
                throw .local(.other, "X509_STORE_add_cert")
            }
        }
    }
}

extension TLSFailure {
    /// Describes the fault of a file of trusted certificates, because OpenSSL does not name the file.
    fileprivate static func unreadableRoots(_ path: String) -> TLSFailure {
        _ = OpenSSLErrors.take()
        var status = stat()
        let words =
            if stat(path, &status) != 0 || access(path, R_OK) != 0 {
                String(cString: strerror(errno))
            } else if status.st_mode & S_IFMT == S_IFDIR {
                String(cString: strerror(EISDIR))
            } else {
                "the file contains no certificate in PEM"
            }
        return TLSFailure(.rootsUnavailable(path), detail: "\(path): \(words)")
    }
}

/// The locations of the system's trusted certificates: OpenSSL's default file and directory, of which SSL_CERT_FILE
/// replaces the one and SSL_CERT_DIR the other, as in OpenSSL itself, curl and Go.
struct SystemRoots: Equatable {
    /// A bundle, read completely. `nil` where a hashed directory has the same content: systems that have one
    /// (`update-ca-certificates`, `trust extract`) write both from one source.
    var file: String?
    var directory: String?

    static var current: SystemRoots {
        locate(
            environmentFile: environment(X509_get_default_cert_file_env()),
            environmentDirectory: environment(X509_get_default_cert_dir_env()),
            defaultFile: String(cString: X509_get_default_cert_file()),
            defaultDirectory: String(cString: X509_get_default_cert_dir()),
            isHashed: { c_is_hashed_directory($0) == 1 }, exists: { access($0, F_OK) == 0 })
    }

    /// Returns a variable's value; an empty variable counts as not set.
    private static func environment(_ name: UnsafePointer<CChar>?) -> String? {
        guard let name, let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }

    static func locate(
        environmentFile: String?, environmentDirectory: String?, defaultFile: String, defaultDirectory: String,
        isHashed: (String) -> Bool, exists: (String) -> Bool
    ) -> SystemRoots {
        // A directory of the environment has other certificates than the bundle. The variable may list several, which
        // are used as they are.
        if let environmentDirectory {
            let file = environmentFile ?? (exists(defaultFile) ? defaultFile : nil)
            return SystemRoots(file: file, directory: environmentDirectory)
        }
        let hashed = isHashed(defaultDirectory)
        let file = environmentFile ?? (hashed ? nil : defaultFile)
        return SystemRoots(file: file, directory: hashed ? defaultDirectory : nil)
    }
}
