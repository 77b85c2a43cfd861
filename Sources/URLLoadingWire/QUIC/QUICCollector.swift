// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingCNgtcp2

/// What the callbacks of ngtcp2 write down within one call of the codec, and what they need for it.
final class QUICCollector {
    let limits: QUICLimits
    private var events: [QUICEvent] = []
    /// The bytes of the streams in the events.
    private(set) var input: [UInt8] = []
    var flood = QUICFlood()
    /// The source of the packets that are being written.
    var source: (any QUICStreamSource)?
    /// True if the peer has lost the connection's state (RFC 9000 §10.3).
    var wasReset = false
    var log = QUICLog()
    /// Whether the peer is asked for an answer on another path.
    var isAsking = false

    /// Whether streams may carry early data, until the handshake shows what became of it.
    var mayBeEarly = false
    private let security: any QUICSecurity

    init(_ limits: QUICLimits, _ security: any QUICSecurity) { (self.limits, self.security) = (limits, security) }

    /// What ngtcp2 passes to its callbacks. The codec holds this object for longer than the connection lives.
    var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    func takeEvents() -> [QUICEvent] {
        guard !events.isEmpty else { return [] }
        defer { events = [] }
        return events
    }

    func releaseInput() {
        if input.capacity > Self.keptInput { input = [] } else { input.removeAll(keepingCapacity: true) }
    }
    /// What is received at once is four groups of at most 64 KiB.
    private static let keptInput = 256 * 1024

    func add(_ event: QUICEvent) { events.append(event) }

    /// Handles the end of the handshake, which is when OpenSSL tells what became of early data.
    func completed(_ connection: OpaquePointer) -> Int32 {
        var result: Int32 = 0
        if mayBeEarly, !security.hasAcceptedEarlyData {
            result = ngtcp2_conn_tls_early_data_rejected(connection)
            add(.earlyDataRejected)
        }
        mayBeEarly = false
        add(.handshakeCompleted)
        return result
    }

    func asked(for path: UInt32, hasAnswered: Bool) {
        isAsking = false
        add(hasAnswered ? .moved(path) : .pathFailed(path))
    }

    func receive(_ bytes: UnsafeRawBufferPointer, isEnd: Bool, on stream: Int64) {
        guard isEnd || !bytes.isEmpty else { return }
        flood.progressed()
        var start = input.count
        input.append(contentsOf: bytes)
        // What packets bring one after the other is read at once.
        if case .data(stream, let last, isEnd: false)? = events.last, last.upperBound == start {
            start = last.lowerBound
            events.removeLast()
        }
        add(.data(stream, start..<input.count, isEnd: isEnd))
    }

    func acknowledged(_ count: Int, on stream: Int64) {
        flood.progressed()
        add(.acknowledged(stream, count))
    }

    /// Handles the end of a stream: lets the peer open another one of its kind.
    func closed(_ stream: Int64, _ code: UInt64?, of connection: OpaquePointer) {
        if ngtcp2_conn_is_local_stream(connection, stream) == 0 {
            if ngtcp2_is_bidi_stream(stream) == 1 {
                ngtcp2_conn_extend_max_streams_bidi(connection, 1)
            } else {
                ngtcp2_conn_extend_max_streams_uni(connection, 1)
            }
        }
        add(.closed(stream, code))
    }

    /// Fills one packet.
    func write(
        _ connection: OpaquePointer, _ path: UnsafeMutablePointer<ngtcp2_path>?,
        _ info: UnsafeMutablePointer<ngtcp2_pkt_info>?,
        _ bytes: UnsafeMutablePointer<UInt8>?, _ count: Int, _ now: UInt64
    ) -> Int {
        withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: Self.pieces) { lent in
            withUnsafeTemporaryAllocation(of: ngtcp2_vec.self, capacity: Self.pieces) { pieces in
                while true {
                    let next = source?.nextOutput(lent)
                    let used = next?.pieces ?? 0
                    for index in 0..<used {
                        let piece = lent[index].bindMemory(to: UInt8.self)
                        pieces.initializeElement(
                            at: index,
                            to: ngtcp2_vec(base: UnsafeMutablePointer(mutating: piece.baseAddress), len: piece.count))
                    }
                    var taken = -1
                    let flags =
                        UInt32(NGTCP2_WRITE_STREAM_FLAG_MORE)
                        | (next?.isEnd == true ? UInt32(NGTCP2_WRITE_STREAM_FLAG_FIN) : 0)
                    let written = c_ngtcp2_conn_writev_stream(
                        connection, path, info, bytes, count, &taken, flags, next?.stream ?? -1,
                        pieces.baseAddress, used, now)
                    if let next, taken >= 0 { source?.took(taken, on: next.stream) }
                    guard written < 0 else { return written }
                    switch (Int32(truncatingIfNeeded: written), next) {
                    case (NGTCP2_ERR_WRITE_MORE, _?): continue
                    case (NGTCP2_ERR_STREAM_DATA_BLOCKED, let next?): source?.isBlocked(next.stream)
                    case (NGTCP2_ERR_STREAM_SHUT_WR, let next?), (NGTCP2_ERR_STREAM_NOT_FOUND, let next?):
                        source?.isStopped(next.stream)
                    default: return written
                    }
                }
            }
        }
    }
    private static let pieces = 16
}

#endif
