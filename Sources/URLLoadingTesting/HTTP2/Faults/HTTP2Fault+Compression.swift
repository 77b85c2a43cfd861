// SPDX-License-Identifier: Apache-2.0

// In this folder: what a peer of HTTP/2 may do wrong

// Field blocks that are malformed, or small on the wire and large after decompression (RFC 7541 §7.3).

extension HTTP2Fault {
    /// Faults of HPACK.
    public static let compression: [HTTP2Fault] =
        bombs + [
            block("a table size beyond the limit", HPACK.tableSize(1 << 20) + status),
            block("a table size in a block", status + HPACK.tableSize(0)),
            block("index 0", status + HPACK.indexed(0)),
            block("an index beyond the table", status + HPACK.indexed(62)),
            block("a name beyond the table", status + HPACK.field(nameIndex: 4_000, value: "x")),
            block("a number without end", status + [0xFF] + [UInt8](repeating: 0xFF, count: 30)),
            block(
                "a string beyond its block",
                status + HPACK.integer(0, prefix: 4) + HPACK.string([0x78]) + HPACK.string([0x79], claiming: 100)),
            block("a number cut off", status + [0x7F]),
            block("Huffman code with an end of string", status + huffmanField([0xFF, 0xFF, 0xFF, 0xFF])),
            block("Huffman code padded with zeros", status + huffmanField([0x18])),
            block("Huffman code with too much padding", status + huffmanField([0x1F, 0xFF])),
        ]

    /// Blocks that are small on the wire and large after decompression.
    static let bombs: [HTTP2Fault] = [indexBomb, hugeField, manyFields, quadraticHuffman, tableSizeFlood]

    /// A field of 4,000 bytes in the dynamic table, referenced 16,000 times: 16 KB that decompress to 64 MB.
    public static let indexBomb = section("HPACK index bomb", .streamFails()) {
        status + HPACK.field(.init("x", String(repeating: "a", count: 4_000), .indexing))
            + HPACK.indexed(62, times: 16_000)
    }

    /// One field of 1 MiB.
    public static let hugeField = section("a field of 1 MiB", .streamFails()) {
        status + HPACK.field(.init("x", String(repeating: "a", count: 1 << 20)))
    }

    /// A hundred thousand fields.
    public static let manyFields = section("100,000 fields", .streamFails()) {
        let field = HPACK.field(.init("x", "y"))
        return status + (0..<100_000).flatMap { _ in field }
    }

    /// One Huffman string of 60,000 bytes, in CONTINUATIONs of a few bytes each: a decoder that restarts with each
    /// frame needs quadratic time (CVE-2022-41723).
    public static let quadraticHuffman = instead("quadratic Huffman", .streamFails()) { peer, stream in
        // Twelve thousand groups of eight letters of five bits.
        let code = (0..<12_000).flatMap { _ in [0x18, 0xC6, 0x31, 0x8C, 0x63] as [UInt8] }
        let block = status + huffmanField(code)
        try await peer.headers(stream, block: block, splitInto: 6_000)
        try await peer.data(stream, answer, endStream: true)
    }

    /// Ten thousand table size updates in one block; at most two are legitimate (RFC 7541 §4.2).
    public static let tableSizeFlood = section("a flood of table sizes", .ends) {
        (0..<10_000).flatMap { HPACK.tableSize($0 % 2 == 0 ? 0 : 4_096) } + status
    }

    static let status = HPACK.field(.init(":status", "200"))

    private static func huffmanField(_ code: [UInt8]) -> [UInt8] {
        HPACK.integer(0, prefix: 4) + HPACK.string([0x78]) + HPACK.huffman(code)
    }

    private static func block(_ name: String, _ block: [UInt8]) -> HTTP2Fault {
        section(name, .connectionFails([.compressionError])) { block }
    }

    /// Sends a block in as many frames as required, then the body.
    private static func section(_ name: String, _ outcome: Outcome, _ block: @escaping @Sendable () -> [UInt8])
        -> HTTP2Fault
    {
        instead(name, outcome) { peer, stream in
            let block = block()
            try await peer.headers(stream, block: block, splitInto: max(1, (block.count + 16_383) / 16_384))
            try await peer.data(stream, answer, endStream: true)
        }
    }
}
