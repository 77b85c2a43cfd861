// SPDX-License-Identifier: Apache-2.0

/// Limits of what a peer can make the codec hold or do on one connection.
package struct HTTP2Limits: Sendable, Hashable {
    /// The size of one head as defined in RFC 9113 §6.5.2: names, values and 32 bytes for each field. Also limits its
    /// compressed form, which is never larger for a legitimate peer.
    package var headSize = 64 * 1024
    /// The number of fields in one head or trailer section.
    package var fieldCount = 1_000
    /// The number of interim responses before the final one.
    package var informationalCount = 16
    /// The number of CONTINUATION frames of one head. With frames of 16 KiB, a head of the largest size needs four.
    package var continuationCount = 32
    /// The number of frames without effect (PING, SETTINGS, RST_STREAM, PRIORITY, WINDOW_UPDATE, DATA that is empty or
    /// only padding, frames on an ended stream, unknown frames) between two that make progress, within ten seconds.
    /// nghttp2 queues at most as many replies to such frames.
    package var idleFrameCount = 1000

    /// The initial receive window of a stream in bytes. It grows while the stream is being read.
    package var streamWindow: Int32 = 256 * 1024
    /// The receive window of the connection in bytes. Its credit is returned on arrival, so that an unread stream does
    /// not block the others.
    package var connectionWindow: Int32 = 64 << 20
    /// The smallest window that is announced, in bytes: a frame of the usual size.
    package static let leastWindow = 16 << 10

    package init() {}
}
