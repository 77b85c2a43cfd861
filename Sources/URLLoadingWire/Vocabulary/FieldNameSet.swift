// SPDX-License-Identifier: Apache-2.0

/// A set of field names for a joint search: one bit excludes most other names.
package struct FieldNameSet: Sendable {
    let names: [FieldName]
    private let mask: UInt64

    package init(_ names: [FieldName]) {
        self.names = names
        mask = names.reduce(0) { $0 | Self.bit($1.digest) }
    }

    package func union(_ more: [FieldName]) -> FieldNameSet { more.isEmpty ? self : FieldNameSet(names + more) }

    private static func bit(_ digest: UInt32) -> UInt64 { 1 << UInt64(digest & 63) }

    func mayContain(_ digest: UInt32) -> Bool { mask & Self.bit(digest) != 0 }
}

extension Headers {
    /// Removed fields up to this size stay in the shared block of bytes, because sharing it is cheaper than copying the
    /// rest.
    private static let maximumUnseen = 64

    /// Returns the fields except those with these names.
    package func leavingOut(_ names: FieldNameSet) -> Headers {
        var gone = 0
        var count = 0
        // The first 64 fields are examined once.
        var excluded: UInt64 = 0
        for index in entries.indices where isNamed(index, names) {
            count += 1
            if index < 64 { excluded |= 1 << UInt64(index) }
            gone += Int(entries[index].nameLength + entries[index].valueLength)
        }
        guard count > 0 else { return self }
        let isKept = { (index: Int) in index < 64 ? excluded & 1 << UInt64(index) == 0 : !isNamed(index, names) }
        var kept = Headers()
        guard gone > Self.maximumUnseen else {
            kept.bytes = bytes
            kept.entries.reserveCapacity(entries.count - count)
            for index in entries.indices where isKept(index) { kept.entries.append(entries[index]) }
            return kept
        }
        kept.reserve(fields: entries.count - count, bytes: bytes.count - gone)
        for index in entries.indices where isKept(index) { copyField(at: index, to: &kept) }
        return kept
    }

    /// Returns whether there is a field with one of these names.
    package func contains(anyOf names: FieldNameSet) -> Bool {
        for index in entries.indices where isNamed(index, names) { return true }
        return false
    }

    private func isNamed(_ index: Int, _ names: FieldNameSet) -> Bool {
        let digest = entries[index].digest
        return names.mayContain(digest) && names.names.contains { $0.digest == digest && has($0, at: index) }
    }
}
