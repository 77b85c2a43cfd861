// SPDX-License-Identifier: Apache-2.0

// The effect of the peer's SETTINGS on the send windows of streams.

import URLLoadingCNghttp2

extension HTTP2Codec {
    /// Refuses SETTINGS that overflow the send window of a stream, a connection error by RFC 9113 §6.9.2, where nghttp2
    /// would reset the stream and continue. WINDOW_UPDATE frames that overflow a window are refused by nghttp2.
    /// - Parameter frame: a whole frame, or the beginning of a DATA frame.
    func checkSendWindows(_ frame: UnsafeRawBufferPointer) throws(HTTP2Refusal) {
        guard let largest = Self.largestInitialWindow(frame) else { return }
        let initial = Int64(nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE))
        for stream in streams.numbers {
            // nghttp2 returns -1 for a stream whose HEADERS it has not sent, and 0 for a negative window: neither
            // overflows.
            let window = Int64(nghttp2_session_get_stream_remote_window_size(session, stream))
            guard window - initial + largest <= Int64(Int32.max) else {
                throw HTTP2Refusal(.http2FlowControl, "RFC 9113 6.9.2", .flowControlError)
            }
        }
    }

    /// Returns the largest SETTINGS_INITIAL_WINDOW_SIZE in a SETTINGS frame, because its values take effect one after
    /// another (RFC 9113 §6.5.3). `nil` without one, and for other frames.
    private static func largestInitialWindow(_ frame: UnsafeRawBufferPointer) -> Int64? {
        guard let header = HTTP2FrameHeader(frame, at: 0), header.kind == .settings else { return nil }
        let entrySize = 6
        let identifier: UInt16 = 4
        var largest: Int64?
        var start = HTTP2FrameHeader.size
        while start + entrySize <= frame.count {
            let entry = frame[start..<start + entrySize]
            start += entrySize
            guard entry.prefix(2).reduce(UInt16(0), { $0 << 8 | UInt16($1) }) == identifier else { continue }
            largest = max(largest ?? 0, entry.suffix(4).reduce(Int64(0)) { $0 << 8 | Int64($1) })
        }
        return largest
    }
}
