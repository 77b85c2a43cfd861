// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Testing
@testable import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(2)))
struct NameServersTests {
    /// A question for `a.b`.
    private static let question: [UInt8] = [7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 97, 1, 98, 0, 0, 65, 0, 1]
    private static let record = [UInt8].httpsRecord(["h3"])

    /// Accepts a whole answer to the question.
    private static func read(_ message: [UInt8]) -> NameServers.Reply<Int> {
        guard message.count >= 21, message[..<2] == question[..<2], message[12..<17] == question[12..<17] else {
            return .unrelated
        }
        if message[2] & 2 != 0 { return .truncated }
        if message[3] & 0xF != 0 { return .refused }
        return message.count == 21 + 12 + record.count ? .answer(message.count) : .unrelated
    }

    /// - Parameter patience: long by default, because the machine may be busy. Rows in which a server does not answer
    ///   take a multiple of theirs.
    private func ask(_ servers: TestNameServer..., patience: Int64 = 20_000_000_000) async -> Int? {
        await NameServers(servers.map(\.address), patience: patience).ask(Self.question, Self.read)
    }

    private static let short: Int64 = 4_000_000_000

    @Test("An answer is received, and each question has a port of its own") func answer() async throws {
        let server = try TestNameServer([Self.record])
        defer { server.stop() }
        for _ in 0..<20 { #expect(await ask(server) == 33 + Self.record.count) }
        #expect(server.names == Array(repeating: "a.b", count: 20))
        #expect(Set(server.ports).count > 15)
    }

    @Test("Wrong answers before the true one are not taken") func lies() async throws {
        let server = try TestNameServer(
            [Self.record], faults: [.otherID, .otherQuestion, .cut, .circle], saysTruth: true)
        defer { server.stop() }
        #expect(await ask(server) == 33 + Self.record.count)
        #expect(server.names.count == 1)
    }

    @Test("A server that does not answer gives way to the next one") func next() async throws {
        let second = try TestNameServer([Self.record])
        defer { second.stop() }
        for fault in [TestNameServer.Fault.silence, .refusal, .otherID] {
            let first = try TestNameServer([Self.record], faults: [fault])
            defer { first.stop() }
            #expect(await ask(first, second, patience: Self.short) == 33 + Self.record.count)
            #expect(first.names.count == 1)
        }
        // One that is not there.
        let gone = NameServers(
            [.ipv4((127, 0, 0, 1), port: try DatagramSockets.free()), second.address], patience: Self.short)
        #expect(await gone.ask(Self.question, Self.read) == 33 + Self.record.count)
    }

    @Test("Without an answer, the question ends; each server is asked twice") func none() async throws {
        let server = try TestNameServer([Self.record], faults: [.otherID])
        defer { server.stop() }
        #expect(await ask(server, patience: Self.short) == nil)
        #expect(server.names.count == 2)
        #expect(await NameServers([]).ask(Self.question, Self.read) == nil)
    }

    @Test("An answer that is too large for a datagram is asked for over TCP") func stream() async throws {
        let server = try TestNameServer([Self.record], usesStream: true)
        defer { server.stop() }
        #expect(await ask(server) == 33 + Self.record.count)
        #expect(server.streams == 1)
    }

    @Test("A server that never answers over TCP is given up") func endless() async throws {
        let server = try TestNameServer([Self.record], faults: [.endlessStream])
        defer { server.stop() }
        #expect(await ask(server, patience: Self.short) == nil)
        #expect(server.streams >= 1)
    }

    @Test("The system's servers are read from resolv.conf") func file() {
        func texts(_ text: String) -> [String] { NameServers.addresses(inFile: text).map(\.description) }
        #expect(texts("") == ["127.0.0.1:53"])
        #expect(texts("# nameserver 192.0.2.9\nsearch example.com\n") == ["127.0.0.1:53"])
        #expect(
            texts("nameserver 192.0.2.1\r\nnameserver\t2001:db8::1 # second\nnameserver x\n nameserver 192.0.2.3")
                == ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.3:53"])
        #expect(texts((1...5).map { "nameserver 192.0.2.\($0)\n" }.joined()).count == 3)
        #expect(texts("nameserver fe80::1%lo") == ["[fe80::1]:53"])
        #expect(texts("nameserver fe80::1%nothing") == ["127.0.0.1:53"])
        #expect(texts("nameserver 999.0.0.1\nnameserver 1\nnameserver %lo") == ["127.0.0.1:53"])
    }
}

#endif
