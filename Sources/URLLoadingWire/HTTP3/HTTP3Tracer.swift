// SPDX-License-Identifier: Apache-2.0

#if HTTP3

/// What a trace shows of a connection.
package enum HTTP3Trace: Sendable, Equatable {
    /// A frame of HTTP/3 or a piece of another stream, on one line.
    case frame(String, isSent: Bool)
    /// A record of qlog, without tokens.
    case log([UInt8])
}

/// Writes down the frames that pass between the codecs of a connection.
final class HTTP3Tracer {
    private var http: HTTP3Codec
    private var sent = HTTP3FrameLines()
    private var received = HTTP3FrameLines()
    private var items: [HTTP3Trace] = []
    /// What was offered last, of which a part may go into a packet.
    private var offered: [UInt8] = []
    private var offersEnd = false

    init(_ http: HTTP3Codec) { self.http = http }

    /// Goes on with another codec, whose streams are new.
    func restart(with http: HTTP3Codec) {
        self.http = http
        (sent, received, offered) = (HTTP3FrameLines(), HTTP3FrameLines(), [])
    }

    func receive(_ bytes: UnsafeRawBufferPointer, isEnd: Bool, on stream: Int64) {
        items += received.lines(bytes, isEnd: isEnd, on: stream).map { .frame($0, isSent: false) }
    }

    func closed(_ stream: Int64) {
        sent.closed(stream)
        received.closed(stream)
    }

    func log(_ records: [[UInt8]]) { items += records.map { .log($0) } }

    func takeItems() -> [HTTP3Trace] {
        defer { items = [] }
        return items
    }
}

extension HTTP3Tracer: QUICStreamSource {
    func nextOutput(_ pieces: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>) -> QUICStreamOutput? {
        let output = http.nextOutput(pieces)
        offered = output.map { pieces[..<$0.pieces].flatMap { Array($0) } } ?? []
        offersEnd = output?.isEnd ?? false
        return output
    }

    func took(_ count: Int, on stream: Int64) {
        let isEnd = offersEnd && count == offered.count
        if count > 0 || isEnd {
            let lines = offered.withUnsafeBytes {
                sent.lines(UnsafeRawBufferPointer(rebasing: $0[..<min(count, $0.count)]), isEnd: isEnd, on: stream)
            }
            items += lines.map { .frame($0, isSent: true) }
        }
        http.took(count, on: stream)
    }

    func isBlocked(_ stream: Int64) { http.isBlocked(stream) }
    func isStopped(_ stream: Int64) { http.isStopped(stream) }
}

#endif
