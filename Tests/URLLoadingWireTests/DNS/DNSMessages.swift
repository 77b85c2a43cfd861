// SPDX-License-Identifier: Apache-2.0

import URLLoadingWire

/// Messages of a name server, made by hand.
enum DNSMessages {
    static func name(_ text: String) -> [UInt8] {
        text.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    static func numbers(_ all: UInt16...) -> [UInt8] { all.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } }

    /// A reference to an earlier place (RFC 1035 §4.1.4).
    static func reference(_ place: UInt16) -> [UInt8] { numbers(0xC000 | place) }
    /// To the name of the question.
    static let asked = reference(12)

    static func answer(
        id: UInt16 = 7, flags: UInt16 = 0x8180, to name: String = "www.example.com", count: Int? = nil,
        _ records: [[UInt8]] = []
    ) -> [UInt8] {
        numbers(id, flags, 1, UInt16(count ?? records.count), 0, 0) + self.name(name) + numbers(65, 1)
            + records.flatMap(\.self)
    }

    static func record(
        _ data: [UInt8], of owner: [UInt8] = asked, type: UInt16 = 65, kind: UInt16 = 1, lifetime: UInt32 = 600
    ) -> [UInt8] {
        owner + numbers(type, kind, UInt16(lifetime >> 16), UInt16(lifetime & 0xFFFF), UInt16(data.count)) + data
    }

    static func service(
        _ priority: UInt16 = 1, _ target: String = "", _ parameters: [(UInt16, [UInt8])] = []
    ) -> [UInt8] {
        numbers(priority) + name(target) + parameters.flatMap { numbers($0.0, UInt16($0.1.count)) + $0.1 }
    }

    static func alpn(_ names: String...) -> (UInt16, [UInt8]) {
        (1, names.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) })
    }
}
