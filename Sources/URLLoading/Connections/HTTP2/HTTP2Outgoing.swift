// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO
import URLLoadingWire

/// Frames that are not yet written to the socket. Used by the writer only.
struct HTTP2Outgoing {
    var bytes: [UInt8] = []
    private var sent = 0
    private var lines = HTTP2Codec.Watch()

    static let size = 64 * 1024

    var isSent: Bool { sent == bytes.count }

    /// Empties the buffer. Returns whether bytes have been sent since the last call.
    mutating func clear() -> Bool {
        defer {
            bytes.removeAll(keepingCapacity: true)
            sent = 0
        }
        return sent > 0
    }

    func write(to transport: any Transport) -> Result<Progress, IOFailure> {
        bytes.withUnsafeBytes { bytes in
            let rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
            return Result { () throws(IOFailure) in try transport.write(rest) }
        }
    }

    mutating func advance(_ count: Int) { sent += count }

    /// The frames in the next written bytes, for the wire tap.
    mutating func lines(ofNext count: Int) -> [String] {
        bytes.withUnsafeBytes {
            lines.lines(UnsafeRawBufferPointer(rebasing: $0[sent..<sent + count]), skipsPreface: true)
        }
    }
}
