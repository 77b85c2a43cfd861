// SPDX-License-Identifier: Apache-2.0

// The transport below an SSL object, and its last result. A BIO can report only "retry" or failure; the actual result
// is kept here until the SSL call returns.

import URLLoadingCOpenSSL

final class TLSLink: TLSCallbackState {
    let inner: any Transport
    /// The readiness that the transport below waits for: with TLS in TLS, a read may wait to write.
    var blocked = PollSlot.Interest.read
    /// The error of the transport below during this SSL call, unless OpenSSL had found an error before: the failed
    /// write is then only the alert that reports that error to the peer.
    var failure: IOFailure?
    var hasEnded = false
    // Accessed only under the lock of the transport; debug builds and so all tests check it with each access.
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var ahead = TLSReadAhead()
    /// The first byte from the peer. Every TLS record type is a control character (RFC 8446 §5.1), with which no text
    /// begins.
    var firstByte: UInt8?
    /// Bytes that OpenSSL took during one SSL call. OpenSSL keeps reading through tickets and key updates as long as
    /// they come, so a peer could keep it busy for ever, beyond the reach of every timeout. A handshake's certificates
    /// are limited to 100 KB and a record to 16 KB: more than this limit without application data is an attack.
    var takenInCall = 0
    private static let takenLimit = 256 * 1024

    /// Creates the link of a server connection.
    init(_ inner: any Transport) {
        self.inner = inner
        super.init()
    }

    init(
        _ inner: any Transport, to peer: TLSPeer, _ context: TLSContext, _ key: TLSSessionCache.Key,
        _ limits: TLSLimits?
    ) {
        self.inner = inner
        super.init(to: peer, context, key, limits)
    }

    /// Makes `ssl` read and write through this link, which must outlive it.
    func attach(to ssl: OpaquePointer) -> Bool {
        guard let method = Self.method, let bio = BIO_new(method), receiveCallbacks(of: ssl) else { return false }
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        SSL_set_bio(ssl, bio, bio)
        return true
    }

    // MARK: The BIO

    /// Created once and never freed.
    nonisolated(unsafe) private static let method: OpaquePointer? = {
        guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "transport") else { return nil }
        BIO_meth_set_read_ex(method) { bio, bytes, count, moved in
            guard let bio, let bytes, let moved, let link = link(of: bio) else { return -1 }
            return link.read(bio, UnsafeMutableRawBufferPointer(start: bytes, count: count), moved)
        }
        BIO_meth_set_write_ex(method) { bio, bytes, count, moved in
            guard let bio, let bytes, let moved, let link = link(of: bio) else { return -1 }
            return link.write(bio, UnsafeRawBufferPointer(start: bytes, count: count), moved)
        }
        BIO_meth_set_ctrl(method) { bio, command, _, _ in
            switch command {
            case BIO_CTRL_FLUSH: 1
            case BIO_CTRL_EOF: bio.flatMap { link(of: $0) }?.hasEnded == true ? 1 : 0
            default: 0
            }
        }
        return method
    }()

    private static func link(of bio: OpaquePointer) -> TLSLink? {
        BIO_get_data(bio).map { Unmanaged<TLSLink>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let flags = BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_IO_SPECIAL | BIO_FLAGS_SHOULD_RETRY

    // Both methods return what OpenSSL's socket BIO returns: 1; 0 at the end of the stream, for reads only; -1
    // otherwise, with the retry flag set for "retry". From OpenSSL 3.2 on, a write that returns 0 without the retry
    // flag counts as sent.

    private func read(_ bio: OpaquePointer, _ buffer: UnsafeMutableRawBufferPointer, _ moved: UnsafeMutablePointer<Int>)
        -> Int32
    {
        BIO_clear_flags(bio, Self.flags)
        do throws(IOFailure) {
            guard takenInCall <= Self.takenLimit
            else { throw IOFailure(.tls(TLSFailure(.other, detail: "too many records without data")), .read) }
            if ahead.isEmpty {
                switch try ahead.fill(from: inner) {
                case .moved: break
                case .end:
                    hasEnded = true
                    return 0
                case .blocked(let interest):
                    blocked = interest
                    BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
                    return -1
                }
            }
            let count = ahead.take(into: buffer)
            takenInCall += count
            if firstByte == nil { firstByte = buffer.first }
            moved.pointee = count
            return 1
        } catch { failure = error }
        return -1
    }

    private func write(_ bio: OpaquePointer, _ bytes: UnsafeRawBufferPointer, _ moved: UnsafeMutablePointer<Int>)
        -> Int32
    {
        BIO_clear_flags(bio, Self.flags)
        do throws(IOFailure) {
            switch try inner.write(bytes) {
            case .moved(let count):
                moved.pointee = count
                return 1
            case .end: throw IOFailure(.closedByPeer, .write)
            case .blocked(let interest):
                blocked = interest
                BIO_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
            }
        } catch {
            // Each SSL call begins with an empty error queue.
            if c_ERR_lib(ERR_peek_last_error()) != ERR_LIB_SSL { failure = error }
        }
        return -1
    }
}
