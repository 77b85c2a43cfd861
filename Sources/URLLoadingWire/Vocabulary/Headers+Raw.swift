// SPDX-License-Identifier: Apache-2.0

// Access to fields as bytes, for the parsers and writers of messages.

extension Headers {
    /// Reserves space for `count` more fields with `byteCount` bytes in total.
    package mutating func reserve(fields count: Int, bytes byteCount: Int) {
        entries.reserveCapacity(entries.count + count)
        bytes.reserveCapacity(bytes.count + byteCount)
    }

    /// The size in bytes of all names and values, those of replaced fields included: their bytes remain in the block.
    package var byteCount: Int { bytes.count }

    /// Appends a field given as bytes, trimming blanks around the value.
    package mutating func appendRaw(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        let trimmed = value.trimmed(0..<value.count)
        let start = bytes.count
        guard start + name.count + trimmed.count <= Int(Int32.max) else {
            isOverfull = true
            return
        }
        bytes.append(contentsOf: name)
        bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: value[trimmed]))
        entries.append(
            Entry(
                name: Int32(start), nameLength: Int32(name.count), value: Int32(start + name.count),
                valueLength: Int32(trimmed.count), digest: FieldDigest.of(name)))
    }

    /// Calls `body` with the bytes of the first value of `name`; returns `nil` if there is no such field. The bytes are
    /// valid only during the call.
    package func withValueBytes<Result>(
        of name: FieldName, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result? {
        guard let index = index(of: name, from: 0) else { return nil }
        return withField(at: index) { body($1) }
    }

    /// Calls `body` with name and value of each field in order. The bytes are valid only during the call.
    package func forEachRaw(_ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void) {
        bytes.withUnsafeBytes { bytes in
            for entry in entries { body(bytes.name(of: entry), bytes.value(of: entry)) }
        }
    }

    /// Calls `body` with the value of each field of a name, given in lower case. The bytes are valid only during the
    /// call.
    @inline(__always)
    func forEachValue(of name: StaticString, _ body: (UnsafeRawBufferPointer) -> Void) {
        bytes.withUnsafeBytes { bytes in
            for entry in entries where bytes.matches(name, in: entry.nameRange) { body(bytes.value(of: entry)) }
        }
    }

    /// Calls `body` with name and value of the field at `index`. The bytes are valid only during the call.
    package func withField<Result>(
        at index: Int, _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Result
    ) -> Result {
        bytes.withUnsafeBytes { body($0.name(of: entries[index]), $0.value(of: entries[index])) }
    }

    /// Returns the number of fields of that name.
    package func count(of name: FieldName) -> Int {
        entries.indices.count { has(name, at: $0) }
    }

    /// Returns the fields with one that has a number, in place of all fields of that name. The new blocks have the size
    /// that they need: each response from a cache is given its Age in this way.
    package func replacing(_ name: FieldName, with number: Int64) -> Headers {
        guard number >= 0, !contains(name), bytes.count < Int(Int32.max) - 256 else {
            var headers = self
            headers[name] = "\(number)"
            return headers
        }
        var headers = Headers()
        headers.isOverfull = isOverfull
        var text = name.description
        var digits = 1
        var rest = number
        while rest >= 10 { (digits, rest) = (digits + 1, rest / 10) }
        let (start, end) = (bytes.count, bytes.count + text.utf8.count)
        headers.bytes = [UInt8](unsafeUninitializedCapacity: end + digits) { room, count in
            _ = room.initialize(fromContentsOf: bytes)
            _ = text.withUTF8 { UnsafeMutableBufferPointer(rebasing: room[start...]).initialize(fromContentsOf: $0) }
            var rest = number
            for place in (end..<end + digits).reversed() {
                room[place] = UInt8(ascii: "0") + UInt8(rest % 10)
                rest /= 10
            }
            count = end + digits
        }
        headers.entries = [Entry](unsafeUninitializedCapacity: entries.count + 1) { room, count in
            _ = room.initialize(fromContentsOf: entries)
            room.initializeElement(
                at: entries.count,
                to: Entry(
                    name: Int32(start), nameLength: Int32(text.utf8.count), value: Int32(end),
                    valueLength: Int32(digits), digest: name.digest))
            count = entries.count + 1
        }
        return headers
    }

    func name(at index: Int) -> FieldName {
        FieldName(bytes.withUnsafeBytes { $0.text(entries[index].nameRange) })
    }

    func value(at index: Int) -> String {
        bytes.withUnsafeBytes { $0.text(entries[index].valueRange) }
    }

    func index(of name: FieldName, from start: Int) -> Int? {
        let digest = name.digest
        var index = start
        while index < entries.count {
            if entries[index].digest == digest, has(name, at: index) { return index }
            index += 1
        }
        return nil
    }

    func has(_ name: FieldName, at index: Int) -> Bool {
        let entry = entries[index]
        guard entry.digest == name.digest, Int(entry.nameLength) == name.description.utf8.count else { return false }
        var wanted = name.description
        return wanted.withUTF8 { wanted in
            bytes.withUnsafeBytes { $0.matches(UnsafeRawBufferPointer(wanted), in: entry.nameRange) }
        }
    }

    func copyField(at index: Int, to other: inout Headers) {
        withField(at: index) { other.appendRaw(name: $0, value: $1) }
    }
}

extension Headers.Entry {
    @inline(__always) var nameRange: Range<Int> { Int(name)..<Int(name) + Int(nameLength) }
    @inline(__always) var valueRange: Range<Int> { Int(value)..<Int(value) + Int(valueLength) }
}

extension UnsafeRawBufferPointer {
    @inline(__always)
    func name(of entry: Headers.Entry) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[entry.nameRange])
    }

    @inline(__always)
    func value(of entry: Headers.Entry) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[entry.valueRange])
    }
}
