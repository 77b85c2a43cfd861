// SPDX-License-Identifier: Apache-2.0

// The properties of an FTP response, which has no header fields.

import URLLoadingWire

/// The facts from which a download can be resumed.
struct FTPFacts: PropertyKey, Sendable {
    typealias Value = FTPFacts
    /// The offsets in the file at which the body begins and ends.
    var offset: Int64
    var end: Int64?
    /// The validator of the file; `nil` if it has none.
    var validator: String?
}

enum FTPModification: PropertyKey { typealias Value = HTTPDate }
enum FTPListed: PropertyKey { typealias Value = FTPListing }

/// The format of a directory listing.
public enum FTPListing: Sendable, Hashable {
    /// Machine-readable (MLSD, RFC 3659 §7): `type=file;size=5;modify=20260102030405; name`, one entry a line.
    case facts
    /// Human-readable, in a format of the server's choice (LIST, RFC 959 §4.1.3).
    case text
}

extension Response {
    /// The time of the last modification: the Last-Modified field, or the MDTM reply over `ftp` (RFC 3659 §3). `nil` if
    /// the server does not tell it.
    public var lastModified: HTTPDate? {
        properties[FTPModification.self] ?? http?.headers[.lastModified].flatMap { HTTPDate($0) }
    }

    /// The format of a directory listing over `ftp` (whose URL ends in a slash); `nil` for every other response.
    public var ftpListing: FTPListing? { properties[FTPListed.self] }
}

extension HTTPDate {
    /// Parses `YYYYMMDDHHMMSS` in UTC, with or without a fraction (RFC 3659 §2.3).
    init?(ftp text: String) {
        let digits = text.utf8.prefix { $0 != UInt8(ascii: ".") }
        guard digits.count == 14, digits.allSatisfy(\.isDigit) else { return nil }
        func number(_ range: Range<Int>) -> Int64 {
            digits.dropFirst(range.lowerBound).prefix(range.count).reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
        }
        let (year, month, day) = (number(0..<4), number(4..<6), number(6..<8))
        let (hour, minute, second) = (number(8..<10), number(10..<12), number(12..<14))
        guard 1...12 ~= month, 1...31 ~= day, hour < 24, minute < 60, second <= 60 else { return nil }
        // Days since 1970 in the proleptic Gregorian calendar; the year is shifted to begin in March.
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let ofEra = shifted - era * 400
        let ofYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        let days = era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
        self.init(secondsSince1970: ((days * 24 + hour) * 60 + minute) * 60 + second)
    }
}

extension UInt8 {
    fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
}
