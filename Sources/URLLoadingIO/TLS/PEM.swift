// SPDX-License-Identifier: Apache-2.0

// Reads certificates and keys from PEM text.

import URLLoadingCOpenSSL

/// Owns an OpenSSL certificate and frees it.
final class X509Certificate: Sendable {
    // Unsafe: an X509 is not changed after it was made.
    nonisolated(unsafe) let pointer: OpaquePointer
    init(adopting pointer: OpaquePointer) { self.pointer = pointer }
    deinit { X509_free(pointer) }
}

enum PEM {
    /// Returns all certificates of `text`, at least one.
    static func certificates(_ text: [UInt8]) throws(TLSFailure) -> [X509Certificate] {
        try read(text) { (bio) throws(TLSFailure) -> [X509Certificate] in
            var found: [X509Certificate] = []
            while let pointer = PEM_read_bio_X509(bio, nil, nil, nil) {
                found.append(X509Certificate(adopting: pointer))
            }
            // OpenSSL reports the end of the text as a missing start line.
            let isEnd = c_ERR_reason(ERR_peek_last_error()) == PEM_R_NO_START_LINE
            ERR_clear_error()
            guard !found.isEmpty else {
                throw TLSFailure(.rootsUnavailable("PEM"), detail: "the file contains no certificate in PEM")
            }
            guard isEnd else {
                throw TLSFailure(.rootsUnavailable("PEM"), detail: "certificate \(found.count + 1) in PEM is damaged")
            }
            return found
        }
    }

    /// Lends the private key of `text` to `body`.
    static func withPrivateKey<R>(_ text: [UInt8], _ body: (OpaquePointer) -> R) throws(TLSFailure) -> R {
        try read(text) { (bio) throws(TLSFailure) -> R in
            guard let key = PEM_read_bio_PrivateKey(bio, nil, nil, nil) else {
                throw .local(.other, "the file contains no private key in PEM")
            }
            defer { EVP_PKEY_free(key) }
            return body(key)
        }
    }

    /// Returns the public key of a PEM text, which the caller frees; nil if there is none.
    static func publicKey(_ text: [UInt8]) -> OpaquePointer? {
        defer { ERR_clear_error() }
        return try? read(text) { (bio) throws(TLSFailure) in PEM_read_bio_PUBKEY(bio, nil, nil, nil) }
    }

    /// Returns the text that an OpenSSL writer writes, which returns 1; nil if it fails.
    static func written(_ write: (OpaquePointer) -> Int32) -> [UInt8]? {
        defer { ERR_clear_error() }
        guard let bio = BIO_new(BIO_s_mem()) else { return nil }
        defer { BIO_free(bio) }
        guard write(bio) == 1 else { return nil }
        var text = [UInt8](repeating: 0, count: BIO_ctrl_pending(bio))
        guard BIO_read(bio, &text, Int32(clamping: text.count)) == text.count else { return nil }
        return text
    }

    private static func read<R>(
        _ text: [UInt8], _ body: (OpaquePointer) throws(TLSFailure) -> R
    ) throws(TLSFailure) -> R {
        ERR_clear_error()
        guard let bio = BIO_new(BIO_s_mem()) else { throw .local(.other, "BIO_new") }
        defer { BIO_free(bio) }
        guard text.isEmpty || BIO_write(bio, text, Int32(clamping: text.count)) == text.count
        else { throw .local(.other, "BIO_write") }
        return try body(bio)
    }

    static func der(_ certificate: OpaquePointer) -> [UInt8] { der { i2d_X509(certificate, $0) } }

    /// Returns the output of an OpenSSL encoder, which reports the size when called without a buffer.
    static func der(_ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32) -> [UInt8] {
        let count = write(nil)
        guard count > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, used in
            var end = buffer.baseAddress
            used = Int(max(0, write(&end)))
        }
    }

    static func base64(_ bytes: [UInt8]) -> String {
        // EVP_EncodeBlock adds a zero byte.
        String(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4 + 1) { buffer in
            Int(max(0, EVP_EncodeBlock(buffer.baseAddress, bytes, Int32(clamping: bytes.count))))
        }
    }

    static func der(stack: OpaquePointer?) -> [[UInt8]] {
        guard let stack else { return [] }
        return (0..<max(0, c_sk_X509_num(stack))).compactMap { c_sk_X509_value(stack, $0).map { der($0) } }
    }
}
