// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoadingIO

/// libpq over TLS, whose records may be longer than what libpq reads at once. PostgreSQL itself writes shorter ones;
/// poolers and other servers of its protocol do not.
@Suite(.enabled(if: PostgresLibrary.shared != nil, "libpq is not installed"), .timeLimit(.minutes(4)))
struct PostgresRecordTests {
    /// The bytes of a row's value: as much as libpq has room for at once has several.
    private static let size = 4_000
    /// The bytes of the longest record (RFC 8446 §5.1).
    private static let record = 16_384

    private static func bytes<N: FixedWidthInteger>(_ number: N) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }

    /// A message of the server.
    private static func message(_ kind: UInt8, _ body: [UInt8]) -> [UInt8] {
        var all = [kind]
        all += bytes(Int32(body.count + 4))
        all += body
        return all
    }

    private static let ready = message(UInt8(ascii: "Z"), [UInt8(ascii: "I")])

    /// A result of one column of type text.
    private static func result(rows: Int) -> [UInt8] {
        let column: [[UInt8]] = [
            bytes(Int16(1)), [UInt8(ascii: "x"), 0], bytes(Int32(0)), bytes(Int16(0)), bytes(Int32(25)),
            bytes(Int16(-1)), bytes(Int32(-1)), bytes(Int16(0)),
        ]
        let text = [UInt8](repeating: UInt8(ascii: "y"), count: size)
        let value: [[UInt8]] = [bytes(Int16(1)), bytes(Int32(text.count)), text]
        var all = message(UInt8(ascii: "T"), Array(column.joined()))
        for _ in 0..<rows { all += message(UInt8(ascii: "D"), Array(value.joined())) }
        all += message(UInt8(ascii: "C"), Array("SELECT \(rows)\0".utf8))
        all += ready
        return all
    }

    /// Reads the rest of a message of the client, which begins with its length.
    private static func skip(_ peer: StreamPeer) async throws {
        let length = try await peer.receive(4).reduce(0) { $0 << 8 | Int($1) }
        _ = try await peer.receive(length - 4)
    }

    /// Serves one connection: takes any login, and answers each statement with the next of the replies.
    /// - Parameter replies: the records of each.
    private static func serve(
        _ listener: SocketListener, _ context: TLSServerContext, _ replies: [[[UInt8]]]
    ) async throws {
        let open = try await StreamPeer(listener)
        // The request for TLS.
        _ = try await open.receive(8)
        try await open.send("S")
        let peer = try await open.secured(by: context)
        try await skip(peer)
        try await peer.send(message(UInt8(ascii: "R"), bytes(Int32(0))))
        try await peer.send(message(UInt8(ascii: "K"), bytes(Int64(1))))
        try await peer.send(ready)
        for reply in replies {
            // The kind of the message.
            _ = try await peer.receive(1)
            try await skip(peer)
            for record in reply { try await peer.send(record) }
        }
        // The connection stays open: its end would wake the client.
        _ = try? await peer.receive()
    }

    @Test("A result is complete whose last record libpq reads in two parts")
    func longRecords() async throws {
        let identity = try TestCertificateAuthority(commonName: "Database CA").issue()
        let context = try TLSServerContext(
            .init(certificateChain: identity.certificatePEM, privateKey: identity.keyPEM))
        let counts = 4...16
        // Records of full length, into which libpq reads with the beginning of a row before them.
        let replies = counts.map { count -> [[UInt8]] in
            let result = Self.result(rows: count)
            let first = result.count % Self.record
            return [Array(result.prefix(first)), Array(result.dropFirst(first))]
        }
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let serving = Task { try await Self.serve(listener, context, replies) }
        let connection = try await PostgresConnection.open(
            "postgresql://fleet@127.0.0.1:\(listener.address.port)/fleet?sslmode=require&gssencmode=disable")
        for count in counts {
            let rows = try await connection.run("SELECT", within: 10_000_000_000).rows
            #expect(rows.count == count && rows.allSatisfy { $0.text(0).utf8.count == Self.size }, "\(count) rows")
        }
        serving.cancel()
    }
}
