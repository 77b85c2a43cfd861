// SPDX-License-Identifier: Apache-2.0

// In this folder: multipart bodies, read and written

/// The boundary between the parts of a multipart body (RFC 2046 §5.1.1): 1 to 70 characters.
///
/// ```swift
/// let received = try MultipartBoundary(contentType: "multipart/byteranges; boundary=THIS_STRING_SEPARATES")
/// let made = try MultipartBoundary(random: sixteenRandomBytes)
/// ```
package struct MultipartBoundary: Sendable, Hashable, CustomStringConvertible {
    /// The boundary without the leading dashes.
    package let bytes: [UInt8]

    /// Reads the boundary of a received body.
    ///
    /// The parameter is parsed leniently and may contain any printable character: IIS sends brackets, and mail
    /// libraries "=", without the quotes that RFC 2046 §5.1.1 requires. Throws `malformedBoundary` for another media
    /// type, a missing boundary, or one of illegal length.
    package init(contentType: String) throws(WireViolation) {
        var parameters = LooseParameters(contentType)
        guard parameters.first().lowercasedASCII.utf8.starts(with: "multipart/".utf8) else {
            throw Self.malformed(.remote)
        }
        while let parameter = parameters.next() {
            guard parameter.name == "boundary" else { continue }
            bytes = Array(parameter.value.utf8)
            guard Self.isPossible(bytes), bytes.allSatisfy({ (0x20..<0x7F).contains($0) }) else {
                throw Self.malformed(.remote)
            }
            return
        }
        throw Self.malformed(.remote)
    }

    /// Creates a boundary to send, of the characters allowed by RFC 2046 §5.1.1; otherwise throws `malformedBoundary`.
    package init(_ text: String) throws(WireViolation) {
        bytes = Array(text.utf8)
        let isAllowed = bytes.allSatisfy { $0.isDigit || $0.isAlpha || "'()+_,-./:=? ".utf8.contains($0) }
        guard Self.isPossible(bytes), isAllowed else { throw Self.malformed(.local) }
    }

    /// Creates an unguessable boundary to send.
    /// - Parameter random: at least 16 unpredictable bytes; an attacker who could guess them could insert parts into a
    ///   part's content. At most the first 32 are used; fewer than 16 throw `malformedBoundary`.
    package init(random: some Collection<UInt8>) throws(WireViolation) {
        guard random.count >= 16 else { throw Self.malformed(.local) }
        bytes = random.prefix(32).flatMap { [UInt8.upperHex($0 >> 4), .upperHex($0 & 15)] }
    }

    /// The boundary as text, without quotes.
    package var description: String { String(decoding: bytes, as: UTF8.self) }

    private static func isPossible(_ bytes: [UInt8]) -> Bool { (1...70).contains(bytes.count) && bytes.last != 0x20 }

    private static func malformed(_ party: WireViolation.Party) -> WireViolation {
        WireViolation(party, .malformedBoundary, section: "RFC 2046 5.1.1")
    }
}
