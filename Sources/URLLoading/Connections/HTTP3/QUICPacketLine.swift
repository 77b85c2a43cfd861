// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import FoundationEssentials

/// A packet of QUIC on one line, from its record of qlog.
struct QUICPacketLine: Equatable {
    let text: String
    let isSent: Bool

    /// Returns `nil` for a record of another event.
    init?(_ record: [UInt8]) {
        guard let event = try? JSONDecoder().decode(Event.self, from: Data(record.drop { $0 == 0x1E })),
            ["transport:packet_sent", "transport:packet_received"].contains(event.name)
        else { return nil }
        isSent = event.name == "transport:packet_sent"
        var text = "QUIC \(event.data.header.packet_type)"
        if let number = event.data.header.packet_number { text += " \(number)" }
        if let length = event.data.raw?.length { text += ", \(length) bytes" }
        let frames = (event.data.frames ?? []).map(\.text)
        self.text = frames.isEmpty ? text : text + ": " + frames.joined(separator: ", ")
    }

    // The names are those of qlog.
    private struct Event: Decodable {
        let name: String
        let data: Content
    }

    private struct Content: Decodable {
        let header: Header
        let raw: Raw?
        let frames: [Frame]?
    }

    private struct Header: Decodable {
        let packet_type: String
        let packet_number: UInt64?
    }

    private struct Raw: Decodable {
        let length: UInt64?
    }

    private struct Frame: Decodable {
        let frame_type: String
        let stream_id: Int64?
        let length: UInt64?
        let fin: Bool?

        var text: String {
            var text = frame_type
            if let stream_id { text += " \(stream_id)" }
            if let length { text += " (\(length))" }
            return fin == true ? text + " end" : text
        }
    }
}

#endif
