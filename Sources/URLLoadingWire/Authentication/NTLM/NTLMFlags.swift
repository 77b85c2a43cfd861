// SPDX-License-Identifier: Apache-2.0

/// The capabilities that both sides negotiate (MS-NLMP §2.2.2.5).
package struct NTLMFlags: OptionSet, Sendable, Hashable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let unicode = NTLMFlags(rawValue: 0x1)
    package static let requestTarget = NTLMFlags(rawValue: 0x4)
    package static let ntlm = NTLMFlags(rawValue: 0x200)
    package static let alwaysSign = NTLMFlags(rawValue: 0x8000)
    package static let extendedSecurity = NTLMFlags(rawValue: 0x8_0000)
    package static let version = NTLMFlags(rawValue: 0x200_0000)
    package static let key128 = NTLMFlags(rawValue: 0x2000_0000)

    /// The client's capabilities. Nothing is signed or sealed over HTTP, so no key is exchanged.
    static let offered: NTLMFlags = [
        .unicode, .requestTarget, .ntlm, .alwaysSign, .extendedSecurity, .version, .key128,
    ]
}

/// The first NTLM message: the client's capabilities, without any identity (MS-NLMP §2.2.1.1).
package enum NTLMNegotiate {
    package static let bytes: [UInt8] = {
        var writer = NTLMWriter(type: 1, fixedCount: 40)
        writer.number(NTLMFlags.offered.rawValue)
        // Domain and workstation stay empty: an unauthenticated server does not need them.
        _ = writer.fields([])
        _ = writer.fields([])
        writer.append(version)
        return writer.bytes
    }()

    /// The version structure (MS-NLMP §2.2.2.10): an operating system, which servers ignore, and NTLM revision 15.
    static let version: [UInt8] = [10, 0, 0, 0, 0, 0, 0, 15]
}
