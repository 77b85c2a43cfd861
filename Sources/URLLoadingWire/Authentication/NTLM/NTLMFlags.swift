/// What both sides say they can do (MS-NLMP §2.2.2.5).
package struct NTLMFlags: OptionSet, Sendable, Hashable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let unicode = NTLMFlags(rawValue: 0x1)
    package static let requestTarget = NTLMFlags(rawValue: 0x4)
    package static let ntlm = NTLMFlags(rawValue: 0x200)
    package static let alwaysSign = NTLMFlags(rawValue: 0x8000)
    package static let extendedSecurity = NTLMFlags(rawValue: 0x8_0000)
    package static let targetInfo = NTLMFlags(rawValue: 0x80_0000)
    package static let version = NTLMFlags(rawValue: 0x200_0000)
    package static let key128 = NTLMFlags(rawValue: 0x2000_0000)

    /// Nothing is signed or sealed over HTTP, so no key is exchanged.
    static let offered: NTLMFlags = [
        .unicode, .requestTarget, .ntlm, .alwaysSign, .extendedSecurity, .version, .key128,
    ]
}

/// The first message: what we can do, and nothing of who we are (MS-NLMP §2.2.1.1).
package enum NTLMNegotiate {
    package static let bytes: [UInt8] = {
        var writer = NTLMWriter(type: 1, fixedCount: 40)
        writer.number(NTLMFlags.offered.rawValue)
        // Domain and workstation are nobody's business before he has proved to know them.
        _ = writer.fields([])
        _ = writer.fields([])
        writer.append(version)
        return writer.bytes
    }()

    /// MS-NLMP §2.2.2.10: of a system, which servers do not look at, and the revision of NTLM, 15.
    static let version: [UInt8] = [10, 0, 0, 0, 0, 0, 0, 15]
}
