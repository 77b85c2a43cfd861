// SPDX-License-Identifier: Apache-2.0

public import URLLoadingWire

/// A signature that a server asks for: a member of the field Accept-Signature (RFC 9421 §5.1).
///
/// ```swift
/// let (_, response) = try await session.data(for: request)
/// if let requested = RequestedSignature.all(in: response.http?.headers ?? [:]).first {
///     decisions.sign = try signer.answering(requested).decision
///     let (data, _) = try await session.data(for: request, decisions: decisions)
/// }
/// ```
/// A server may ask for less than the program wants to sign, so nothing is signed without the program's consent:
/// ``MessageSigner/answering(_:)`` refuses a signature that covers less than the signer's own components.
public struct RequestedSignature: Sendable, Hashable, CustomStringConvertible {
    /// The name that the signature is to have.
    public let label: String
    /// What it is to cover, exactly and in this order.
    public let components: [SignatureComponent]
    /// The registered name of the algorithm; `nil` if the server does not ask for one.
    public let algorithm: String?
    /// The name of the key that the server expects; `nil` if it does not say.
    public let keyID: String?
    /// A value that the signature is to repeat, so that the server can detect replays.
    public let nonce: String?
    /// The application that the signature is meant for.
    public let tag: String?
    /// Whether the signature is to say when it was made. Those of ``MessageSigner`` always do.
    public let wantsCreated: Bool
    /// Whether the signature is to say when it expires.
    public let wantsExpiry: Bool

    /// Returns the signatures that a server asks for, in its order. A field that is no dictionary asks for nothing.
    /// Members that are not lists of components, or have a parameter that RFC 9421 does not define, are left out.
    public static func all(in headers: Headers) -> [RequestedSignature] {
        let entries = headers["Accept-Signature"].flatMap { StructuredField.dictionary($0) } ?? []
        return entries.compactMap { RequestedSignature($0) }
    }

    private init?(_ entry: StructuredField.Entry) {
        guard case .list(let list) = entry.member, list.items.count <= SignatureBase.maximumComponents else {
            return nil
        }
        var flags: Set<String> = []
        var texts: [String: String] = [:]
        for parameter in list.parameters {
            switch (parameter.key, parameter.value) {
            case ("created", .boolean(true)), ("expires", .boolean(true)): flags.insert(parameter.key)
            case ("alg", .string(let text)), ("keyid", .string(let text)), ("nonce", .string(let text)),
                ("tag", .string(let text)):
                texts[parameter.key] = text
            default: return nil
            }
        }
        guard list.items.allSatisfy({ if case .string = $0.value { true } else { false } }) else { return nil }
        label = entry.key
        components = list.items.map { SignatureComponent($0) }
        (algorithm, keyID, nonce, tag) = (texts["alg"], texts["keyid"], texts["nonce"], texts["tag"])
        (wantsCreated, wantsExpiry) = (flags.contains("created"), flags.contains("expires"))
    }

    /// `sig1 over "@method" "@authority"`.
    public var description: String { "\(label) over \(components.map(\.description).joined(separator: " "))" }
}

extension MessageSigner {
    /// Returns the signer that makes a signature as a server asks for it.
    /// - Parameter requested: what the server asks for.
    /// - Throws: ``LoadError/Reason/cannotSign`` if it asks for another key or algorithm, or for a signature that does
    ///   not cover all ``components`` of this signer: without components of its own it insists on the method and on the
    ///   target URI or the authority, so that the signature is worth nothing to other servers.
    public func answering(_ requested: RequestedSignature) throws(LoadError) -> MessageSigner {
        if let algorithm = requested.algorithm, algorithm != keyAlgorithm.rawValue {
            throw .cannotSign("the server asks for \(algorithm), and the key is for \(keyAlgorithm.rawValue)")
        }
        if let asked = requested.keyID, asked != keyID {
            throw .cannotSign("the server asks for a signature with the key \(asked)")
        }
        for component in components ?? [] where !requested.components.contains(where: { $0.matches(component.item) }) {
            throw .cannotSign("the server asks for a signature that does not cover \(component)")
        }
        guard !requested.components.isEmpty else {
            throw .cannotSign("the server asks for a signature that covers nothing")
        }
        if components == nil {
            func covers(_ component: SignatureComponent) -> Bool {
                requested.components.contains { $0.matches(component.item) }
            }
            guard covers(.method), covers(.targetURI) || covers(.authority) else {
                throw .cannotSign("the server asks for a signature that does not say for which method and server it is")
            }
        }
        var signer = self
        (signer.components, signer.label) = (requested.components, requested.label)
        (signer.nonce, signer.tag) = (requested.nonce ?? nonce, requested.tag ?? tag)
        if requested.wantsExpiry, lifetime == nil { signer.lifetime = .seconds(300) }
        if requested.algorithm != nil { signer.namesAlgorithm = true }
        return signer
    }
}
