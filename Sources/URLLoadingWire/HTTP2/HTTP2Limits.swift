/// How much a peer may make us hold or do on one connection (security 50 to 53).
package struct HTTP2Limits: Sendable, Hashable {
    /// One head as it is counted by RFC 9113 6.5.2: names, values and 32 bytes for each field. Also the most its
    /// compressed form may have, which is never larger in good faith.
    package var headSize = 64 * 1024
    /// Fields of one head or trailer section, a count.
    package var fieldCount = 256
    /// Interim responses before the final one.
    package var informationalCount = 16
    /// CONTINUATION frames of one head. With frames of 16 KiB a head of the largest size needs four.
    package var continuationCount = 32
    /// Frames that bring no load further (PING, SETTINGS, RST_STREAM, PRIORITY, WINDOW_UPDATE, DATA that is empty or
    /// only padding, any on a stream that has ended, unknown ones) between two that do, within ten seconds. nghttp2
    /// keeps as many answers to such frames.
    package var idleFrameCount = 1000

    /// What a stream may send before its reader takes anything. It grows while somebody reads.
    package var streamWindow: Int32 = 256 * 1024
    /// What all streams together may have on their way: it is given back on arrival, so that a stream nobody reads
    /// holds up no other.
    package var connectionWindow: Int32 = 16 << 20

    package init() {}
}
