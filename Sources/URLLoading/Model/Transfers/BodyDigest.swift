// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// A digest that a body must have: an algorithm and its value (FIPS 180-4).
///
/// ```swift
/// var options = DownloadOptions(destination: place)
/// options.expectedDigest = try BodyDigest("sha-256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
/// let task = session.downloadTask(request, options: options)
/// task.resume()
/// let file = try await task.value
/// ```
/// A server may state digests itself: Repr-Digest and Content-Digest of a response (RFC 9530) are always checked, also
/// as trailers that the head announces (Trailer, RFC 9110 §6.6.2). They protect from damage on the way; only a value
/// from elsewhere proves which file it is.
public struct BodyDigest: Sendable, Hashable, CustomStringConvertible {
    /// The algorithms that are neither deprecated nor insecure (RFC 9530 §5).
    public enum Algorithm: String, Sendable, Hashable, CaseIterable {
        /// SHA-256, of 32 bytes.
        case sha256 = "sha-256"
        /// SHA-512, of 64 bytes.
        case sha512 = "sha-512"

        /// The length of a value in bytes: 32 or 64.
        public var size: Int { self == .sha256 ? 32 : 64 }
    }

    /// The algorithm.
    public let algorithm: Algorithm
    /// The value, of the algorithm's ``Algorithm/size``.
    public let bytes: [UInt8]

    /// Creates a digest from its bytes.
    /// - Parameter bytes: as many as the algorithm's ``Algorithm/size``.
    /// - Throws: ``LoadError/Reason/badDigest`` for another number of bytes.
    public init(_ algorithm: Algorithm, bytes: [UInt8]) throws(LoadError) {
        guard bytes.count == algorithm.size else {
            throw .badDigest("\(algorithm.rawValue) has \(algorithm.size) bytes, not \(bytes.count)")
        }
        (self.algorithm, self.bytes) = (algorithm, bytes)
    }

    /// Reads the text of a digest: an algorithm, an equals sign, and hexadecimal digits as `sha256sum` prints them.
    ///
    /// ```swift
    /// try BodyDigest("sha-256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
    /// ```
    /// - Throws: ``LoadError/Reason/badDigest`` if the text is not of that form.
    public init(_ text: String) throws(LoadError) {
        guard let sign = text.firstIndex(of: "="), let algorithm = Algorithm(rawValue: text[..<sign].lowercased())
        else {
            throw .badDigest("expected sha-256 or sha-512, an equals sign, and hexadecimal digits")
        }
        let digits = Array(text[text.index(after: sign)...].utf8)
        let values = digits.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        guard values.count == digits.count, digits.count == algorithm.size * 2 else {
            throw .badDigest("\(algorithm.rawValue) has \(algorithm.size * 2) hexadecimal digits")
        }
        try self.init(
            algorithm,
            bytes: stride(from: 0, to: values.count, by: 2).map { UInt8(values[$0] << 4 | values[$0 + 1]) })
    }

    /// The text from which ``init(_:)`` makes the same digest.
    public var description: String { "\(algorithm.rawValue)=\(DigestHash.hexDigits(of: bytes))" }
}

extension BodyDigest {
    /// The fields that state digests (RFC 9530), and the one that announces trailers.
    private static let stating = FieldNameSet([.reprDigest, .contentDigest, .trailer])

    /// Whether fields state digests, or announce trailers, which those of almost no response do.
    static func mayBeStated(by headers: Headers) -> Bool { headers.contains(anyOf: stating) }

    /// Whether fields state digests, or announce that trailers will.
    static func areStated(by headers: Headers) -> Bool {
        headers.contains(.reprDigest) || headers.contains(.contentDigest) || !announced(in: headers).isEmpty
    }

    /// The fields with digests that a head announces as trailers (RFC 9110 §6.6.2). Without an announcement the body
    /// would have to be hashed for each response that may have trailers.
    static func announced(in headers: Headers) -> [FieldName] {
        guard let text = headers[.trailer] else { return [] }
        let names = text.split(separator: ",").map { FieldName($0.filter { $0 != " " && $0 != "\t" }) }
        return [.reprDigest, .contentDigest].filter(names.contains)
    }

    /// All digests that a field states. A field that breaks the grammar, other algorithms, and values of a wrong length
    /// state nothing (RFC 9530 §2: a recipient may ignore any). None is preferred to another, because a signature may
    /// cover only one of them (RFC 9421 §2.1.2).
    static func stated(by field: FieldName, in headers: Headers) -> [BodyDigest] {
        guard let text = headers[field], let stated = StructuredField.byteSequences(text) else { return [] }
        return Algorithm.allCases.compactMap { algorithm in
            stated[algorithm.rawValue].flatMap { try? BodyDigest(algorithm, bytes: $0) }
        }
    }
}

extension Request {
    /// A digest that the body of the response must have, as it is delivered: after its content coding was decoded.
    /// `nil`, the default: none but those that the server states.
    ///
    /// ```swift
    /// var request = Request(url: url)
    /// request.expectedDigest = try BodyDigest("sha-256=\(line)")
    /// let (data, _) = try await session.data(for: request)
    /// ```
    /// Another body ends the load with ``LoadError/Reason/digestMismatch`` at its end, and a status other than 2xx with
    /// ``LoadError/Reason/unacceptableStatus``. A body that is read in pieces has been delivered by then, except for
    /// its end. Downloads have ``DownloadOptions/expectedDigest``, and take this one if they have none. A HEAD has no
    /// body: nothing is compared.
    public var expectedDigest: BodyDigest? {
        get { properties[ExpectedDigest.self] }
        set { properties[ExpectedDigest.self] = newValue }
    }

    /// The algorithm that the server is asked to state a digest with: the Want-Repr-Digest field of ``headers`` (RFC
    /// 9530 §4). `nil`, the default: no field, or one of another form.
    public var requestedDigest: BodyDigest.Algorithm? {
        get {
            BodyDigest.Algorithm.allCases.first { headers[.wantReprDigest] == Self.preference($0) }
        }
        set { headers[.wantReprDigest] = newValue.map(Self.preference) }
    }

    private static func preference(_ algorithm: BodyDigest.Algorithm) -> String { "\(algorithm.rawValue)=10" }

    private enum ExpectedDigest: PropertyKey {
        typealias Value = BodyDigest
    }
}

extension LoadError.Reason {
    /// The body is not the one that its digest says: the caller's (``DownloadOptions/expectedDigest``,
    /// ``Request/expectedDigest``), or one of the response's (Repr-Digest, Content-Digest; RFC 9530).
    public static let digestMismatch = Self("digestMismatch", -1015)
    /// A digest is not of a known algorithm, or not of its length.
    public static let badDigest = Self("badDigest", -1000)
}

extension LoadError {
    fileprivate static func badDigest(_ words: String) -> LoadError {
        LoadError(.badDigest, phase: .preparing, party: .local, detail: words)
    }
}
