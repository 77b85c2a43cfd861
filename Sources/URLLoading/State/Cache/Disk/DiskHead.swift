// SPDX-License-Identifier: Apache-2.0

// The stored form of a response's head. One checksum protects everything that determines the response; the other
// columns of the row serve lookup and sorting, and are not trusted.

import URLLoadingIO
import URLLoadingWire

struct DiskHead: Sendable {
    var response: StoredResponse
    /// The name of the file that has the body; `nil` if the body is empty.
    var file: String?
    /// Where the body begins in a pack; 0 in a file of its own.
    var offset: Int64
    /// The checksums of the body's blocks.
    var sums: [UInt32]

    private static let format: UInt8 = 3

    // MARK: Writing

    var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.put(Self.format)
        put(&writer)
        let sum = writer.bytes.withUnsafeBytes { BlockSums.sum($0) }
        writer.put(sum)
        return writer.bytes
    }

    private func put(_ writer: inout ByteWriter) {
        writer.put(response.id)
        writer.put(response.key.text)
        writer.put(response.url)
        writer.put(UInt16(response.status.code))
        writer.put(response.version.major)
        writer.put(response.version.minor)
        writer.put(response.requestTime)
        writer.put(response.responseTime)
        writer.put(response.isDecoded)
        switch response.extent {
        case .whole(let length):
            writer.put(true)
            writer.put(length)
        case .beginning(let length, let total):
            writer.put(false)
            writer.put(length)
            writer.put(total ?? -1)
        }
        writer.put(response.userInfo != nil)
        (response.userInfo ?? []).withUnsafeBytes { writer.put($0) }
        putFields(&writer)
        writer.put(file ?? "")
        writer.put(offset)
        writer.put(UInt32(sums.count))
        for sum in sums { writer.put(sum) }
        let addresses = response.source.addresses
        writer.put(UInt8(addresses.count))
        for address in addresses {
            address.octets.withUnsafeBytes { writer.put($0) }
            writer.put(address.port)
        }
    }

    private func putFields(_ writer: inout ByteWriter) {
        writer.put(UInt32(response.varying.count))
        for (name, value) in response.varying {
            writer.put(name)
            writer.put(value != nil)
            writer.put(value ?? "")
        }
        writer.put(UInt32(response.headers.count))
        response.headers.forEachRaw { name, value in
            writer.put(name)
            writer.put(value)
        }
    }

    // MARK: Reading

    /// Fails for bytes that were not written by `bytes`, or are damaged.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 4 else { return nil }
        let content = UnsafeRawBufferPointer(rebasing: bytes.dropLast(4))
        var end = ByteReader(UnsafeRawBufferPointer(rebasing: bytes.suffix(4)))
        guard end.number(UInt32.self) == BlockSums.sum(content) else { return nil }
        var reader = ByteReader(content)
        guard reader.number(UInt8.self) == Self.format, var response = Self.response(&reader),
            let file = reader.text(), let offset = reader.number(Int64.self), let count = reader.number(UInt32.self)
        else { return nil }
        var sums: [UInt32] = []
        for _ in 0..<count {
            guard let sum = reader.number(UInt32.self) else { return nil }
            sums.append(sum)
        }
        guard let source = Self.source(&reader) else { return nil }
        response.source = source
        // The checksums must cover the complete body.
        guard reader.isAtEnd, BlockSums.count(response.storedLength) == Int64(sums.count), Self.isName(file),
            offset >= 0, file.isEmpty == sums.isEmpty, !DiskPack.isPack(file) || sums.count == 1
        else { return nil }
        self.init(response, file: file.isEmpty ? nil : file, offset: offset, sums: sums)
    }

    /// - Parameters:
    ///   - file: the file of a large body; `nil` for an empty one.
    ///   - sums: the checksums of that file's blocks.
    init(_ response: StoredResponse, file: String?, offset: Int64 = 0, sums: [UInt32]) {
        (self.response, self.file, self.offset, self.sums) = (response, file, offset, sums)
    }

    init(_ response: StoredResponse, at place: PackPlace) {
        self.init(response, file: place.pack, offset: place.offset, sums: [place.sum])
    }

    /// The place of a body in a pack, or of an empty one; `nil` for a body with a file of its own.
    var place: PackPlace? {
        guard let file else { return PackPlace(pack: "", offset: 0, count: 0, sum: 0) }
        guard DiskPack.isPack(file), let sum = sums.first else { return nil }
        return PackPlace(pack: file, offset: offset, count: Int(response.storedLength), sum: sum)
    }

    /// Whether a name is safe: it cannot refer to a file outside of the bodies' folder.
    private static func isName(_ file: String) -> Bool {
        file.utf8.allSatisfy {
            ("a"..."z").contains(Character(UnicodeScalar($0))) || ("0"..."9").contains(Character(UnicodeScalar($0)))
        }
    }

    private static func response(_ reader: inout ByteReader) -> StoredResponse? {
        guard let id = reader.number(Int64.self), let key = reader.text(), let url = reader.text(),
            let code = reader.number(UInt16.self), let status = Status(Int(code)),
            let major = reader.number(UInt8.self), let minor = reader.number(UInt8.self),
            let requestTime = reader.double(), let responseTime = reader.double(), let isDecoded = reader.flag(),
            let extent = extent(&reader), let hasUserInfo = reader.flag(), let userInfo = reader.raw(),
            let varying = varying(&reader), let headers = headers(&reader)
        else { return nil }
        var response = StoredResponse(
            id: id, key: CacheKey(text: key), url: url, status: status,
            version: HTTPVersion(major: major, minor: minor),
            headers: headers, requestTime: requestTime, responseTime: responseTime)
        response.varying = varying
        response.extent = extent
        response.isDecoded = isDecoded
        response.userInfo = hasUserInfo ? Array(userInfo) : nil
        return response
    }

    private static func source(_ reader: inout ByteReader) -> AnswerSource? {
        guard let count = reader.number(UInt8.self), Int(count) <= AnswerSource.most else { return nil }
        var addresses: [SocketAddress] = []
        for _ in 0..<count {
            guard let octets = reader.raw(), let port = reader.number(UInt16.self),
                let address = SocketAddress(octets: Array(octets), port: port)
            else { return nil }
            addresses.append(address)
        }
        return AnswerSource(addresses)
    }

    private static func extent(_ reader: inout ByteReader) -> StoredResponse.Extent? {
        guard let isWhole = reader.flag(), let length = reader.number(Int64.self), length >= 0 else { return nil }
        if isWhole { return .whole(length) }
        guard let total = reader.number(Int64.self) else { return nil }
        return .beginning(length, of: total < 0 ? nil : total)
    }

    private static func varying(_ reader: inout ByteReader) -> [String: String?]? {
        guard let count = reader.number(UInt32.self) else { return nil }
        var varying: [String: String?] = [:]
        for _ in 0..<count {
            guard let name = reader.text(), let isPresent = reader.flag(), let value = reader.text() else { return nil }
            varying.updateValue(isPresent ? value : nil, forKey: name)
        }
        return varying
    }

    private static func headers(_ reader: inout ByteReader) -> Headers? {
        guard let count = reader.number(UInt32.self) else { return nil }
        var headers = Headers()
        for _ in 0..<count {
            guard let name = reader.raw(), let value = reader.raw() else { return nil }
            headers.appendRaw(name: name, value: value)
        }
        return headers
    }
}
