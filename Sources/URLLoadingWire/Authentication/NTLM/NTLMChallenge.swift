// The second message, the server's (MS-NLMP §2.2.1.2).

package struct NTLMChallenge: Sendable, Hashable {
    package let flags: NTLMFlags
    /// Eight bytes.
    package let nonce: [UInt8]
    package let target: NTLMTargetInformation
    /// As it came: the proof of the last message covers it.
    package let bytes: [UInt8]

    /// More than a head can hold, and than any server says.
    private static let largest = 64 * 1024

    /// `nil` if it is none, or one that cannot be answered: a length or an offset beyond its end, no Unicode.
    package init?(_ bytes: [UInt8]) {
        let reader = NTLMReader(bytes: bytes)
        guard bytes.count <= Self.largest, reader.slice(0, 8) == NTLMWriter.signature, reader.number32(at: 8) == 2,
            reader.payload(12) != nil, let flags = reader.number32(at: 20), let nonce = reader.slice(24, 8)
        else { return nil }
        self.flags = NTLMFlags(rawValue: flags)
        guard self.flags.contains(.unicode) else { return nil }
        self.nonce = nonce
        // Older servers end here.
        let information = bytes.count >= 48 ? reader.payload(40) : []
        guard let information, let target = NTLMTargetInformation(information) else { return nil }
        guard target[NTLMTargetInformation.timestamp].map({ $0.count == 8 }) ?? true else { return nil }
        self.target = target
        self.bytes = bytes
    }
}

/// Names and values that the server says of itself, and we add to (MS-NLMP §2.2.2.1).
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

    /// There are about ten kinds.
    private static let mostPairs = 64

    /// `nil` if its lengths are wrong, a name occurs twice, or there are too many. Empty is right.
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
            guard let kind = UInt16(exactly: kind), pairs.count < Self.mostPairs,
                !pairs.contains(where: { $0.kind == kind })
            else { return nil }
            pairs.append(Pair(kind: kind, value: value))
            position += 4 + count
        }
        // What is not ended is cut.
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
