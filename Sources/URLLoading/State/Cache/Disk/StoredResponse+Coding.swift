// SPDX-License-Identifier: Apache-2.0

// A stored response, without its source, and a source, as bytes. Formats that contain them have a version of their own:
// see `DiskHead` and `StoreRecord`.

import URLLoadingIO
import URLLoadingWire

extension StoredResponse {
    func put(into writer: inout ByteWriter) {
        writer.put(id)
        writer.put(key.text)
        writer.put(url)
        writer.put(UInt16(status.code))
        writer.put(version.major)
        writer.put(version.minor)
        writer.put(requestTime)
        writer.put(responseTime)
        writer.put(isDecoded)
        switch extent {
        case .whole(let length):
            writer.put(true)
            writer.put(length)
        case .beginning(let length, let total):
            writer.put(false)
            writer.put(length)
            writer.put(total ?? -1)
        }
        writer.put(userInfo != nil)
        (userInfo ?? []).withUnsafeBytes { writer.put($0) }
        writer.put(UInt32(varying.count))
        for (name, value) in varying {
            writer.put(name)
            writer.put(value != nil)
            writer.put(value ?? "")
        }
        writer.put(UInt32(headers.count))
        headers.forEachRaw { name, value in
            writer.put(name)
            writer.put(value)
        }
    }

    /// Fails for bytes that `put` did not write.
    init?(_ reader: inout ByteReader) {
        guard let id = reader.number(Int64.self), let key = reader.text(), let url = reader.text(),
            let code = reader.number(UInt16.self), let status = Status(Int(code)),
            let major = reader.number(UInt8.self), let minor = reader.number(UInt8.self),
            let requestTime = reader.double(), let responseTime = reader.double(), requestTime.isFinite,
            responseTime.isFinite, let isDecoded = reader.flag(),
            let extent = Extent(&reader), let hasUserInfo = reader.flag(), let userInfo = reader.raw(),
            let varying = Self.varying(&reader), let headers = Self.headers(&reader)
        else { return nil }
        self.init(
            id: id, key: CacheKey(text: key), url: url, status: status,
            version: HTTPVersion(major: major, minor: minor), headers: headers, varying: varying,
            requestTime: requestTime, responseTime: responseTime)
        self.extent = extent
        self.isDecoded = isDecoded
        self.userInfo = hasUserInfo ? Array(userInfo) : nil
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

extension StoredResponse.Extent {
    fileprivate init?(_ reader: inout ByteReader) {
        guard let isWhole = reader.flag(), let length = reader.number(Int64.self), length >= 0 else { return nil }
        if isWhole {
            self = .whole(length)
        } else {
            guard let total = reader.number(Int64.self) else { return nil }
            self = .beginning(length, of: total < 0 ? nil : total)
        }
    }
}

extension AnswerSource {
    func put(into writer: inout ByteWriter) {
        let addresses = addresses
        writer.put(UInt8(addresses.count))
        for address in addresses {
            address.octets.withUnsafeBytes { writer.put($0) }
            writer.put(address.port)
        }
    }

    /// Fails for bytes that `put` did not write.
    init?(_ reader: inout ByteReader) {
        guard let count = reader.number(UInt8.self), Int(count) <= Self.most else { return nil }
        var addresses: [SocketAddress] = []
        for _ in 0..<count {
            guard let octets = reader.raw(), let port = reader.number(UInt16.self),
                let address = SocketAddress(octets: Array(octets), port: port)
            else { return nil }
            addresses.append(address)
        }
        self.init(addresses)
    }
}
