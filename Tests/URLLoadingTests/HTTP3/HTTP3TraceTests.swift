// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Foundation
import Testing
@testable import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(2)))
struct HTTP3TraceTests {
    @Test("A packet is a line, with its frames") func packets() throws {
        func line(_ text: String) -> QUICPacketLine? { QUICPacketLine(Array("\u{1E}\(text)\n".utf8)) }
        let sent = try #require(
            line(
                """
                {"time":1,"name":"transport:packet_sent","data":{"frames":[{"frame_type":"ack","ack_delay":1,\
                "acked_ranges":[[0,1]]},{"frame_type":"stream","stream_id":0,"offset":0,"length":35,"fin":true}],\
                "header":{"packet_type":"1RTT","packet_number":4},"raw":{"length":80}}}
                """))
        #expect(sent.isSent && sent.text == "QUIC 1RTT 4, 80 bytes: ack, stream 0 (35) end")
        let received = try #require(
            line(#"{"time":1,"name":"transport:packet_received","data":{"header":{"packet_type":"retry"}}}"#))
        #expect(!received.isSent && received.text == "QUIC retry")
        #expect(line(#"{"time":1,"name":"recovery:metrics_updated","data":{"cwnd":1}}"#) == nil)
        #expect(line("{") == nil)
    }

    @Test("A trace shows packets and frames, and the log has one record for each packet and no token")
    func trace() async throws {
        let events = Watched<[WireTapEvent]>([])
        try await withHTTP3(change: { $0.wireTap = { event in events.change { $0.append(event) } } }) {
            server, session in
            _ = try await session.data(from: server.url("/"))
        }
        let frames = events.value.compactMap { event -> String? in
            if case .frame(let line, let isSent, _) = event { (isSent ? "> " : "< ") + line } else { nil }
        }
        let shown = frames.joined(separator: "\n")
        #expect(frames.contains { $0.hasPrefix("> QUIC initial 0, ") && $0.contains("crypto") }, "\(shown)")
        #expect(frames.contains { $0.hasPrefix("< QUIC handshake ") }, "\(shown)")
        #expect(frames.contains { $0.hasPrefix("> stream 0: HEADERS, ") }, "\(shown)")
        #expect(frames.contains("> stream 0 ends"), "\(shown)")
        #expect(frames.contains { $0.hasPrefix("> control stream: SETTINGS, ") }, "\(shown)")
        #expect(frames.contains { $0.hasPrefix("< control stream: SETTINGS, ") }, "\(shown)")
        #expect(frames.contains { $0.hasPrefix("< stream 0: HEADERS, ") }, "\(shown)")
        #expect(frames.contains("< stream 0: DATA, 5 bytes"), "\(shown)")
        let log = events.value.compactMap { event -> String? in
            if case .log(let record, _) = event { String(decoding: record, as: UTF8.self) } else { nil }
        }
        #expect(log.first?.contains("JSON-SEQ") == true)
        #expect(log.allSatisfy { $0.hasPrefix("\u{1E}{") && $0.hasSuffix("}\n") })
        for record in log {
            #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(record.utf8.dropFirst())) }
        }
        #expect(log.contains { $0.contains("token\":{}") })
        #expect(!log.contains { $0.contains("token\":{\"") })
    }
}

#endif
