// SPDX-License-Identifier: Apache-2.0

/// The reason why a SOCKS proxy refused to connect.
package struct SOCKSRefusal: Sendable, Hashable, CustomStringConvertible {
    package enum Stage: Sendable, Hashable {
        /// None of the offered authentication methods is acceptable (RFC 1928 §3).
        case method
        /// User and password were rejected (RFC 1929 §2).
        case credentials
        /// The connection to the destination was refused (RFC 1928 §6).
        case connection5
        case connection4
    }
    package let stage: Stage
    /// The reply code.
    package let code: UInt8

    /// Whether other credentials might be accepted.
    package var wantsCredentials: Bool { stage == .method || stage == .credentials }

    package var description: String {
        switch stage {
        case .method: "SOCKS5: the proxy accepts none of the offered authentication methods"
        case .credentials: "SOCKS5: user and password refused (\(code))"
        case .connection5: "SOCKS5: \(Self.words5(code)) (\(code))"
        case .connection4: "SOCKS4: \(Self.words4(code)) (\(code))"
        }
    }

    private static func words5(_ code: UInt8) -> String {
        switch code {
        case 1: "general failure"
        case 2: "not allowed by its rules"
        case 3: "network unreachable"
        case 4: "host unreachable"
        case 5: "connection refused"
        case 6: "time to live expired"
        case 7: "command not supported"
        case 8: "kind of address not supported"
        default: "unassigned reply"
        }
    }

    private static func words4(_ code: UInt8) -> String {
        switch code {
        case 91: "rejected or failed"
        case 92: "rejected, the proxy cannot reach identd on this machine"
        case 93: "rejected, identd on this machine reports another user"
        default: "unassigned reply"
        }
    }
}
