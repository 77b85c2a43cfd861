// The certificates whose word is taken. The system's are read once per process, when the first
// context asks, and shared by all contexts: a bundle of 140 certificates costs 16 to 19 ms of CPU.

import Glibc
import Synchronization
import URLLoadingCOpenSSL

final class TrustStore: @unchecked Sendable {
    // Unchecked: an X509_STORE locks itself.
    let pointer: OpaquePointer

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

    // MARK: The system's

    /// Only success is remembered: a process out of descriptors may have some later.
    private static let shared = Lock<TrustStore?>(nil)

    /// The next context that wants them reads them again.
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

    /// A hashed directory is read one certificate at a time, when a chain asks for it.
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
    /// Says what is wrong with a file of trusted certificates, in place of OpenSSL, which does not name the file.
    fileprivate static func unreadableRoots(_ path: String) -> TLSFailure {
        _ = OpenSSLErrors.take()
        var status = stat()
        let words =
            if stat(path, &status) != 0 || access(path, R_OK) != 0 {
                String(cString: strerror(errno))
            } else if status.st_mode & S_IFMT == S_IFDIR {
                String(cString: strerror(EISDIR))
            } else {
                "there is no certificate in PEM"
            }
        return TLSFailure(.rootsUnavailable(path), detail: "\(path): \(words)")
    }
}

/// Where the system keeps what it trusts: OpenSSL's own places, moved by SSL_CERT_FILE and
/// SSL_CERT_DIR as everywhere.
struct SystemRoots: Equatable {
    /// Read whole. Left out where a hashed directory says the same: the systems that have one
    /// (`update-ca-certificates`, `trust extract`) write both from one source.
    var file: String?
    var directory: String?

    static var current: SystemRoots {
        locate(
            environmentFile: environment(X509_get_default_cert_file_env()),
            environmentDirectory: environment(X509_get_default_cert_dir_env()),
            defaultFile: String(cString: X509_get_default_cert_file()),
            defaultDirectory: String(cString: X509_get_default_cert_dir()),
            isHashed: { c_is_hashed_directory($0) == 1 })
    }

    /// A variable that is set to nothing counts as not set.
    private static func environment(_ name: UnsafePointer<CChar>?) -> String? {
        guard let name, let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }

    static func locate(
        environmentFile: String?, environmentDirectory: String?, defaultFile: String, defaultDirectory: String,
        isHashed: (String) -> Bool
    ) -> SystemRoots {
        let directory = environmentDirectory ?? defaultDirectory
        // The variable may list several directories; those are used as they are.
        let hashed = environmentDirectory != nil || isHashed(directory)
        let file = environmentFile ?? (hashed ? nil : defaultFile)
        return SystemRoots(file: file, directory: hashed ? directory : nil)
    }
}
