// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoading
import URLLoadingTesting

/// RFC 7541.
@Suite(.timeLimit(.minutes(4)))
struct HPACKTests {
    @Test("fields are read as they were written, whatever they say")
    func roundTrip() throws {
        let fields = HTTP2Fields([
            .init(":status", "200"), .init("content-type", "text/plain", .indexing),
            .init("secret", "x", .neverIndexed),
            .init("Upper", "a\r\nb\0"), .init("", ""), .init("long", String(repeating: "y", count: 50_000)),
            .init(name: [0xFF, 0x80], value: [0, 0xFF]),
        ])
        let reader = HPACKReader()
        for _ in 0..<3 {
            let read = try reader.fields(of: fields.encoded())
            #expect(read.fields.map(\.name) == fields.fields.map(\.name))
            #expect(read.fields.map(\.value) == fields.fields.map(\.value))
            #expect(read.fields[2].form == .neverIndexed)
        }
    }

    @Test("numbers (appendix C.1)")
    func integers() {
        #expect(HPACK.integer(10, prefix: 5) == [10])
        #expect(HPACK.integer(1337, prefix: 5) == [31, 154, 10])
        #expect(HPACK.integer(42, prefix: 8) == [42])
        #expect(HPACK.integer(31, prefix: 5, first: 0x20) == [0x3F, 0])
        #expect(HPACK.tableSize(4_096) == [0x3F, 0xE1, 0x1F])
    }

    @Test("representations (appendix C.2, C.3, C.4)")
    func representations() throws {
        #expect(HPACK.field(.init("ab", "c", .indexing)) == [0x40, 2, 0x61, 0x62, 1, 0x63])
        #expect(HPACK.field(nameIndex: 4, value: "/sample/path") == [0x04, 0x0C] + Array("/sample/path".utf8))
        #expect(HPACK.field(.init("password", "secret", .neverIndexed)).first == 0x10)
        #expect(HPACK.indexed(2) == [0x82])
        let reader = HPACKReader()
        // C.4.1, with Huffman code.
        let authority: [UInt8] =
            [0x41] + HPACK.huffman([0xF1, 0xE3, 0xC2, 0xE5, 0xF2, 0x3A, 0x6B, 0xA0, 0xAB, 0x90, 0xF4, 0xFF])
        let first = try reader.fields(of: HPACK.indexed(2) + HPACK.indexed(6) + HPACK.indexed(4) + authority)
        #expect(first.description == ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com")
        // The table holds it now.
        let second = try reader.fields(of: HPACK.indexed(62))
        #expect(second == [":authority": "www.example.com"])
    }

    @Test("the table is kept, resized and emptied")
    func table() throws {
        let reader = HPACKReader()
        _ = try reader.fields(of: HPACK.field(.init("a", "1", .indexing)) + HPACK.field(.init("b", "2", .indexing)))
        let both = try reader.fields(of: HPACK.indexed(62) + HPACK.indexed(63))
        #expect(both == ["b": "2", "a": "1"])
        _ = try reader.fields(of: HPACK.tableSize(0))
        #expect(throws: HPACKReader.Failure.self) { try reader.fields(of: HPACK.indexed(62)) }
    }

    @Test(
        "blocks that are none",
        arguments: [
            HPACK.indexed(0), HPACK.indexed(62), HPACK.tableSize(1 << 20), [0x82] + HPACK.tableSize(0), [0x7F],
            HPACK.integer(0, prefix: 4) + HPACK.string([0x61], claiming: 9),
            [0xFF] + [UInt8](repeating: 0xFF, count: 30),
            HPACK.integer(0, prefix: 4) + HPACK.string([0x61]) + HPACK.huffman([0xFF, 0xFF, 0xFF, 0xFF]),
        ])
    func wrong(_ block: [UInt8]) {
        #expect(throws: HPACKReader.Failure.self) { try HPACKReader().fields(of: block) }
    }

    @Test("messages and their fields")
    func messages() {
        let fields = HTTP2Fields(.notFound, ["Content-Type": "a", "X": "1"])
        #expect(fields == [":status": "404", "content-type": "a", "x": "1"])
        #expect(fields["content-type"] == "a" && fields["Content-Type"] == nil)
        #expect(fields.headers == ["content-type": "a", "x": "1"])
    }
}
