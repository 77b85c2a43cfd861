// SPDX-License-Identifier: Apache-2.0

// A request's fields in the form that nghttp2 and nghttp3 expect: names in lower case, pseudo-header fields first, no
// fields specific to an HTTP/1 connection (RFC 9113 §8.2.2, §8.3.1).

import URLLoadingCNghttp2

struct HTTP2FieldList {
    private(set) var bytes: [UInt8] = []
    private(set) var entries: [Entry] = []

    struct Entry {
        var name: Range<Int>
        var value: Range<Int>
        var isSecret: Bool
    }

    /// Creates a list without fields.
    init() {}

    /// The list's buffers are used again for the next request; those of few requests are larger.
    private static let keptBytes = 4096

    /// Replaces all fields by those of a request; throws for fields that HTTP/1 refuses to send as well.
    mutating func set(_ request: HTTP2Request) throws(WireViolation) {
        guard request.method.isValid else { throw .local(.malformedMethod, "RFC 9110 9.1") }
        // A plain CONNECT has no path and no scheme (RFC 9113 §8.5), and is not a load.
        guard request.method != .connect else { throw .local(.illegalState, "RFC 9113 8.5") }
        guard !request.path.isEmpty, request.path.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw .local(.malformedTarget, "RFC 9113 8.3.1")
        }
        try HTTP1FieldCheck.fields(request.headers)
        let host = try HTTP1FieldCheck.host(request.headers, else: request.authority)
        let framing = try HTTP1FieldCheck.framing(
            request.framing, request.headers, unlessSet: request.method.anticipatesContent ? 0 : nil)

        if bytes.capacity > Self.keptBytes { self = HTTP2FieldList() }
        entries.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
        // One allocation each: the pseudo-header fields and those that are added here take at most this much.
        entries.reserveCapacity(request.headers.count + 7)
        bytes.reserveCapacity(request.headers.byteCount + request.path.count + host.count + 128)
        append(":method", request.tunnelProtocol == nil ? request.method.rawValue : Method.connect.rawValue)
        if let name = request.tunnelProtocol { append(":protocol", name) }
        append(":scheme", request.scheme)
        add(":authority".utf8, host)
        add(":path".utf8, request.path)
        append(request.headers)
        if case .length(let length) = framing { append("content-length", "\(length)") }
        // A priority field set by the caller wins; the default urgency is not sent (RFC 9218 §4).
        if request.urgency != 3, !request.headers.contains("priority") { append("priority", "u=\(request.urgency)") }
    }

    /// Creates trailers, without pseudo-header fields and without fields that are forbidden in trailers.
    init(trailers: Headers) throws(WireViolation) {
        try HTTP1FieldCheck.trailers(trailers)
        append(trailers)
    }

    var isEmpty: Bool { entries.isEmpty }

    /// The size as defined in RFC 9113 §6.5.2, an upper bound of the size on the wire.
    var size: Int { entries.reduce(0) { $0 + $1.name.count + $1.value.count + 32 } }

    private mutating func append(_ headers: Headers) {
        let named = headers.connectionOptions.map { Array("\($0)".lowercased().utf8) }
        headers.forEachRaw { name, value in
            guard !Self.isConnectionSpecific(name, value),
                !named.contains(where: { name.elementsEqual($0) { $0.lowered == $1 } })
            else { return }
            // Split into separate fields, so that unchanged cookies compress well (RFC 9113 §8.2.3).
            if name.matches("cookie", in: 0..<name.count) { addCrumbs(name, value) } else { add(name, value) }
        }
    }

    private mutating func addCrumbs(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        var start = 0
        for index in value.indices.dropLast()
        where value[index] == UInt8(ascii: ";") && value[index + 1] == UInt8(ascii: " ") {
            add(name, value[start..<index])
            start = index + 2
        }
        add(name, value[start...])
    }

    private mutating func append(_ name: String, _ value: String) { add(name.utf8, value.utf8) }

    private mutating func add(_ name: some Collection<UInt8>, _ value: some Collection<UInt8>) {
        let start = bytes.count
        bytes.append(contentsOf: name)
        let middle = bytes.count
        bytes.withUnsafeMutableBufferPointer { bytes in
            for index in start..<middle { bytes[index] = bytes[index].lowered }
        }
        bytes.append(contentsOf: value)
        entries.append(
            Entry(name: start..<middle, value: middle..<bytes.count, isSecret: isSecret(start..<middle, value.count)))
    }

    /// Returns whether a field must not enter the compression table, because its value could be guessed by its
    /// compressed size (RFC 7541 §7.1.3).
    private func isSecret(_ name: Range<Int>, _ valueCount: Int) -> Bool {
        bytes.withUnsafeBytes { bytes in
            bytes.matches("authorization", in: name) || bytes.matches("proxy-authorization", in: name)
                || (valueCount < 20 && bytes.matches("cookie", in: name))
        }
    }

    private static let connectionSpecific: [StaticString] = [
        "host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "content-length",
        "http2-settings",
    ]

    /// Returns whether a field is specific to an HTTP/1 connection. Host becomes :authority, and Content-Length is
    /// written by this type.
    private static func isConnectionSpecific(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
        if name.matches("te", in: 0..<name.count) { return !value.matches("trailers", in: 0..<value.count) }
        return connectionSpecific.contains { name.matches($0, in: 0..<name.count) }
    }

    /// The fields as text including secret values; for tests only.
    var lines: [String] {
        entries.map {
            String(decoding: bytes[$0.name], as: UTF8.self) + "=" + String(decoding: bytes[$0.value], as: UTF8.self)
        }
    }

    /// Lends the fields in nghttp2's representation; nghttp2 copies them, and changes nothing.
    func withFields<R>(_ body: (UnsafeMutablePointer<nghttp2_nv>?, Int) -> R) -> R {
        bytes.withUnsafeBufferPointer { bytes in
            // Never empty when there are entries, because each has a name.
            guard let base = UnsafeMutablePointer(mutating: bytes.baseAddress) else { return body(nil, 0) }
            return withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: entries.count) { list in
                for (index, entry) in entries.enumerated() {
                    list.initializeElement(
                        at: index,
                        to: nghttp2_nv(
                            name: base + entry.name.lowerBound, value: base + entry.value.lowerBound,
                            namelen: entry.name.count, valuelen: entry.value.count,
                            flags: entry.isSecret
                                ? UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) : UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)))
                }
                return body(list.baseAddress, entries.count)
            }
        }
    }
}
