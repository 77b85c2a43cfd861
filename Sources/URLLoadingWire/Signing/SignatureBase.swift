// SPDX-License-Identifier: Apache-2.0

// In this folder: the texts that signatures cover: signature bases (RFC 9421), and canonical requests of AWS

/// The signature base of RFC 9421 §2.5: the text that is signed.
package enum SignatureBase {
    /// Why a base cannot be made.
    package enum Problem: Error, Sendable, Hashable, CustomStringConvertible {
        /// The message does not have the component.
        case missing(String)
        /// The component has a parameter, or a combination of them, that is unknown or not supported.
        case unsupported(String)
        /// A component is listed twice.
        case repeated(String)
        /// The value has bytes beyond ASCII or a line end: only its byte sequence (`bs`) can be signed.
        case unwritable(String)
        /// More components are listed than ``maximumComponents``.
        case tooMany

        package var description: String {
            switch self {
            case .missing(let name): "the message has no component \(name)"
            case .unsupported(let name): "the component \(name) is not supported"
            case .repeated(let name): "the component \(name) is listed twice"
            case .unwritable(let name): "the value of the component \(name) cannot be signed as text"
            case .tooMany: "more than \(maximumComponents) components are listed"
            }
        }
    }

    /// The number of components that a signature may cover, because each of them costs work before the signature is
    /// known to be right.
    package static let maximumComponents = 64

    /// Returns the signature base.
    /// - Parameter input: the covered components, with the parameters of the signature.
    package static func make(
        _ input: StructuredField.InnerList, of message: SignatureMessage
    ) throws(Problem) -> String {
        var lines: [String] = []
        var listed: Set<Listed> = []
        var parsed: [String: [StructuredField.Entry]] = [:]
        guard input.items.count <= maximumComponents else { throw .tooMany }
        for item in input.items {
            let (component, identifier) = try SignatureComponentID.read(item)
            guard listed.insert(Listed(component)).inserted else { throw .repeated(identifier) }
            let value = try message.value(of: component, identifier, &parsed)
            guard value.utf8.allSatisfy({ (0x20..<0x7F).contains($0) || $0 == 0x09 }) else {
                throw .unwritable(identifier)
            }
            lines.append("\(identifier): \(value)")
        }
        guard let parameters = StructuredField.text(input) else { throw .unwritable("\"@signature-params\"") }
        lines.append("\"@signature-params\": \(parameters)")
        return lines.joined(separator: "\n")
    }

    /// A component without the order of its parameters (§2: two components with the same parameters in another order
    /// are the same).
    private struct Listed: Hashable {
        let name: String
        let parameters: Set<StructuredField.Parameter>

        init(_ component: SignatureComponentID) {
            name = component.name
            parameters = Set(component.parameters)
        }
    }
}

/// A component identifier (RFC 9421 §2): a name with parameters.
struct SignatureComponentID {
    let name: String
    let parameters: [StructuredField.Parameter]

    private static let known: Set<String> = ["sf", "key", "bs", "tr", "req", "name"]

    /// Reads an item of the list of covered components, and returns it with its text.
    static func read(_ item: StructuredField.Item) throws(SignatureBase.Problem) -> (SignatureComponentID, String) {
        guard case .string(let name) = item.value, let text = StructuredField.text(item) else {
            throw .unsupported("that is not a string")
        }
        guard !name.isEmpty, name == name.lowercasedASCII,
            item.parameters.allSatisfy({ Self.known.contains($0.key) })
        else { throw .unsupported(text) }
        return (SignatureComponentID(name: name, parameters: item.parameters), text)
    }

    func has(_ flag: String) -> Bool { parameters.contains(StructuredField.Parameter(flag)) }

    func string(_ key: String) -> String? {
        for parameter in parameters where parameter.key == key {
            if case .string(let text) = parameter.value { return text }
        }
        return nil
    }

    /// Whether the parameters are among `allowed`, besides `req`, each with a value of its type.
    func hasOnly(flags: Set<String> = [], strings: Set<String> = []) -> Bool {
        parameters.allSatisfy { parameter in
            switch parameter.value {
            case .boolean(true): parameter.key == "req" || flags.contains(parameter.key)
            case .string: strings.contains(parameter.key)
            default: false
            }
        }
    }
}
