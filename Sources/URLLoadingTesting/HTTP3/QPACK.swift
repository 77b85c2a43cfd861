// SPDX-License-Identifier: Apache-2.0

// QPACK (RFC 9204). The encoder is written here, because it must be able to produce invalid sections; nghttp3 decodes.

#if HTTP3

import URLLoadingCNghttp3

/// The instructions of QPACK (RFC 9204), one by one, for field sections and tables that no regular encoder would
/// produce.
///
/// ```swift
/// try await peer.sendEncoder(QPACK.capacity(220) + QPACK.insert(.init("x", "y")))
/// let section = QPACK.prefix(inserts: 1, base: 1) + QPACK.field(.init(":status", "200")) + QPACK.indexed(0)
/// try await peer.send(HTTP3Frame(.headers, payload: section), on: request.stream)
/// ```
public enum QPACK {
    /// Encodes a whole section with literal fields, which refer to no table.
    public static func section(_ fields: HTTP2Fields) -> [UInt8] { prefix() + fields.fields.flatMap { field($0) } }

    /// Encodes the prefix of a section (§4.5.1).
    /// - Parameters:
    ///   - inserts: how many entries the table must have received, at least 0.
    ///   - base: the number of entries that relative indices count from, at least `inserts`.
    ///   - capacity: the largest capacity that the client permits, in bytes; 4,096 is that of this library.
    public static func prefix(inserts: Int = 0, base: Int = 0, capacity: Int = 4_096) -> [UInt8] {
        let encoded = inserts == 0 ? 0 : inserts % max(1, 2 * (capacity / 32)) + 1
        return HPACK.integer(encoded, prefix: 8) + HPACK.integer(max(0, base - inserts), prefix: 7)
    }

    /// Encodes a field literally (§4.5.6); one that is never indexed is marked so.
    public static func field(_ field: HTTP2Fields.Field) -> [UInt8] {
        HPACK.integer(field.name.count, prefix: 3, first: field.form == .neverIndexed ? 0x30 : 0x20) + field.name
            + HPACK.string(field.value)
    }

    /// Encodes an entry of the static table, 0 to 98 (§4.5.2, appendix A).
    public static func indexedStatic(_ index: Int) -> [UInt8] { HPACK.integer(index, prefix: 6, first: 0xC0) }

    /// Encodes an entry of the dynamic table (§4.5.2); 0 is the last one before the base.
    public static func indexed(_ index: Int, times: Int = 1) -> [UInt8] {
        let once = HPACK.integer(index, prefix: 6, first: 0x80)
        return (0..<max(0, times)).flatMap { _ in once }
    }

    // MARK: Instructions of the encoder stream

    /// Sets the capacity of the table in bytes (§4.3.1).
    public static func capacity(_ bytes: Int) -> [UInt8] { HPACK.integer(bytes, prefix: 5, first: 0x20) }

    /// Inserts a field (§4.3.3).
    public static func insert(_ field: HTTP2Fields.Field) -> [UInt8] {
        HPACK.integer(field.name.count, prefix: 5, first: 0x40) + field.name + HPACK.string(field.value)
    }

    /// Inserts a field with the name of an entry of the static table, 0 to 98 (§4.3.2).
    public static func insert(nameOfStatic index: Int, _ value: String) -> [UInt8] {
        HPACK.integer(index, prefix: 6, first: 0xC0) + HPACK.string(Array(value.utf8))
    }

    /// Inserts an entry again (§4.3.4); 0 is the last one.
    public static func duplicate(_ index: Int) -> [UInt8] { HPACK.integer(index, prefix: 5) }
}

/// Decodes the field sections of a client that may use no table.
final class QPACKReader {
    private var decoder: OpaquePointer?

    /// Why a section cannot be decoded.
    struct Failure: Error { let detail: String }

    init() { nghttp3_qpack_decoder_new(&decoder, 0, 0, nghttp3_mem_default()) }

    deinit { nghttp3_qpack_decoder_del(decoder) }

    func fields(of section: [UInt8]) throws(Failure) -> HTTP2Fields {
        var context: OpaquePointer?
        nghttp3_qpack_stream_context_new(&context, 0, nghttp3_mem_default())
        defer { nghttp3_qpack_stream_context_del(context) }
        guard let decoder, let context else { throw Failure(detail: "no memory") }
        var fields = HTTP2Fields()
        let result = section.withUnsafeBufferPointer { Self.read($0, decoder, context, into: &fields) }
        guard result >= 0 else { throw Failure(detail: String(cString: nghttp3_strerror(Int32(result)))) }
        return fields
    }

    private static func read(
        _ section: UnsafeBufferPointer<UInt8>, _ decoder: OpaquePointer, _ context: OpaquePointer,
        into fields: inout HTTP2Fields
    ) -> Int {
        var position = 0
        while true {
            var (pair, flags) = (nghttp3_qpack_nv(), UInt8(0))
            let used = nghttp3_qpack_decoder_read_request(
                decoder, context, &pair, &flags, section.baseAddress.map { $0 + position }, section.count - position, 1)
            guard used >= 0 else { return used }
            position += used
            let isField = flags & UInt8(NGHTTP3_QPACK_DECODE_FLAG_EMIT) != 0
            if isField { fields.fields.append(HTTP2Fields.Field(taking: pair)) }
            if flags & UInt8(NGHTTP3_QPACK_DECODE_FLAG_BLOCKED) != 0 {
                return Int(NGHTTP3_ERR_QPACK_DECOMPRESSION_FAILED)
            }
            if flags & UInt8(NGHTTP3_QPACK_DECODE_FLAG_FINAL) != 0 { return position }
            guard used > 0 || isField else { return Int(NGHTTP3_ERR_QPACK_DECOMPRESSION_FAILED) }
        }
    }
}

extension HTTP2Fields.Field {
    fileprivate init(taking pair: nghttp3_qpack_nv) {
        let (name, value) = (nghttp3_rcbuf_get_buf(pair.name), nghttp3_rcbuf_get_buf(pair.value))
        self.init(
            name: Array(UnsafeBufferPointer(start: name.base, count: name.len)),
            value: Array(UnsafeBufferPointer(start: value.base, count: value.len)),
            pair.flags & UInt8(NGHTTP3_NV_FLAG_NEVER_INDEX) != 0 ? .neverIndexed : .withoutIndexing)
        nghttp3_rcbuf_decref(pair.name)
        nghttp3_rcbuf_decref(pair.value)
    }
}

#endif
