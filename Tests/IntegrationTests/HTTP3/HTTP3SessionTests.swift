// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Foundation
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Loads of a session from aioquic.
@Suite(
    .enabled(if: QUICServer.isHere, "There is no aioquic: script/setup --tests --http3 installs it"),
    .timeLimit(.minutes(4)))
struct HTTP3SessionTests {
    @Test("GETs, one after the other and at once", arguments: [[], ["retry"]])
    func get(options: [String]) async throws {
        try await with(options) { session, port in
            for size in [0, 1, 100_000, 1_000_000] {
                let task = session.dataTask(from: try url(port, "/\(size)")).resumed()
                let data = try await task.value
                #expect(data.elementsEqual((0..<size).lazy.map { UInt8($0 % 251) }))
                #expect(try await task.response.http?.version == .http3)
                #expect(try await task.metrics.transactions.last?.protocolName == "h3")
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<300 {
                    group.addTask {
                        let (data, _) = try await session.data(from: try url(port, "/\(1_000 + number)"))
                        #expect(data.count == 1_000 + number)
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("A body of known and of unknown length, there and back") func post() async throws {
        try await with { session, port in
            let bytes = Data((0..<2_000_000).map { UInt8($0 % 249) })
            for body in [
                RequestBody.data(bytes),
                .stream {
                    AsyncStream {
                        $0.yield([UInt8](bytes)); $0.finish()
                    }
                },
            ] {
                let (data, _) = try await session.data(
                    for: Request(url: try url(port, "/"), method: .post, body: body))
                #expect(data == bytes)
            }
        }
    }

    @Test("A certificate that no root vouches for") func trust() async throws {
        try await QUICServer.with { port, _ in
            let other = try TestCertificateAuthority(commonName: "Another root")
            try await withSession(configuration(other.pem)) { session in
                let error = await #expect(throws: LoadError.self) {
                    try await session.data(from: try url(port, "/1"))
                }
                #expect(error?.reason == .certificateUntrusted && error?.phase == .securing, "\(error as Any)")
            }
        }
    }

    @Test("Cancelled loads leave the connection usable") func cancelled() async throws {
        try await with { session, port in
            for round in 0..<100 {
                let load = Task { try await session.data(from: try url(port, "/200000")) }
                for _ in 0..<round { await Task.yield() }
                load.cancel()
                _ = await load.result
            }
            let (data, _) = try await session.data(from: try url(port, "/10"))
            #expect(data.count == 10)
        }
    }

    @Test("Loads go on when a router gives the client another address") func rebound() async throws {
        try await QUICServer.with { port, roots in
            let relay = try DatagramRelay(
                to: port, client: DatagramFaults(), server: DatagramFaults(), rebindings: [30, 300])
            defer { relay.stop() }
            try await withSession(configuration(roots)) { session in
                let bytes = Data((0..<2_000_000).map { UInt8($0 % 249) })
                let request = Request(url: try url(relay.port, "/"), method: .post, body: .data(bytes))
                let (data, _) = try await session.data(for: request)
                #expect(data == bytes)
                let (later, _) = try await session.data(from: try url(relay.port, "/1000"))
                #expect(later.count == 1_000)
            }
            #expect(relay.rebindingCount == 2)
        }
    }

    @Test("Loads go on when the machine gets another address") func moved() async throws {
        try await QUICServer.with { port, roots in
            let relay = try DatagramRelay(to: port, client: DatagramFaults(), server: DatagramFaults())
            defer { relay.stop() }
            let paths = ScriptedPaths()
            paths.reach(by: .ipv4((127, 0, 0, 1), port: 0))
            var configuration = configuration(roots)
            configuration.networkMonitor = NetworkMonitor(paths)
            try await withSession(configuration) { session in
                let request = Request(url: try url(relay.port, "/2000000"))
                let bytes = try await session.load(request) { _, body in
                    var bytes: [UInt8] = []
                    for try await chunk in body {
                        if bytes.isEmpty {
                            relay.cut()
                            paths.reach(by: .ipv4((127, 0, 0, 2), port: 0))
                            let address = RouteBytes.address(1, [10, 0, 0, 2])
                            paths.change(telling: [address]) { $0.addresses.append(address) }
                        }
                        bytes += Array(chunk)
                    }
                    return bytes
                }
                #expect(bytes == (0..<2_000_000).map { UInt8($0 % 251) })
                let task = session.dataTask(Request(url: try url(relay.port, "/1000"))).resumed()
                #expect(try await task.value.count == 1_000)
                #expect(try await task.metrics.transactions.last?.localAddress == "127.0.0.2")
            }
            #expect(relay.clientCount == 2)
        }
    }

    @Test("Early data is taken, also behind a Retry", arguments: [["early"], ["early", "retry"]])
    func early(options: [String]) async throws {
        try await QUICServer.with(options) { port, roots in
            var own = configuration(roots)
            own.connections.sendsEarlyData = true
            // The server gives one ticket, which an attempt with another address would use up.
            own.networks.addressOverrides = [try .addresses(["127.0.0.1"], of: nil)]
            try await withSession(own) { session in
                for isEarly in [false, true, true] {
                    let (data, response) = try await session.data(from: try url(port, "/1000"))
                    #expect(data.count == 1_000 && response.http?.version == .http3)
                    #expect((response.http?.headers["early"] != nil) == isEarly)
                    // The tickets and the settings have arrived with this one.
                    let (_, next) = try await session.data(from: try url(port, "/10"))
                    #expect(next.http?.headers["early"] == nil)
                    session.closeIdleConnections()
                }
                let request = Request(url: try url(port, "/"), method: .post, body: .data(Data([1])))
                let (_, response) = try await session.data(for: request)
                #expect(response.http?.headers["early"] == nil)
            }
        }
    }

    private func with(
        _ options: [String] = [], _ use: (Session, UInt16) async throws -> Void
    ) async throws {
        try await QUICServer.with(options) { port, roots in
            try await withSession(configuration(roots)) { try await use($0, port) }
        }
    }

    private func configuration(_ roots: [UInt8]) -> Configuration {
        var configuration = Configuration.ephemeral
        configuration.tls.trustRoots = .pem(String(decoding: roots, as: UTF8.self))
        configuration.connections.httpVersions = .http3PriorKnowledge
        return configuration
    }

    private func url(_ port: UInt16, _ path: String) throws -> URL {
        try #require(URL(string: "https://localhost:\(port)\(path)"))
    }
}

#endif
