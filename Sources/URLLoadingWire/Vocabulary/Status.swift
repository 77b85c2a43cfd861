// SPDX-License-Identifier: Apache-2.0

/// A three-digit response status code (RFC 9110 §15).
///
/// ```swift
/// switch response.status.kind {
/// case .successful: …
/// case .redirection: …
/// default: …
/// }
/// ```
public struct Status: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The class of a status code, given by its first digit.
    public enum Kind: Sendable, Hashable {
        /// 1xx: an interim response.
        case informational
        /// 2xx.
        case successful
        /// 3xx.
        case redirection
        /// 4xx.
        case clientError
        /// 5xx, and 6xx to 9xx, which a client treats the same (RFC 9110 §15).
        case serverError
    }

    /// The status code, 100...999.
    public let code: Int

    /// Creates a status; `nil` outside 100...999, the codes that a peer can send.
    public init?(_ code: Int) {
        guard (100...999).contains(code) else { return nil }
        self.code = code
    }

    init(known code: Int) { self.code = code }

    /// The class of the code.
    public var kind: Kind {
        switch code {
        case ..<200: .informational
        case ..<300: .successful
        case ..<400: .redirection
        case ..<500: .clientError
        default: .serverError
        }
    }

    /// Whether a response with this status never has content (RFC 9110 §6.4.1), whatever its fields state.
    package var forbidsContent: Bool { code < 200 || code == 204 || code == 304 }

    /// Compares by code.
    public static func < (left: Status, right: Status) -> Bool { left.code < right.code }

    /// The code and its registered reason phrase: `404 Not Found`.
    public var description: String {
        reasonPhrase.isEmpty ? "\(code)" : "\(code) \(reasonPhrase)"
    }
}
