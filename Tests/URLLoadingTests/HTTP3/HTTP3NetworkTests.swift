// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Foundation
import Testing
@testable import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Networks that lose, double, cut, corrupt and reorder datagrams, by seed; and what takes many datagrams.
@Suite(.timeLimit(.minutes(10)))
struct HTTP3NetworkTests {
    static let isLong = ProcessInfo.processInfo.environment["URLLOADING_LONG"] != nil
    private static let tenMebibytes = (0..<10 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }

    private static func network(_ seed: UInt64, loss: Double, delay: Int64 = 0) -> DatagramFaults {
        var network = DatagramFaults(seed: seed)
        (network.loss, network.reordering, network.delay) = (loss, loss, .nanoseconds(delay))
        return network
    }

    /// Mebibytes, and the share of datagrams that are lost; as many are overtaken by others.
    struct Passage: Sendable, CustomStringConvertible {
        let size: Int
        let loss: Double
        var description: String { "\(size) MiB, \(loss)" }

        static let all: [Passage] =
            [Passage(size: 1, loss: 0.01), Passage(size: 1, loss: 0.1), Passage(size: 10, loss: 0.01)]
            + (isLong ? [Passage(size: 10, loss: 0.1)] : [])
    }

    // MARK: Without sockets

    @Test("Bodies come whole in both directions whatever is lost and overtaken", arguments: Passage.all)
    func passages(passage: Passage) throws {
        let body = Array(Self.tenMebibytes[..<(passage.size << 20)])
        let wire = try HTTP3Wire { HTTP3Answer(body: $0.body) }
        wire.up = Self.network(1, loss: passage.loss, delay: 2_000_000)
        wire.down = Self.network(2, loss: passage.loss, delay: 2_000_000)
        try wire.connect()
        let stream = try wire.submit("POST", hasBody: true)
        try wire.send(body, on: stream, most: 2_000_000)
        #expect(try wire.finish(stream, most: 2_000_000), "\(String(describing: wire.end))")
        #expect(wire.body[stream] == body)
        #expect(wire.up.faultCount > 0 && wire.down.faultCount > 0)
    }

    @Test("All faults at once change no byte, and end no connection", arguments: 0..<(isLong ? 1_000 : 40))
    func everything(seed: Int) throws {
        let body = Array(Self.tenMebibytes[..<30_000])
        let wire = try HTTP3Wire { HTTP3Answer(body: $0.body) }
        var network = Self.network(UInt64(seed), loss: 0.05, delay: 1_000_000)
        (network.doubling, network.corruption, network.cutting) = (0.05, 0.03, 0.03)
        wire.up = network
        network = Self.network(UInt64(seed) + 1_000_000, loss: 0.05, delay: 1_000_000)
        (network.doubling, network.corruption, network.cutting) = (0.05, 0.03, 0.03)
        wire.down = network
        try wire.connect()
        let stream = try wire.submit("POST", hasBody: true)
        try wire.send(body, on: stream)
        #expect(try wire.finish(stream), "\(String(describing: wire.end))")
        #expect(wire.body[stream] == body)
    }

    // MARK: Over sockets

    @Test(
        "A load succeeds whichever datagram of its connection is lost, doubled, cut or has a wrong bit",
        arguments: DatagramFaults.Fault.allCases)
    func single(fault: DatagramFaults.Fault) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for isClient in [true, false] {
                for number in 0..<6 {
                    group.addTask {
                        var (up, down) = (DatagramFaults(), DatagramFaults())
                        if isClient { up.singles[number] = fault } else { down.singles[number] = fault }
                        try await withRelay(up, down) { session, url, _, _ in
                            let (data, _) = try await session.data(from: url)
                            #expect(data.elementsEqual("hello".utf8), "\(isClient ? "client" : "server") \(number)")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("A body goes there and back over a bad network", arguments: [0.01, 0.1])
    func loads(loss: Double) async throws {
        let body = Data(Self.tenMebibytes[..<(1 << 20)])
        try await withRelay(
            Self.network(3, loss: loss, delay: 2_000_000), Self.network(4, loss: loss, delay: 2_000_000)
        ) { session, url, relay, server in
            server.echo()
            let (data, _) = try await session.data(for: Request(url: url, method: .post, body: .data(body)))
            #expect(data == body)
            #expect(server.counts.accepted == 1 && relay.faultCount > 0)
        }
    }

    @Test("1,000 loads at once share one connection") func thousand() async throws {
        try await withHTTP3(change: { $0.connections.maximumPerHost = 1 }) { server, session in
            server.route("*") { request in .ok(request.path) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<1_000 {
                    group.addTask {
                        let (data, _) = try await session.data(from: server.url("/\(number)"))
                        #expect(String(decoding: data, as: UTF8.self) == "/\(number)")
                    }
                }
                try await group.waitForAll()
            }
            #expect(server.counts.accepted == 1 && server.counts.requests == 1_000)
        }
    }

    @Test("100 MiB go there and come back", .enabled(if: isLong, "URLLOADING_LONG")) func large() async throws {
        try await withHTTP3(serve: { $0.recordedBodySize = 100 << 20 }) { server, session in
            server.echo()
            let piece = Array(Self.tenMebibytes[..<(1 << 20)])
            let body = RequestBody.stream(length: 100 << 20) {
                AsyncStream { stream in
                    for _ in 0..<100 { stream.yield(piece) }
                    stream.finish()
                }
            }
            let request = Request(url: server.url("/"), method: .post, body: body)
            try await session.load(request) { _, response in
                var (count, isRight) = (0, true)
                for try await chunk in response {
                    let bytes = Array(chunk)
                    var start = 0
                    while start < bytes.count {
                        let place = (count + start) % piece.count
                        let length = min(bytes.count - start, piece.count - place)
                        isRight = isRight && bytes[start..<start + length] == piece[place..<place + length]
                        start += length
                    }
                    count += bytes.count
                }
                #expect(count == 100 << 20 && isRight)
            }
            #expect(server.counts.accepted == 1)
        }
    }

    @Test("A client whose address changes is found again") func rebound() async throws {
        let body = Data(Self.tenMebibytes[..<2_000_000])
        try await withRelay(DatagramFaults(), DatagramFaults(), rebindings: [30, 300]) { session, url, relay, server in
            server.echo()
            for _ in 0..<2 {
                let (data, _) = try await session.data(for: Request(url: url, method: .post, body: .data(body)))
                #expect(data == body)
            }
            #expect(relay.rebindingCount == 2 && server.counts.accepted == 1)
        }
    }

    private func withRelay(
        _ up: DatagramFaults, _ down: DatagramFaults, rebindings: [Int] = [],
        _ use: (Session, URL, DatagramRelay, HTTP3TestServer) async throws -> Void
    ) async throws {
        try await withHTTP3 { server, session in
            let relay = try DatagramRelay(to: server.port, client: up, server: down, rebindings: rebindings)
            defer { relay.stop() }
            let url = try #require(URL(string: "https://localhost:\(relay.port)/"))
            try await use(session, url, relay, server)
        }
    }
}

#endif
