/// Sizes in the words of a reply.
enum FTPSize {
    /// The number in front of the last `bytes` or `byte` of a text, as `(12345 bytes)` or `12345 bytes`; `nil` without one,
    /// and for a number with anything but a blank or a bracket before it.
    static func announced(_ text: String) -> Int64? {
        let words = text.utf8.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "(") || $0 == UInt8(ascii: ")") }
        let unit = words.lastIndex { word in
            let letters = word.prefix { $0.isAlpha }
            return letters.elementsEqual("bytes".utf8) || letters.elementsEqual("byte".utf8)
        }
        guard let unit, unit > words.startIndex, words[unit - 1].allSatisfy(\.isDigit) else { return nil }
        return Int64(strictDigits: words[unit - 1])
    }
}
