// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// SOCKS 4A and 5, whole and byte by byte; every reply.
@Suite struct SOCKSTests {
    static let name = SOCKSAddress(.name(Array("a.test".utf8)), port: 443)

    /// Returns the bytes sent until the handshake waits for input; replies arrive in pieces of `size`.
    static func run(_ handshake: inout SOCKSHandshake, _ replies: [UInt8], size: Int) throws -> (
        sent: [[UInt8]], left: Int
    ) {
        var rest = replies[...]
        var sent: [[UInt8]] = []
        while true {
            var output: [UInt8] = []
            handshake.send(into: &output)
            if !output.isEmpty { sent.append(output) }
            guard case .needsBytes(let count) = handshake.next(), !rest.isEmpty else { return (sent, rest.count) }
            let piece = rest.prefix(min(count, size))
            rest = rest.dropFirst(piece.count)
            try handshake.receive(piece)
        }
    }

    @Test("A handshake of SOCKS 5 opens a connection", arguments: [1, 2, 1000]) func version5(size: Int) throws {
        var handshake = try SOCKSHandshake(.socks5, to: Self.name)
        let (sent, left) = try Self.run(&handshake, [5, 0, 5, 0, 0, 1, 127, 0, 0, 1, 4, 0, 0x16, 3], size: size)
        #expect(sent == [[5, 1, 0], [5, 1, 0, 3, 6] + "a.test".utf8 + [1, 0xBB]])
        #expect(handshake.next() == .established)
        // Later bytes do not belong to the handshake.
        #expect(left == 2)
    }

    @Test("IP addresses are sent as addresses") func addressesAsTheyAre() throws {
        let four = try SOCKSAddress(Origin.Host("192.0.2.1"), port: 80)
        let six = try SOCKSAddress(Origin.Host("[2001:db8::1]"), port: 1)
        let forms = try [four.version5(), six.version5()]
        #expect(
            forms == [
                [1, 192, 0, 2, 1, 0, 80], [4, 0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1, 0, 1],
            ])
        let asked = try four.version4()
        #expect(asked.fixed == [0, 80, 192, 0, 2, 1] && asked.name == nil)
        #expect(throws: WireViolation.self) { try six.version4() }
        #expect(throws: WireViolation.self) { try SOCKSAddress(Origin.Host("[fe80::1%25eth0]"), port: 1) }
    }

    /// The bound address in a reply may be of either family, or a name.
    @Test(
        "The bound address of a reply is skipped",
        arguments: [[1, 0, 0, 0, 0], [3, 3, 97, 98, 99], [3, 0], [4] + [Int](repeating: 0, count: 16)])
    func boundAddresses(address: [Int]) throws {
        var handshake = try SOCKSHandshake(.socks5, to: Self.name)
        let replies: [UInt8] = [5, 0, 5, 0, 0] + address.map { UInt8($0) } + [0, 0]
        let (_, left) = try Self.run(&handshake, replies + [9], size: 1)
        #expect(handshake.next() == .established && left == 1)
    }

    @Test("User and password are sent if the proxy asks for them", arguments: [1, 1000]) func userAndPassword(size: Int)
        throws
    {
        var handshake = try SOCKSHandshake(.socks5, to: Self.name, user: "u", password: "pw")
        let (sent, _) = try Self.run(&handshake, [5, 2, 1, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0], size: size)
        #expect(sent.prefix(2) == [[5, 2, 0, 2], [1, 1, 0x75, 2, 0x70, 0x77]])
        #expect(handshake.next() == .established)
        // A proxy that does not ask gets none.
        handshake = try SOCKSHandshake(.socks5, to: Self.name, user: "u", password: "pw")
        let quiet = try Self.run(&handshake, [5, 0], size: size)
        #expect(quiet.sent.count == 2 && quiet.sent[1].first == 5)
    }

    @Test("A proxy may refuse before the request") func refusedBeforeTheRequest() throws {
        var handshake = try SOCKSHandshake(.socks5, to: Self.name)
        _ = try Self.run(&handshake, [5, 0xFF], size: 1)
        #expect(handshake.next() == .refused(SOCKSRefusal(stage: .method, code: 0xFF)))
        handshake = try SOCKSHandshake(.socks5, to: Self.name, user: "u", password: "no")
        let (sent, _) = try Self.run(&handshake, [5, 2, 1, 7], size: 1)
        #expect(handshake.next() == .refused(SOCKSRefusal(stage: .credentials, code: 7)))
        #expect(sent.count == 2)
        #expect(!"\(handshake)".contains("no)"))
    }

    @Test("Every reply of SOCKS 5 has its error", arguments: 1...9) func everyReplyOfVersion5(code: UInt8) throws {
        var handshake = try SOCKSHandshake(.socks5, to: Self.name)
        _ = try Self.run(&handshake, [5, 0, 5, code], size: 1)
        let refusal = SOCKSRefusal(stage: .connection5, code: code)
        #expect(handshake.next() == .refused(refusal))
        #expect(refusal.description.contains("(\(code))") && !refusal.wantsCredentials)
    }

    @Test("A handshake of SOCKS 4A opens a connection", arguments: [1, 1000]) func version4(size: Int) throws {
        var handshake = try SOCKSHandshake(.socks4a, to: Self.name, user: "me")
        let (sent, left) = try Self.run(&handshake, [0, 90, 0, 0, 0, 0, 0, 0, 7], size: size)
        #expect(sent == [[4, 1, 1, 0xBB, 0, 0, 0, 1, 0x6D, 0x65, 0] + "a.test".utf8 + [0]])
        #expect(handshake.next() == .established && left == 1)
    }

    @Test("Every reply of SOCKS 4 has its error", arguments: [0, 91, 92, 93, 255] as [UInt8]) func everyReplyOfVersion4(
        code: UInt8
    ) throws {
        var handshake = try SOCKSHandshake(.socks4a, to: Self.name)
        _ = try Self.run(&handshake, [0, code], size: 2)
        #expect(handshake.next() == .refused(SOCKSRefusal(stage: .connection4, code: code)))
    }

    @Test(
        "Invalid replies are refused",
        arguments: [[4], [0x48], [5, 1], [5, 2], [5, 0, 4], [5, 0, 5, 0, 0, 2, 0]] as [[UInt8]])
    func garbage(replies: [UInt8]) throws {
        var handshake = try SOCKSHandshake(.socks5, to: Self.name)
        let error = #expect(throws: WireViolation.self) { _ = try Self.run(&handshake, replies, size: 1) }
        #expect(error?.party == .remote)
    }

    @Test("The reply to a password has version 1 (RFC 1929 §2)", arguments: [0, 2, 5, 0x48, 255] as [UInt8])
    func versionOfThePasswordReply(version: UInt8) throws {
        var handshake = try SOCKSHandshake(.socks5, to: Self.name, user: "u", password: "pw")
        #expect(throws: WireViolation.remote(.notSOCKS, at: 0, "RFC 1929 2")) {
            try Self.run(&handshake, [5, 2, version], size: 1)
        }
        #expect(handshake.next() != .established)
    }

    @Test("Invalid replies of SOCKS 4 are refused") func garbageInVersion4() throws {
        var handshake = try SOCKSHandshake(.socks4a, to: Self.name)
        #expect(throws: WireViolation.remote(.notSOCKS, at: 0, "SOCKS 4")) { try handshake.receive([0x48]) }
    }

    @Test("The end of input within a handshake is an error") func anEndIsNoAnswer() throws {
        let handshake = try SOCKSHandshake(.socks5, to: Self.name)
        #expect(throws: WireViolation.self) { try handshake.receiveEnd() }
    }

    @Test("Bytes beyond a reply are not consumed") func moreThanAskedForIsNotTaken() throws {
        var handshake = try SOCKSHandshake(.socks5, to: Self.name)
        #expect(throws: WireViolation.self) { try handshake.receive([5, 0, 0]) }
    }

    /// A name that is too long is never resolved locally instead (CVE-2023-38545).
    @Test(arguments: [SOCKSHandshake.Version.socks4a, .socks5])
    func `Names that are too long are refused (security 63)`(
        version: SOCKSHandshake.Version
    )
        throws
    {
        let long = SOCKSAddress(.name([UInt8](repeating: 0x61, count: 256)), port: 80)
        let empty = SOCKSAddress(.name([]), port: 80)
        for address in [long, empty] {
            let error = #expect(throws: WireViolation.self) { try SOCKSHandshake(version, to: address) }
            #expect(error?.code == .invalidHost && error?.party == .local)
        }
        #expect(throws: Never.self) {
            try SOCKSHandshake(version, to: SOCKSAddress(.name([UInt8](repeating: 0x61, count: 255)), port: 80))
        }
        #expect(throws: WireViolation.self) {
            try SOCKSHandshake(.socks4a, to: SOCKSAddress(.name([0x61, 0]), port: 80))
        }
    }

    @Test("Credentials that are too long are refused") func credentialsThatAreTooLongAreRefused() {
        let long = String(repeating: "a", count: 256)
        for (user, password) in [(long, "a"), ("a", long), ("", "a")] {
            #expect(throws: WireViolation.self) {
                try SOCKSHandshake(.socks5, to: Self.name, user: user, password: password)
            }
        }
        #expect(throws: WireViolation.self) { try SOCKSHandshake(.socks4a, to: Self.name, user: "a\0b") }
    }
}
