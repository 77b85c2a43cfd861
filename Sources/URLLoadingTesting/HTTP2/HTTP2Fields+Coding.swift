// SPDX-License-Identifier: Apache-2.0

// HPACK (RFC 7541). The encoder is written here, because it must be able to produce invalid blocks; nghttp2 decodes.

import URLLoadingCNghttp2

extension HTTP2Fields {
    /// Encodes the fields as a field block, the content of HEADERS and CONTINUATION.
    ///
    /// ```swift
    /// peer.send(.headers(stream: 1, HTTP2Fields(.ok).encoded(), endStream: true))
    /// ```
    public func encoded() -> [UInt8] { fields.flatMap { HPACK.field($0) } }
}

/// The instructions of HPACK, one by one, for blocks that no regular encoder would produce.
///
/// ```swift
/// let bomb = HPACK.field(.init("x", long, .indexing)) + HPACK.indexed(62, times: 10_000)
/// ```
public enum HPACK {
    /// Encodes a field literally (RFC 7541 §6.2).
    public static func field(_ field: HTTP2Fields.Field) -> [UInt8] {
        first(field.form, nameIndex: 0) + string(field.name) + string(field.value)
    }

    /// Encodes a field whose name is in a table; 1 to 61 are the static table (RFC 7541 appendix A).
    public static func field(nameIndex: Int, value: String, _ form: HTTP2Fields.Form = .withoutIndexing) -> [UInt8] {
        first(form, nameIndex: nameIndex) + string(Array(value.utf8))
    }

    /// Encodes a table entry (§6.1); 0 is an error, 62 is the most recently added entry.
    public static func indexed(_ index: Int, times: Int = 1) -> [UInt8] {
        let once = integer(index, prefix: 7, first: 0x80)
        guard times != 1 else { return once }
        return (0..<max(0, times)).flatMap { _ in once }
    }

    /// Encodes a table size update (§6.3); legal only at the beginning of a block and up to the peer's limit.
    public static func tableSize(_ size: Int) -> [UInt8] { integer(size, prefix: 5, first: 0x20) }

    /// Encodes an integer (§5.1) in the low `prefix` bits of `first` and the bytes after it.
    public static func integer(_ value: Int, prefix: Int, first: UInt8 = 0) -> [UInt8] {
        let limit = 1 << prefix - 1
        guard value >= limit else { return [first | UInt8(truncatingIfNeeded: value)] }
        var bytes = [first | UInt8(truncatingIfNeeded: limit)]
        var rest = value - limit
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest & 0x7F) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(truncatingIfNeeded: rest)]
    }

    /// Encodes a string (§5.2) without compression; `claiming` states a length that may be false.
    public static func string(_ bytes: [UInt8], claiming length: Int? = nil) -> [UInt8] {
        integer(length ?? bytes.count, prefix: 7) + bytes
    }

    /// Encodes a string that is marked as compressed, with these bytes as its Huffman code.
    public static func huffman(_ code: [UInt8]) -> [UInt8] { integer(code.count, prefix: 7, first: 0x80) + code }

    private static func first(_ form: HTTP2Fields.Form, nameIndex: Int) -> [UInt8] {
        switch form {
        case .indexing: integer(nameIndex, prefix: 6, first: 0x40)
        case .withoutIndexing: integer(nameIndex, prefix: 4)
        case .neverIndexed: integer(nameIndex, prefix: 4, first: 0x10)
        }
    }
}

/// Decodes the field blocks of one direction, in order of arrival, because each one changes the table for the next.
package final class HPACKReader {
    private var inflater: OpaquePointer?

    /// The block cannot be decoded, nor any after it.
    package struct Failure: Error { package let detail: String }

    package init() { nghttp2_hd_inflate_new(&inflater) }

    deinit { nghttp2_hd_inflate_del(inflater) }

    /// Decodes one complete block.
    package func fields(of block: [UInt8]) throws(Failure) -> HTTP2Fields {
        guard let inflater else { throw Failure(detail: "no memory") }
        var result = HTTP2Fields()
        let status = block.withUnsafeBufferPointer { Self.read($0, inflater, into: &result) }
        guard status >= 0 else { throw Failure(detail: String(cString: nghttp2_strerror(Int32(status)))) }
        nghttp2_hd_inflate_end_headers(inflater)
        return result
    }

    private static func read(
        _ block: UnsafeBufferPointer<UInt8>, _ inflater: OpaquePointer, into result: inout HTTP2Fields
    ) -> Int {
        var position = 0
        while true {
            var pair = nghttp2_nv()
            var flags: Int32 = 0
            let used = nghttp2_hd_inflate_hd2(
                inflater, &pair, &flags, block.baseAddress.map { $0 + position }, block.count - position, 1)
            guard used >= 0 else { return used }
            position += used
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 { result.fields.append(.init(pair)) }
            if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 { return position }
            guard used > 0 || flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 else { return position }
        }
    }
}

extension HTTP2Fields.Field {
    fileprivate init(_ pair: nghttp2_nv) {
        let isNever = pair.flags & UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) != 0
        self.init(
            name: Array(UnsafeBufferPointer(start: pair.name, count: pair.namelen)),
            value: Array(UnsafeBufferPointer(start: pair.value, count: pair.valuelen)),
            isNever ? .neverIndexed : .withoutIndexing)
    }
}
