// What an answer over ftp has in the place of fields.

import FoundationEssentials
import URLLoadingWire

/// What a download goes on with.
struct FTPFacts: PropertyKey, Sendable {
    typealias Value = FTPFacts
    /// Where the body begins in the file, and ends.
    var offset: Int64
    var end: Int64?
    /// By what the file is known again; `nil` if it would not be.
    var validator: String?
}

enum FTPModification: PropertyKey { typealias Value = HTTPDate }
enum FTPListed: PropertyKey { typealias Value = FTPListing }

/// In which form a folder is listed.
public enum FTPListing: Sendable, Hashable {
    /// For machines (MLSD, RFC 3659 §7): `type=file;size=5;modify=20260102030405; name`, one a line.
    case facts
    /// For people, in whatever form the server likes (LIST, RFC 959 §4.1.3).
    case text
}

extension Response {
    /// When it was changed last, as the server says: its Last-Modified, or over `ftp` its MDTM (RFC 3659 §3). `nil` if
    /// it does not say.
    public var lastModified: HTTPDate? {
        properties[FTPModification.self] ?? http?.headers[.lastModified].flatMap { HTTPDate($0) }
    }

    /// Of a folder over `ftp` (its URL ends in a slash): in which form its body lists it. `nil` for everything else.
    public var ftpListing: FTPListing? { properties[FTPListed.self] }
}

extension Request {
    private enum StoreOffset: PropertyKey { typealias Value = Int64 }

    /// Of an upload over `ftp`: where in the server's file the body begins, which is then the rest of a file (REST, then
    /// STOR). At least 0; `nil`, the default, stores the whole.
    ///
    /// ```swift
    /// let (_, there) = try await session.data(for: Request(url: url, method: .head))
    /// request.ftpStoreOffset = there.expectedLength
    /// request.body = .file(film, range: there.expectedLength!..<size)
    /// ```
    public var ftpStoreOffset: Int64? {
        get { properties[StoreOffset.self] }
        set { properties[StoreOffset.self] = newValue.map { max(0, $0) } }
    }
}

extension HTTPDate {
    /// `YYYYMMDDHHMMSS`, with a fraction or without, in UTC (RFC 3659 §2.3).
    init?(ftp text: String) {
        let digits = text.utf8.prefix { $0 != UInt8(ascii: ".") }
        guard digits.count == 14, digits.allSatisfy(\.isDigit) else { return nil }
        func number(_ range: Range<Int>) -> Int64 {
            digits.dropFirst(range.lowerBound).prefix(range.count).reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
        }
        let (year, month, day) = (number(0..<4), number(4..<6), number(6..<8))
        let (hour, minute, second) = (number(8..<10), number(10..<12), number(12..<14))
        guard 1...12 ~= month, 1...31 ~= day, hour < 24, minute < 60, second <= 60 else { return nil }
        // Days since 1970 of the proleptic calendar, March first in the year.
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
