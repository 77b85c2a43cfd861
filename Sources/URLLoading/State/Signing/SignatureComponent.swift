// SPDX-License-Identifier: Apache-2.0

public import URLLoadingWire

/// A component of a message that a signature covers (RFC 9421 §2).
///
/// ```swift
/// signer.components = [.method, .targetURI, .field("Content-Digest"), .queryParameter("page")]
/// ```
public struct SignatureComponent: Sendable, Hashable, CustomStringConvertible {
    let item: StructuredField.Item

    private init(_ name: String, _ parameters: [StructuredField.Parameter] = []) {
        item = StructuredField.Item(.string(name), parameters)
    }

    init(_ item: StructuredField.Item) { self.item = item }

    /// The method.
    public static let method = SignatureComponent("@method")
    /// The whole URL without a fragment.
    public static let targetURI = SignatureComponent("@target-uri")
    /// Host and port.
    public static let authority = SignatureComponent("@authority")
    /// The scheme.
    public static let scheme = SignatureComponent("@scheme")
    /// Path and query.
    public static let requestTarget = SignatureComponent("@request-target")
    /// The path.
    public static let path = SignatureComponent("@path")
    /// The query with its question mark; `?` without a query.
    public static let query = SignatureComponent("@query")
    /// The status of a response.
    public static let status = SignatureComponent("@status")

    /// The values of a field, joined by commas.
    public static func field(_ name: FieldName) -> SignatureComponent {
        SignatureComponent(name.description.lowercased())
    }

    /// The value of a query parameter that occurs once.
    /// - Parameter name: the decoded name.
    public static func queryParameter(_ name: String) -> SignatureComponent {
        let coded = FormCoding.encoded(name).replacing("+", with: "%20")
        return SignatureComponent("@query-param", [StructuredField.Parameter("name", .string(coded))])
    }

    /// The member of a field that is a dictionary (RFC 9651 §3.2), such as the digest of one algorithm.
    public func member(_ key: String) -> SignatureComponent {
        SignatureComponent(
            StructuredField.Item(item.value, item.parameters + [StructuredField.Parameter("key", .string(key))]))
    }

    /// The trailer field (RFC 9110 §6.5) of this name in place of the header field. Signers of requests cannot use it,
    /// because trailers are made after the signature.
    public var inTrailers: SignatureComponent {
        SignatureComponent(StructuredField.Item(item.value, item.parameters + [StructuredField.Parameter("tr")]))
    }

    /// The component of the request that a response answers. Signers of requests cannot use it.
    public var ofRequest: SignatureComponent {
        SignatureComponent(StructuredField.Item(item.value, item.parameters + [StructuredField.Parameter("req")]))
    }

    /// The identifier as it stands in Signature-Input: `"@query-param";name="page"`.
    public var description: String { StructuredField.text(item) ?? "" }

    /// Whether both are the same component, whatever the order of their parameters.
    func matches(_ other: StructuredField.Item) -> Bool {
        item.value == other.value && Set(item.parameters) == Set(other.parameters)
    }
}
