// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Testing
import URLLoadingTesting
import URLLoadingWire

@Suite struct HTTP3FrameTests {
    @Test(
        "Integers of variable length are those of RFC 9000 A.1",
        arguments: [
            (151_288_809_941_952_652, [0xC2, 0x19, 0x7C, 0x5E, 0xFF, 0x14, 0xE8, 0x8C]),
            (494_878_333, [0x9D, 0x7F, 0x3E, 0x7D]), (15_293, [0x7B, 0xBD]), (37, [0x25]), (0, [0]), (63, [63]),
            (64, [0x40, 64]), (QUICInteger.largest, [UInt8](repeating: 0xFF, count: 8)),
        ] as [(UInt64, [UInt8])])
    func integers(_ value: UInt64, _ bytes: [UInt8]) {
        #expect(QUICInteger.bytes(value) == bytes)
        let read = QUICInteger.read(bytes[...])
        #expect(read?.value == value && read?.count == bytes.count)
        #expect(QUICInteger.read(bytes.dropLast()) == nil)
    }

    @Test("Instructions and fields are those of RFC 9204 appendix B") func qpack() {
        #expect(QPACK.capacity(220) == [0x3F, 0xBD, 0x01])
        #expect(
            QPACK.insert(nameOfStatic: 0, "www.example.com") == [0xC0, 0x0F] + Array("www.example.com".utf8))
        #expect(
            QPACK.insert(.init("custom-key", "custom-value"))
                == [0x4A] + Array("custom-key".utf8) + [0x0C] + Array("custom-value".utf8))
        #expect(QPACK.duplicate(2) == [0x02])
        // Four insertions of a table of 220 bytes, and a base of four.
        #expect(QPACK.prefix(inserts: 4, base: 4, capacity: 220) == [0x05, 0x00])
        #expect(QPACK.indexed(0) + QPACK.indexedStatic(1) + QPACK.indexed(1) == [0x80, 0xC1, 0x81])
        #expect(QPACK.section([:]) == [0, 0])
    }

    @Test("Frames are their type, length and payload, which may disagree") func frames() {
        #expect(HTTP3Frame.data([1, 2]).bytes == [0, 2, 1, 2])
        #expect(HTTP3Frame.settings([.init(0x4000, 1)]).bytes == [4, 5, 0x80, 0, 0x40, 0, 1])
        #expect(HTTP3Frame.settings([.init(6, 1)]).settings == [.maxFieldSectionSize(1)])
        #expect(HTTP3Frame(.settings, payload: [1]).settings == nil && HTTP3Frame.data([]).settings == nil)
        #expect(HTTP3Frame.goAway(from: 64).number == 64 && HTTP3Frame(.goAway, payload: [1, 2]).number == nil)
        var frame = HTTP3Frame.data([1])
        frame.declaredLength = 100
        #expect(frame.bytes == [0, 0x40, 100, 1] && frame.description == "DATA, 100 bytes")
        #expect("\(HTTP3Frame.ErrorCode.missingSettings)" == "H3_MISSING_SETTINGS")
    }
}

#endif
