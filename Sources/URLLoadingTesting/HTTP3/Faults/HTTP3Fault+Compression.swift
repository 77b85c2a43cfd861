// SPDX-License-Identifier: Apache-2.0

// Faults of QPACK (RFC 9204).

#if HTTP3

extension HTTP3Fault {
    /// Field sections and instructions that cannot be decoded (RFC 9204 §2.2, §3, §4).
    public static let compression: [HTTP3Fault] = [
        section("an entry beyond the static table", QPACK.prefix() + QPACK.indexedStatic(99)),
        section("an entry of an empty table", QPACK.prefix() + QPACK.indexed(0)),
        section(
            "an entry beyond the table",
            QPACK.prefix(inserts: 1, base: 1) + QPACK.field(.init(":status", "200")) + QPACK.indexed(5),
            QPACK.capacity(220) + QPACK.insert(.init("x", "y"))),
        section("half a prefix", [0]),
        section("a field that is cut off", Array(QPACK.section([":status": "200", "x": "abc"]).dropLast())),
        section("a wrong Huffman code", QPACK.prefix() + [0x21, 0x78] + HPACK.huffman([0xFF, 0xFF, 0xFF, 0xFF])),
        section("an integer without an end", QPACK.prefix() + [0xFF] + [UInt8](repeating: 0xFF, count: 20)),
        instructions("a table beyond the client's limit", QPACK.capacity(1 << 20)),
        instructions("a duplicate of nothing", QPACK.duplicate(0)),
        instructions("the name of an entry beyond the static table", QPACK.insert(nameOfStatic: 99, "x")),
        instructions(
            "an entry that is larger than the table",
            QPACK.capacity(40) + QPACK.insert(.init("x", String(repeating: "a", count: 100)))),
        acknowledgement("an acknowledgement of no entries", HPACK.integer(0, prefix: 6)),
        acknowledgement("an acknowledgement of a section without a table", HPACK.integer(0, prefix: 7, first: 0x80)),
        acknowledgement("an acknowledgement of entries that were not sent", HPACK.integer(7, prefix: 6)),
        // RFC 9204 §2.1.2: a decoder waits for the entry.
        instead("an entry that never comes", .stalls) { peer, stream in
            let section = QPACK.prefix(inserts: 1, base: 1) + QPACK.indexed(0)
            try await peer.send(HTTP3Frame(.headers, payload: section), .data(answer), on: stream, endStream: true)
        },
        // A section of some bytes for 4 MB.
        instead("a bomb of fields", .streamFails()) { peer, stream in
            try await peer.sendEncoder(
                QPACK.capacity(4_096) + QPACK.insert(.init("x", String(repeating: "a", count: 4_000))))
            let section =
                QPACK.prefix(inserts: 1, base: 1) + QPACK.field(.init(":status", "200"))
                + QPACK.indexed(0, times: 1_000)
            try await peer.send(HTTP3Frame(.headers, payload: section), .data(answer), on: stream, endStream: true)
        },
    ]

    private static func section(_ name: String, _ section: [UInt8], _ instructions: [UInt8] = []) -> HTTP3Fault {
        instead(name, .connectionFails([.qpackDecompressionFailed])) { peer, stream in
            if !instructions.isEmpty { try await peer.sendEncoder(instructions) }
            try await peer.send(HTTP3Frame(.headers, payload: section), .data(answer), on: stream, endStream: true)
        }
    }

    private static func instructions(_ name: String, _ bytes: [UInt8]) -> HTTP3Fault {
        instead(name, .connectionFails([.qpackEncoderStreamError])) { peer, _ in try await peer.sendEncoder(bytes) }
    }

    private static func acknowledgement(_ name: String, _ bytes: [UInt8]) -> HTTP3Fault {
        instead(name, .connectionFails([.qpackDecoderStreamError])) { peer, _ in
            try await peer.sendRaw(bytes, on: try await peer.qpackStreams().decoder)
        }
    }
}

#endif
