// SPDX-License-Identifier: Apache-2.0

/// File sizes in the text of a reply.
enum FTPSize {
    /// Returns the number before the last word `bytes` or `byte`, as in `(12345 bytes)`; `nil` without that word, or if
    /// the word before it does not consist of digits only.
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
