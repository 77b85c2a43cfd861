// SPDX-License-Identifier: Apache-2.0

// Compares the digest of a body with those that it must have: the caller's, or those of the response's fields (RFC
// 9530).

import URLLoadingIO
import URLLoadingWire

/// The running digests of one body. Used by one task at a time.
final class DigestCheck {
    private struct Item: ~Copyable {
        let wanted: BodyDigest
        /// Names the field that states the digest; `nil` for the caller's.
        let field: FieldName?
        var running: DigestHash.Running

        init(_ wanted: BodyDigest, _ field: FieldName?) {
            (self.wanted, self.field) = (wanted, field)
            running = DigestHash.Running(wanted.algorithm == .sha256 ? .sha256 : .sha512)
        }
    }
    private var first: Item
    private var second: Item?

    /// The check of one digest; of two if a response states both of its content and of its representation.
    init(_ wanted: BodyDigest, _ field: FieldName? = nil, and other: (BodyDigest, FieldName)? = nil) {
        first = Item(wanted, field)
        second = other.map { Item($0.0, $0.1) }
    }

    /// The fields that state digests.
    private static let stating = FieldNameSet([.reprDigest, .contentDigest])

    /// Whether fields state digests, which those of almost no response do.
    static func isStated(in headers: Headers) -> Bool { headers.contains(anyOf: stating) }

    /// The check of the content of a response, by its own fields. `nil` if they state nothing about it: a part is
    /// covered by Content-Digest only, and a response without content by neither.
    static func ofContent(_ head: HTTP1ResponseHead, _ method: Method) -> DigestCheck? {
        guard method != .head, !head.status.forbidsContent else { return nil }
        let content = BodyDigest(stated: .contentDigest, in: head.headers)
        let whole = head.status == .partialContent ? nil : BodyDigest(stated: .reprDigest, in: head.headers)
        guard let wanted = whole ?? content else { return nil }
        guard whole != nil else { return DigestCheck(wanted, .contentDigest) }
        // Both cover the same bytes; equal ones are computed once.
        return DigestCheck(wanted, .reprDigest, and: content == whole ? nil : content.map { ($0, .contentDigest) })
    }

    func update(_ bytes: UnsafeRawBufferPointer) {
        first.running.update(bytes)
        second?.running.update(bytes)
    }

    /// Notes the next piece of the body; compares at its end.
    func process(_ piece: BodyPiece?) throws(LoadError) {
        switch piece {
        case .chunk(let chunk)?: chunk.withUnsafeBytes { update($0) }
        case .end?: try finish()
        case nil: break
        }
    }

    /// Compares at the end of the body. Called once.
    /// - Throws: ``LoadError/Reason/digestMismatch``.
    func finish() throws(LoadError) {
        try Self.compare(first.running.finishBytes(), first.wanted, first.field)
        guard let field = second?.field, let wanted = second?.wanted else { return }
        try Self.compare(second?.running.finishBytes(), wanted, field)
    }

    private static func compare(_ found: [UInt8]?, _ wanted: BodyDigest, _ field: FieldName?) throws(LoadError) {
        guard found != wanted.bytes else { return }
        let digits = found.map { DigestHash.hexDigits(of: $0) } ?? "not available"
        throw LoadError(
            .digestMismatch, phase: .receiving, party: .remote,
            detail: "\(wanted.algorithm.rawValue) of the body is \(digits), but "
                + (field.map { "\($0) says" } ?? "expected was") + " \(DigestHash.hexDigits(of: wanted.bytes))")
    }
}

extension BodyDigest {
    /// The strongest digest that a field states. A field that breaks the grammar, other algorithms, and values of a
    /// wrong length state nothing (RFC 9530 §2: a recipient may ignore any).
    init?(stated field: FieldName, in headers: Headers) {
        guard let text = headers[field], let stated = StructuredField.byteSequences(text) else { return nil }
        for algorithm in [Algorithm.sha512, .sha256] {
            guard let bytes = stated[algorithm.rawValue], bytes.count == algorithm.size,
                let digest = try? BodyDigest(algorithm, bytes: bytes)
            else { continue }
            self = digest
            return
        }
        return nil
    }
}
