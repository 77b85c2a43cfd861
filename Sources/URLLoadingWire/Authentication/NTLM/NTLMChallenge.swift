// SPDX-License-Identifier: Apache-2.0

// The second NTLM message, from the server (MS-NLMP §2.2.1.2).

package struct NTLMChallenge: Sendable, Hashable {
    package let flags: NTLMFlags
    /// Eight bytes.
    package let nonce: [UInt8]
    package let target: NTLMTargetInformation
    /// The message as received; the integrity code of the last message covers it.
    package let bytes: [UInt8]

    /// Larger than a header section can hold, and than any server's message.
    private static let largest = 64 * 1024

    /// Parses a message; `nil` if it is not a challenge or cannot be answered: a length or offset beyond its end, or no
    /// Unicode.
    package init?(_ bytes: [UInt8]) {
        let reader = NTLMReader(bytes: bytes)
        guard bytes.count <= Self.largest, reader.slice(0, 8) == NTLMWriter.signature, reader.number32(at: 8) == 2,
            reader.payload(12) != nil, let flags = reader.number32(at: 20), let nonce = reader.slice(24, 8)
        else { return nil }
        self.flags = NTLMFlags(rawValue: flags)
        guard self.flags.contains(.unicode) else { return nil }
        self.nonce = nonce
        // Messages of older servers end here.
        let information = bytes.count >= 48 ? reader.payload(40) : []
        guard let information, let target = NTLMTargetInformation(information) else { return nil }
        guard target[NTLMTargetInformation.timestamp].map({ $0.count == 8 }) ?? true else { return nil }
        self.target = target
        self.bytes = bytes
    }
}

/// The server's target information, a list of attribute-value pairs to which the client adds its own (MS-NLMP
/// §2.2.2.1).
package struct NTLMTargetInformation: Sendable, Hashable {
    package struct Pair: Sendable, Hashable {
        package let kind: UInt16
        package let value: [UInt8]
    }
    package private(set) var pairs: [Pair] = []

    static let flags: UInt16 = 6
    static let timestamp: UInt16 = 7
    static let targetName: UInt16 = 9
    static let channelBindings: UInt16 = 10

    /// About ten kinds are defined.
    private static let maximumPairs = 64

    /// Parses the pairs; `nil` if lengths are wrong, a kind occurs twice, or there are too many pairs. Empty input is
    /// valid.
    init?(_ bytes: [UInt8]) {
        let reader = NTLMReader(bytes: bytes)
        var position = 0
        while position < bytes.count {
            guard let kind = reader.number16(at: position), let count = reader.number16(at: position + 2),
                let value = reader.slice(position + 4, count)
            else { return nil }
            if kind == 0 {
                guard count == 0 else { return nil }
                return
            }
            guard let kind = UInt16(exactly: kind), pairs.count < Self.maximumPairs,
                !pairs.contains(where: { $0.kind == kind })
            else { return nil }
            pairs.append(Pair(kind: kind, value: value))
            position += 4 + count
        }
        // A list without its terminator was cut off.
        guard bytes.isEmpty else { return nil }
    }

    package subscript(_ kind: UInt16) -> [UInt8]? { pairs.first { $0.kind == kind }?.value }

    mutating func set(_ kind: UInt16, _ value: [UInt8]) {
        pairs.removeAll { $0.kind == kind }
        pairs.append(Pair(kind: kind, value: value))
    }

    var bytes: [UInt8] {
        pairs.flatMap {
            $0.kind.littleEndianBytes + UInt16(truncatingIfNeeded: $0.value.count).littleEndianBytes + $0.value
        } + [0, 0, 0, 0]
    }
}
