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
    /// Whether the algorithm is named; false by default, because the server knows the algorithm of the key.
    public var namesAlgorithm = false
    /// The algorithm of a Content-Digest that is made.
    public var digestAlgorithm = BodyDigest.Algorithm.sha256

    private let key: SigningKey
    private let keyID: String?
    private let origins: SignerOrigins

    /// Creates a signer.
    /// - Parameters:
    ///   - key: a key that can sign.
    ///   - keyID: the name by which the server knows the key; ASCII.
    ///   - origins: the only origins whose requests are signed, as in `https://api.example.org`; `nil`, the default,
    ///     signs all requests but those to another origin after a redirect.
    /// - Throws: ``LoadError/Reason/cannotSign`` for a public key; ``LoadError/Reason/badURL`` for an origin that is
    ///   not http or https.
    public init(key: SigningKey, keyID: String?, origins: [String]? = nil) throws(LoadError) {
        guard key.canSign else { throw .cannotSign("a public key cannot sign") }
        self.key = key
        self.keyID = keyID
        self.origins = if let origins { try SignerOrigins(origins) } else { .ofCaller }
    }

    /// The decision that signs with this value.
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
        let others = message.headers[.signatureInput].map { StructuredField.dictionary($0) }
        guard others?.map({ $0.allSatisfy { $0.key != label } }) ?? true else {
            throw .cannotSign("the request has a signature with the label \(label) already")
        }
        let input = StructuredField.InnerList(covered(by: message), try parameters(request.date))
        let base: String
        do throws(SignatureBase.Problem) { base = try SignatureBase.make(input, of: SignatureMessage(message)) } catch {
            throw .cannotSign("\(error)")
        }
        guard let signature = key.key.sign(Array(base.utf8)) else {
            throw .cannotSign("\(key.algorithm.rawValue) is not available")
        }
        guard let inputText = StructuredField.text([StructuredField.Entry(label, .list(input))]),
            StructuredField.dictionary(inputText)?.count == 1
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
        let created = Int64(date.timeIntervalSince1970)
        var parameters = [StructuredField.Parameter("created", .integer(created))]
        if let lifetime { parameters.append(.init("expires", .integer(created + max(1, lifetime.components.seconds)))) }
        if addsNonce {
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
