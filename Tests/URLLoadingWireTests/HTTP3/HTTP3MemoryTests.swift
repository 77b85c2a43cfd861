// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Testing

@testable import URLLoadingWire

/// The settings of a server that early data keeps to.
@Suite struct HTTP3MemoryTests {
    private static func settings(
        head: UInt64 = .max, table: Int = 0, blocked: Int = 0, datagrams: Bool = false
    ) -> HTTP3PeerSettings {
        var settings = HTTP3PeerSettings()
        (settings.headSize, settings.tableSize) = (head, table)
        (settings.blockedStreamCount, settings.takesDatagrams) = (blocked, datagrams)
        return settings
    }

    @Test("A server that has accepted early data may raise its settings, and not lower them (RFC 9114 7.2.4.2)")
    func breaches() {
        let rows: [(HTTP3PeerSettings, HTTP3PeerSettings, HTTP3ErrorCode?)] = [
            (Self.settings(), Self.settings(), nil),
            (Self.settings(head: 100), Self.settings(head: 100), nil),
            (Self.settings(head: 100), Self.settings(head: 101), nil),
            (Self.settings(head: 100), Self.settings(head: 99), .settingsError),
            (Self.settings(), Self.settings(head: 100), .settingsError),
            (Self.settings(blocked: 2), Self.settings(blocked: 3), nil),
            (Self.settings(blocked: 2), Self.settings(blocked: 1), .settingsError),
            (Self.settings(), Self.settings(datagrams: true), nil),
            (Self.settings(datagrams: true), Self.settings(), .settingsError),
            // The size of a table that the client may have filled must be the same (RFC 9204 §3.2.3).
            (Self.settings(table: 0), Self.settings(table: 4_096), nil),
            (Self.settings(table: 4_096), Self.settings(table: 4_096), nil),
            (Self.settings(table: 4_096), Self.settings(table: 8_192), .qpackDecoderStreamError),
            (Self.settings(table: 4_096), Self.settings(table: 0), .qpackDecoderStreamError),
        ]
        for (remembered, now, code) in rows { #expect(now.breach(of: remembered) == code, "\(remembered), \(now)") }
    }

    private static func codec(_ remembered: HTTP3PeerSettings?) throws -> HTTP3Codec {
        let codec = try HTTP3Codec(HTTP3Limits(), remembered: remembered)
        try codec.bind(control: 2, encoder: 6, decoder: 10)
        return codec
    }

    private static func submit(_ count: Int, to codec: HTTP3Codec) throws(WireViolation) {
        let request = HTTP2Request(
            method: .get, scheme: "https", authority: Array("example.org".utf8),
            path: Array("/".utf8) + [UInt8](repeating: 0x61, count: count))
        try codec.submit(request, hasBody: false, on: 0)
    }

    @Test("A head keeps to the remembered limit before the settings have arrived")
    func headSize() throws {
        let error = #expect(throws: WireViolation.self) {
            try Self.submit(1_000, to: Self.codec(Self.settings(head: 1_000)))
        }
        #expect(error?.code == .headTooLarge && error?.party == .local)
        try Self.submit(100, to: Self.codec(Self.settings(head: 1_000)))
        try Self.submit(1_000, to: Self.codec(nil))
    }

    @Test("Settings are known once they have arrived, unless they break the rules", arguments: [100, 99] as [UInt8])
    func arrival(size: UInt8) throws {
        let codec = try Self.codec(Self.settings(head: 100))
        #expect(codec.peerSettings == nil)
        // A control stream, and SETTINGS with SETTINGS_MAX_FIELD_SECTION_SIZE.
        let bytes: [UInt8] = [0, 4, 3, 6, 0x40, size]
        _ = bytes.withUnsafeBytes { codec.receive($0, isEnd: false, on: 3) }
        let events = codec.takeEvents()
        if size == 100 {
            #expect(events == [.settings] && codec.peerSettings?.headSize == 100)
        } else {
            #expect(events.contains { if case .failed(_, .settingsError) = $0 { true } else { false } })
            #expect(codec.peerSettings == nil)
        }
    }
}

#endif
