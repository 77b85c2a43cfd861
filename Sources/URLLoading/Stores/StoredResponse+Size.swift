// What a stored response costs, and what it is called.

extension StoredResponse {
    /// Never 0; not to be guessed, and the same in all tiers of a storage.
    static func newID() -> Int64 { Int64.random(in: 1...Int64.max) }

    /// Bytes that its head takes, about: what the allocator and the tables add is in the constant.
    var headSize: Int {
        var size = 256 + key.text.utf8.count + url.utf8.count + (userInfo?.count ?? 0)
        headers.forEachRaw { size += $0.count + $1.count + 20 }
        for (name, value) in varying { size += name.utf8.count + (value?.utf8.count ?? 0) + 64 }
        return size
    }

    /// Whether it is kept in place of another: the same key and the same varying fields (RFC 9111 §4.1).
    func replaces(_ other: StoredResponse) -> Bool { key == other.key && varying == other.varying }

    var isWhole: Bool {
        if case .whole = extent { true } else { false }
    }
}
