// SPDX-License-Identifier: Apache-2.0

// Bytes of TLS records, read from the transport in one call before OpenSSL asks for them. OpenSSL can read ahead
// itself, but moves all that it has read to the front of its buffer before each record: 3.5 bytes for each byte of a
// large body. It asks for the five bytes of a record's header and then for its body; both are copied from here.

import Synchronization

/// One connection's bytes that OpenSSL has not asked for yet. Without any, it holds no buffer.
struct TLSReadAhead {
    private var buffer: TLSReadBuffer?
    private var rest = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Whether the next buffer is a large one.
    var expectsMuch = false

    var isEmpty: Bool { rest.isEmpty }

    /// Copies the next bytes. Returns their number, 0 if there are none.
    mutating func take(into target: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(rest.count, target.count)
        guard count > 0 else { return 0 }
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        return count
    }

    /// Reads what the transport has, up to the size of a buffer. Called when there are no bytes.
    mutating func fill(from transport: any Transport) throws(IOFailure) -> Progress {
        let buffer = buffer ?? TLSReadBuffer.take(large: expectsMuch)
        self.buffer = buffer
        do throws(IOFailure) {
            let progress = try transport.read(into: buffer.bytes)
            if case .moved(let count) = progress {
                rest = UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count])
            } else {
                releaseIfEmpty()
            }
            return progress
        } catch {
            releaseIfEmpty()
            throw error
        }
    }

    /// Gives the buffer back for other connections, unless it has bytes.
    mutating func releaseIfEmpty() {
        guard rest.isEmpty, let empty = buffer else { return }
        buffer = nil
        empty.giveBack()
    }
}

/// A buffer that connections share: few serve many, and these few stay in the processor's caches.
final class TLSReadBuffer: Sendable {
    // Unsafe: the bytes are accessed only by the connection that has taken the buffer.
    nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer

    /// For small responses; and for bodies, of which one call can read seven records of 16 KB.
    private static let (small, large) = (16 * 1024, 128 * 1024)
    /// At most 256 KiB and 1 MiB are kept for later.
    private static let (mostSmall, mostLarge) = (16, 8)
    private static let spare = Lock<(small: [TLSReadBuffer], large: [TLSReadBuffer])>(([], []))

    private init(_ count: Int) { bytes = .allocate(byteCount: count, alignment: 16) }
    deinit { bytes.deallocate() }

    static func take(large isLarge: Bool) -> TLSReadBuffer {
        spare.withLock { isLarge ? $0.large.popLast() : $0.small.popLast() }
            ?? TLSReadBuffer(isLarge ? large : small)
    }

    func giveBack() {
        Self.spare.withLock { spare in
            if bytes.count == Self.small {
                if spare.small.count < Self.mostSmall { spare.small.append(self) }
            } else if spare.large.count < Self.mostLarge {
                spare.large.append(self)
            }
        }
    }
}
