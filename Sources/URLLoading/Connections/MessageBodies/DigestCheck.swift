// SPDX-License-Identifier: Apache-2.0

// Compares the digest of a body with those that it must have: the caller's, or those of the response's fields (RFC
// 9530).

import URLLoadingIO
import URLLoadingWire

/// The running digests of one body, one for each algorithm. Used by one task at a time.
final class DigestCheck {
    /// A digest that the body must have.
    struct Wanted {
        let digest: BodyDigest
        /// Names the field that states the digest; `nil` for the caller's.
        var field: FieldName?
    }

    private let wanted: [Wanted]
    /// Fields that may state digests as trailers.
    private let announced: [FieldName]
    private var sha256: DigestHash.Running?
    private var sha512: DigestHash.Running?

    /// - Parameter announced: the fields that are announced as trailers: their algorithms are known at the end only.
    init(_ wanted: [Wanted], announced: [FieldName] = []) {
        (self.wanted, self.announced) = (wanted, announced)
        func needs(_ algorithm: BodyDigest.Algorithm) -> Bool {
            !announced.isEmpty || wanted.contains { $0.digest.algorithm == algorithm }
        }
        if needs(.sha256) { sha256 = DigestHash.Running(.sha256) }
        if needs(.sha512) { sha512 = DigestHash.Running(.sha512) }
    }

    /// The check of the content of a response, by its own fields. `nil` if they state nothing about it: a part is
    /// covered by Content-Digest only, and a response without content by neither.
    static func ofContent(_ head: HTTP1ResponseHead, _ method: Method) -> DigestCheck? {
        guard method != .head, !head.status.forbidsContent else { return nil }
        let fields: [FieldName] = head.status == .partialContent ? [.contentDigest] : [.reprDigest, .contentDigest]
        let wanted = fields.flatMap { Wanted.stated(by: $0, in: head.headers) }
        let announced = BodyDigest.announced(in: head.headers).filter(fields.contains)
        return wanted.isEmpty && announced.isEmpty ? nil : DigestCheck(wanted, announced: announced)
    }

    func update(_ bytes: UnsafeRawBufferPointer) {
        sha256?.update(bytes)
        sha512?.update(bytes)
    }

    /// Notes the next piece of the body; compares at its end.
    /// - Parameter trailers: the trailer fields; asked for at the end.
    func process(_ piece: BodyPiece?, _ trailers: () -> Headers = { Headers() }) throws(LoadError) {
        switch piece {
        case .chunk(let chunk)?: chunk.withUnsafeBytes { update($0) }
        case .end?: try finish(announced.isEmpty ? Headers() : trailers())
        case nil: break
        }
    }

    /// Compares at the end of the body. Called once.
    /// - Throws: ``LoadError/Reason/digestMismatch``.
    func finish(_ trailers: Headers = Headers()) throws(LoadError) {
        let short = sha256?.finishBytes()
        let long = sha512?.finishBytes()
        for wanted in wanted + announced.flatMap({ Wanted.stated(by: $0, in: trailers) }) {
            try Self.compare(wanted.digest.algorithm == .sha256 ? short : long, wanted)
        }
    }

    private static func compare(_ found: [UInt8]?, _ wanted: Wanted) throws(LoadError) {
        guard found != wanted.digest.bytes else { return }
        let digits = found.map { DigestHash.hexDigits(of: $0) } ?? "not available"
        throw LoadError(
            .digestMismatch, phase: .receiving, party: .remote,
            detail: "\(wanted.digest.algorithm.rawValue) of the body is \(digits), but "
                + (wanted.field.map { "\($0) says" } ?? "expected was")
                + " \(DigestHash.hexDigits(of: wanted.digest.bytes))")
    }
}

extension DigestCheck.Wanted {
    /// All digests that a field states.
    static func stated(by field: FieldName, in headers: Headers) -> [DigestCheck.Wanted] {
        BodyDigest.stated(by: field, in: headers).map { DigestCheck.Wanted(digest: $0, field: field) }
    }
}
