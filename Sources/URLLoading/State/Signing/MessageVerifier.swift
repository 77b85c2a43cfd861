// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// Verifies the signatures of responses (RFC 9421).
///
/// ```swift
/// let verifier = MessageVerifier(keys: ["server-1": publicKey], covering: [.status, .field("Content-Digest")])
/// decisions.response = Decision { response in
///     try verifier.verify(response)
///     return .allow
/// }
/// ```
/// A response whose Content-Digest is covered has a proven body as well, because the library compares the digest with
/// the body that arrives, and ends the load with ``LoadError/Reason/digestMismatch`` at its end if it differs. For a
/// part (206) that is the part: a download that is resumed is proved as a whole by a covered Repr-Digest, or by
/// ``DownloadOptions/expectedDigest``.
///
/// At most eight signatures of known keys are examined, each of at most 64 components.
public struct MessageVerifier: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What a signature has proved.
    public struct Verified: Sendable, Hashable {
        /// The label of the signature.
        public let label: String
        /// The name of its key.
        public let keyID: String
        /// When it was made; `nil` if it does not say.
        public let created: Date?
        /// The identifiers of what it covers, as in Signature-Input.
        public let components: [String]
    }

    /// The oldest accepted signature, counted from its creation; five minutes by default. With `nil` age does not
    /// matter, and a signature without a time of creation is accepted.
    public var maximumAge: Duration? = .seconds(300)
    /// How far the server's clock may be ahead of this one; one minute by default.
    public var clockSkew: Duration = .seconds(60)
    /// The tag that the signature must have; `nil`, the default, accepts every tag.
    public var tag: String?

    private let keys: [String: SigningKey]
    private let covered: [SignatureComponent]

    /// Creates a verifier.
    /// - Parameters:
    ///   - keys: the keys of the server by the names that `keyid` has. A key is used with its own algorithm only.
    ///   - covered: what a signature must cover at least. A signature that covers less proves less than the program
    ///     relies on, and is ignored.
    public init(keys: [String: SigningKey], covering covered: [SignatureComponent]) {
        self.keys = keys
        self.covered = covered
    }

    /// Verifies a response, of which one signature must be right and cover enough. A signature of another key, or with
    /// another tag, is ignored.
    /// - Parameters:
    ///   - response: the response of a load.
    ///   - trailers: the trailer fields of the response, which are known at the end of its body, for signatures that
    ///     cover them (``SignatureComponent/inTrailers``).
    ///   - request: the request that it answers, as its signer saw it (``SigningRequest/with(_:)``), for signatures
    ///     that cover parts of the request.
    ///   - date: the time of day.
    /// - Returns: what was proved.
    /// - Throws: ``LoadError/Reason/badSignature``; the detail says what is wrong with the last signature that was
    ///   examined.
    @discardableResult
    public func verify(
        _ response: Response, trailers: Headers = Headers(), to request: SigningRequest? = nil, at date: Date = .now
    ) throws(LoadError) -> Verified {
        do throws(Fault) {
            guard let head = response.http else { throw Fault("the response is not one of HTTP") }
            return try verify(head.status.code, head.headers, trailers, to: request, at: date)
        } catch {
            throw LoadError(
                .badSignature, phase: .deciding, party: .remote, url: response.url, detail: error.words)
        }
    }

    private struct Fault: Error {
        let words: String
        init(_ words: String) { self.words = words }
    }

    private func verify(
        _ status: Int, _ headers: Headers, _ trailers: Headers, to request: SigningRequest?, at date: Date
    ) throws(Fault) -> Verified {
        guard let inputText = headers[.signatureInput], let signatureText = headers[.signature] else {
            throw Fault("the response is not signed")
        }
        guard let inputs = StructuredField.dictionary(inputText),
            let signatures = StructuredField.byteSequences(signatureText)
        else { throw Fault("Signature-Input or Signature is malformed (RFC 9421 4)") }
        let message = SignatureMessage(status: status, headers, trailers: trailers, answering: request?.components)
        var fault = Fault("no signature is of a known key")
        var examined = 0
        for entry in inputs {
            guard case .list(let input) = entry.member, let keyID = input.string("keyid"), let key = keys[keyID],
                tag == nil || input.string("tag") == tag
            else { continue }
            examined += 1
            guard examined <= Self.mostExamined else { throw fault }
            do throws(Fault) {
                guard let signature = signatures[entry.key] else { throw Fault("\(entry.key) has no value") }
                try check(input, key, headers, trailers, date)
                let base: String
                do throws(SignatureBase.Problem) { base = try SignatureBase.make(input, of: message) } catch {
                    throw Fault("\(error)")
                }
                guard key.key.verifies(signature, of: Array(base.utf8)) else {
                    throw Fault("the signature \(entry.key) is wrong")
                }
                return Verified(
                    label: entry.key, keyID: keyID,
                    created: input.integer("created").map { Date(timeIntervalSince1970: Double($0)) },
                    components: input.items.compactMap { StructuredField.text($0) })
            } catch { fault = error }
        }
        throw fault
    }

    /// How many signatures of known keys are examined, because each costs work before one is known to be right.
    private static let mostExamined = 8

    /// Checks everything but the signature itself.
    private func check(
        _ input: StructuredField.InnerList, _ key: SigningKey, _ headers: Headers, _ trailers: Headers, _ date: Date
    ) throws(Fault) {
        if let algorithm = input.parameters.first(where: { $0.key == "alg" }),
            algorithm.value != .string(key.algorithm.rawValue)
        {
            throw Fault("the signature has another algorithm than its key")
        }
        guard input.items.count <= SignatureBase.maximumComponents else {
            throw Fault("\(SignatureBase.Problem.tooMany)")
        }
        for component in covered where !input.items.contains(where: component.matches) {
            throw Fault("the signature does not cover \(component)")
        }
        for field in [FieldName.contentDigest, .reprDigest] {
            try checkIsCompared(field, input, headers, inTrailers: false)
            // A trailer that the head does not announce is not compared with the body.
            let isAnnounced = BodyDigest.announced(in: headers).contains(field)
            try checkIsCompared(field, input, isAnnounced ? trailers : Headers(), inTrailers: true)
        }
        let now = date.wholeSeconds
        if let expires = try time("expires", in: input), expires < now { throw Fault("the signature has expired") }
        guard let created = try time("created", in: input) else {
            guard maximumAge == nil else { throw Fault("the signature does not say when it was made") }
            return
        }
        // Both have at most 15 digits. They are compared as durations, whose seconds may exceed `Int64`.
        guard .seconds(created - now) <= clockSkew else { throw Fault("the signature is of the future") }
        if let maximumAge, .seconds(now - created) > maximumAge {
            throw Fault("the signature is too old")
        }
    }

    /// Throws for a covered digest of an unknown algorithm or length, which would not be compared with the body.
    private func checkIsCompared(
        _ field: FieldName, _ input: StructuredField.InnerList, _ headers: Headers, inTrailers: Bool
    ) throws(Fault) {
        let items = input.items.filter { $0.isOfResponse(field, inTrailers: inTrailers) }
        guard !items.isEmpty else { return }
        let compared = BodyDigest.stated(by: field, in: headers).map(\.algorithm.rawValue)
        for item in items {
            let key = item.parameters.first { $0.key == "key" }
            guard compared.contains(where: { key == nil || key?.value == .string($0) }) else {
                throw Fault(
                    "what is covered of \(field) is not compared: neither sha-256 nor sha-512, or not announced")
            }
        }
    }

    /// Returns a parameter with a time; nil without one. One of another type would otherwise count as none.
    private func time(_ key: String, in input: StructuredField.InnerList) throws(Fault) -> Int64? {
        guard let parameter = input.parameters.first(where: { $0.key == key }) else { return nil }
        guard case .integer(let seconds) = parameter.value else { throw Fault("\(key) is not an integer") }
        return seconds
    }

    /// `verifier with the keys server-1, server-2`.
    public var description: String { "verifier with the keys \(keys.keys.sorted().joined(separator: ", "))" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["keys": keys.keys.sorted()]) }
}

extension StructuredField.Item {
    /// Whether the item is a field of the response, in whatever form, and not one of its request.
    fileprivate func isOfResponse(_ field: FieldName, inTrailers: Bool) -> Bool {
        guard case .string(let name) = value else { return false }
        return FieldName(name) == field && !parameters.contains { $0.key == "req" }
            && parameters.contains { $0.key == "tr" } == inTrailers
    }
}

extension StructuredField.InnerList {
    fileprivate func string(_ key: String) -> String? {
        for parameter in parameters where parameter.key == key {
            if case .string(let text) = parameter.value { return text }
        }
        return nil
    }

    fileprivate func integer(_ key: String) -> Int64? {
        for parameter in parameters where parameter.key == key {
            if case .integer(let number) = parameter.value { return number }
        }
        return nil
    }
}
