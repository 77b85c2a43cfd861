// SPDX-License-Identifier: Apache-2.0

// In this folder: the signers of requests, their keys and credentials, and the verifier of responses

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// Signs requests with HTTP Message Signatures (RFC 9421).
///
/// ```swift
/// var signer = try MessageSigner(key: key, keyID: "client-7")
/// signer.lifetime = .seconds(300)
/// var decisions = Decisions()
/// decisions.sign = signer.decision
/// ```
/// The fields Signature-Input and Signature are added to each request, and Content-Digest (RFC 9530) if a digest of the
/// body is covered and the request has none. A server can detect replays by the `created` time together with
/// ``lifetime`` or ``addsNonce``: each sending has a signature of its own.
public struct MessageSigner: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What is covered, in this order. `nil`, the default: method, target URI, and of Authorization, Cookie,
    /// Content-Type and Content-Digest what the request has; a digest of the body is made if there is a body that can
    /// be read twice. A field that is listed and missing ends the load with ``LoadError/Reason/cannotSign``.
    public var components: [SignatureComponent]?
    /// The name of the signature in both fields; `sig` by default. A key of RFC 9651 §3.1.2: lower-case letters,
    /// digits, `_`, `-`, `.` and `*`.
    public var label = "sig"
    /// The application that the signature is meant for, if the server asks for one.
    public var tag: String?
    /// How long the signature is valid, at least a second; `nil`, the default, leaves that to the server.
    public var lifetime: Duration?
    /// Whether each signature has a random nonce of 128 bits; false by default.
    public var addsNonce = false
    /// The nonce of all signatures, as a server has asked for it (``RequestedSignature/nonce``); `nil`, the default,
    /// for none but those that ``addsNonce`` adds.
    public var nonce: String?
    /// Whether the algorithm is named; false by default, because the server knows the algorithm of the key.
    public var namesAlgorithm = false
    /// The algorithm of a Content-Digest that is made.
    public var digestAlgorithm = BodyDigest.Algorithm.sha256

    private let key: SigningKey
    let keyID: String?
    var keyAlgorithm: SigningKey.Algorithm { key.algorithm }
    private let origins: SignerOrigins

    /// Creates a signer.
    /// - Parameters:
    ///   - key: a key that can sign.
    ///   - keyID: the name by which the server knows the key; ASCII.
    ///   - origins: the only origins whose requests are signed, as in `https://api.example.org`. After
    ///     redirects they are signed if all origins of the load are listed, from the caller's on. `nil`, the default,
    ///     signs all requests but those after a redirect to another origin.
    /// - Throws: ``LoadError/Reason/cannotSign`` for a public key and an empty secret; ``LoadError/Reason/badURL`` for
    ///   an origin that is not http or https.
    public init(key: SigningKey, keyID: String?, origins: [String]? = nil) throws(LoadError) {
        guard key.canSign else { throw .cannotSign("a public key or an empty secret cannot sign") }
        self.key = key
        self.keyID = keyID
        self.origins = if let origins { try SignerOrigins(origins) } else { .ofCaller }
    }

    /// The decision that signs with this value. Each call makes a decision of its own, and the cache keeps responses
    /// for one decision: take it once for each account, for its session or its loads, and another for another account.
    public var decision: Decision<SigningRequest, RequestSignature> {
        Decision { request in try await self.signature(of: request) }
    }

    /// Returns the signature of a request; an empty one for a request to an origin that is not signed for.
    /// - Throws: ``LoadError/Reason/cannotSign``; the errors of ``SigningRequest/bodyDigest(_:)``.
    public func signature(of request: SigningRequest) async throws(LoadError) -> RequestSignature {
        guard origins.contains(request) else { return .none }
        var message = request.components
        var added = Headers()
        if try await needsDigest(message, of: request) {
            let digest = try await request.bodyDigest(digestAlgorithm)
            let value = "\(digestAlgorithm.rawValue)=\(StructuredField.text(digest.bytes))"
            added.append(.contentDigest, value)
            message = message.adding(.contentDigest, value)
        }
        for name in [FieldName.signatureInput, .signature] {
            guard let others = StructuredField.dictionary(message.headers[name] ?? "") else {
                throw .cannotSign("the request has a field \(name) that is not a dictionary")
            }
            guard others.allSatisfy({ $0.key != label }) else {
                throw .cannotSign("the request has a signature with the label \(label) already")
            }
        }
        let input = StructuredField.InnerList(covered(by: message), try parameters(request.date))
        // One field over HTTP/2, whose value is not the two joined by a comma (RFC 9113 §8.2.3).
        guard message.headers.count(of: .cookie) < 2 || !input.items.contains(where: { $0.value == .string("cookie") })
        else { throw .cannotSign("the request has two Cookie fields, which servers join differently") }
        let base: String
        do throws(SignatureBase.Problem) { base = try SignatureBase.make(input, of: SignatureMessage(message)) } catch {
            throw .cannotSign("\(error)")
        }
        guard let signature = key.key.sign(Array(base.utf8)) else {
            throw .cannotSign("\(key.algorithm.rawValue) is not available")
        }
        guard let inputText = StructuredField.text([StructuredField.Entry(label, .list(input))]),
            StructuredField.dictionary(inputText)?.map(\.key) == [label]
        else { throw .cannotSign("the label is not a key (RFC 9651 3.1.2)") }
        added.append(.signatureInput, inputText)
        added.append(.signature, "\(label)=\(StructuredField.text(signature))")
        return RequestSignature(headers: added)
    }

    /// The fields that are covered by default if the request has them.
    private static let usual: [FieldName] = [.authorization, .cookie, .contentType, .contentDigest]

    private func covered(by message: SignatureMessage.Request) -> [StructuredField.Item] {
        if let components { return components.map(\.item) }
        let fields = Self.usual.filter { message.headers.contains($0) }.map { SignatureComponent.field($0) }
        return ([.method, .targetURI] + fields).map(\.item)
    }

    /// Whether a digest of the body must be made.
    private func needsDigest(
        _ message: SignatureMessage.Request, of request: SigningRequest
    ) async throws(LoadError) -> Bool {
        guard !message.headers.contains(.contentDigest) else { return false }
        guard let components else { return request.body.isRepeatable }
        return components.contains { $0.item.value == .string("content-digest") }
    }

    private func parameters(_ date: Date) throws(LoadError) -> [StructuredField.Parameter] {
        let created = date.wholeSeconds
        var parameters = [StructuredField.Parameter("created", .integer(created))]
        if let lifetime {
            let longest = Duration.seconds(StructuredField.largestInteger)
            let seconds = min(max(.seconds(1), lifetime), longest).components.seconds
            parameters.append(.init("expires", .integer(min(created + seconds, StructuredField.largestInteger))))
        }
        if let nonce {
            parameters.append(.init("nonce", .string(nonce)))
        } else if addsNonce {
            let words = RandomWords.draw(2)
            guard words.count == 2 else { throw .cannotSign("the system has no random bytes for a nonce") }
            let bytes = words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
            parameters.append(.init("nonce", .string(Base64.encode(bytes))))
        }
        if namesAlgorithm { parameters.append(.init("alg", .string(key.algorithm.rawValue))) }
        if let keyID { parameters.append(.init("keyid", .string(keyID))) }
        if let tag { parameters.append(.init("tag", .string(tag))) }
        return parameters
    }

    /// `signer with an ed25519 key`.
    public var description: String { "signer with the \(key)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["key": key.description]) }
}

extension SignatureMessage.Request {
    fileprivate func adding(_ name: FieldName, _ value: String) -> SignatureMessage.Request {
        var headers = headers
        headers.append(name, value)
        return SignatureMessage.Request(
            method: method, scheme: scheme, authority: authority, target: target, headers: headers)
    }
}

extension Date {
    /// Seconds since 1970, within the range of structured fields (RFC 9651 §3.3.1).
    var wholeSeconds: Int64 {
        let seconds = timeIntervalSince1970.rounded(.down)
        guard let whole = Int64(exactly: seconds) else { return seconds < 0 ? 0 : StructuredField.largestInteger }
        return min(max(-StructuredField.largestInteger, whole), StructuredField.largestInteger)
    }
}
