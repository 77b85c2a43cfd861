// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Foundation
import Testing
@testable import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// HTTPS records (RFC 9460) as offers of HTTP/3, from a name server on this machine.
@Suite(.timeLimit(.minutes(4)))
struct HTTPSRecordTests {
    private static let name = "www.h3.example"

    /// Resolves every name to the loopback address.
    private struct Names: Resolver {
        let nameServers: NameServers?
        func addresses(of name: String, _ token: StopToken) async throws(IOFailure) -> [SocketAddress] {
            [.ipv4((127, 0, 0, 1), port: 0)]
        }
    }

    private struct Rig {
        let server: HTTP2TestServer
        let http3: HTTP3TestServer
        var configuration: Configuration
        func url(_ name: String = HTTPSRecordTests.name) throws -> URL {
            let port = try #require(server.url("/").port)
            return try #require(URL(string: "https://\(name):\(port)/"))
        }
    }

    /// - Parameter patience: for how long an answer is waited for: a busy machine is no silent name server.
    private func withRig(
        patience: Int64 = 30_000_000_000, _ names: (HTTP3TestServer) throws -> TestNameServer,
        _ use: (Rig, TestNameServer) async throws -> Void
    ) async throws {
        try await withBoth(names: [Self.name, "other.h3.example"]) { server, http3, configuration in
            server.route("/") { _ in .ok("two") }
            let nameServer = try names(http3)
            defer { nameServer.stop() }
            var configuration = configuration
            configuration.networks.resolver = Names(
                nameServers: NameServers([nameServer.address], patience: patience))
            try await use(Rig(server: server, http3: http3, configuration: configuration), nameServer)
        }
    }

    private func version(_ session: Session, _ url: URL) async throws -> HTTPVersion? {
        try await session.data(from: url).1.http?.version
    }

    private func expect(_ session: Session, _ url: URL, _ expected: HTTPVersion) async throws {
        let used = try await version(session, url)
        #expect(used == expected)
    }

    /// Loads until a connection over HTTP/3 is made: on a busy machine the handshake takes longer than loads wait.
    private func untilHTTP3(_ session: Session, _ url: URL) async throws {
        while try await version(session, url) != .http3 { await Task.yield() }
    }

    @Test("The first load of a session uses HTTP/3 that a record offers, and says why") func first() async throws {
        try await withRig {
            try TestNameServer([.httpsRecord(["h3", "h2"], port: $0.port)])
        } _: { rig, names in
            let connections = Watched<[String]>([])
            var configuration = rig.configuration
            configuration.wireTap = { event in
                if case .connected(let words, _) = event { connections.change { $0.append(words) } }
            }
            try await withSession(configuration) { session in
                try await untilHTTP3(session, rig.url())
                try await expect(session, rig.url(), .http3)
            }
            #expect(connections.value.contains { $0.hasSuffix("h3, offered in an HTTPS record") })
            let port = try #require(rig.server.url("/").port)
            #expect(names.names == ["_\(port)._https.\(Self.name)"])
        }
    }

    @Test("Loads that were begun at once share the connection that a record has led to") func together() async throws {
        try await withRig {
            try TestNameServer([.httpsRecord(["h3"], port: $0.port)])
        } _: { rig, names in
            try await withSession(rig.configuration) { session in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<50 { group.addTask { _ = try await session.data(from: rig.url()) } }
                    try await group.waitForAll()
                }
            }
            #expect(rig.http3.counts.accepted == 1 && names.names.count == 1)
        }
    }

    @Test("An alias leads to the records of another name") func alias() async throws {
        let target = "other.h3.example"
        // The server gives both records to each question: the alias counts, and leads to itself without an end.
        try await withRig { http3 in
            try TestNameServer([
                .httpsRecord(priority: 0, target: target, []), .httpsRecord(["h3"], port: http3.port),
            ])
        } _: { rig, names in
            try await withSession(rig.configuration) { session in
                try await expect(session, rig.url(), .http2)
                try await eventually(names.names.count) { $0 == 9 }
            }
            #expect(names.names.dropFirst().allSatisfy { $0 == target })
            #expect(rig.http3.counts.accepted == 0)
        }
    }

    @Test(
        "A name server that lies, is cut, late or silent fails no load, and nothing is believed",
        arguments: TestNameServer.Fault.allCases)
    func faults(fault: TestNameServer.Fault) async throws {
        try await withRig(patience: NameServers.usualPatience) {
            try TestNameServer([.httpsRecord(["h3"], port: $0.port)], faults: [fault])
        } _: { rig, names in
            try await withSession(rig.configuration) { session in
                let used = try await version(session, rig.url())
                // A load of a busy machine may still find what came late.
                #expect(used == .http2 || fault == .late)
            }
            #expect(!names.names.isEmpty && (rig.http3.counts.accepted == 0 || fault == .late))
        }
    }

    @Test("Behind lies, the true answer is found; a large one over TCP", arguments: [false, true])
    func truth(usesStream: Bool) async throws {
        try await withRig {
            try TestNameServer(
                [.httpsRecord(["h3"], port: $0.port)], faults: [.otherID, .otherQuestion, .cut, .circle],
                saysTruth: true, usesStream: usesStream)
        } _: { rig, names in
            try await withSession(rig.configuration) { session in try await untilHTTP3(session, rig.url()) }
            #expect(names.names.count == 1 && names.streams == (usesStream ? 1 : 0))
        }
    }

    @Test("A record that lies of HTTP/3 fails no load") func lie() async throws {
        let strange = try HTTP3TestServer(.init(TestCertificateAuthority(commonName: "Elsewhere").issue()))
        strange.start()
        for port in [strange.port, try DatagramSockets.free()] {
            try await withRig { _ in
                try TestNameServer([.httpsRecord(["h3"], port: port)])
            } _: { rig, _ in
                try await withSession(rig.configuration) { session in
                    for _ in 0..<5 { try await expect(session, rig.url(), .http2) }
                }
                #expect(rig.http3.counts.accepted == 0)
            }
        }
        await strange.stop()
    }

    @Test("Records without HTTP/3, or for others, change nothing") func others() async throws {
        let forOthers: [UInt8] = [0, 1, 0, 0, 0, 0, 2, 0, 9, 0, 1, 0, 3, 2, 104, 51, 0, 9, 0, 0]
        for records in [[.httpsRecord(["h2"])], [forOthers], [], [[0, 1]]] as [[[UInt8]]] {
            try await withRig { _ in
                try TestNameServer(records)
            } _: { rig, names in
                try await withSession(rig.configuration) { session in
                    for _ in 0..<3 { try await expect(session, rig.url(), .http2) }
                    session.closeIdleConnections()
                    try await expect(session, rig.url(), .http2)
                }
                #expect(names.names.count == 1)
            }
        }
    }

    @Test("Records are asked for only where they can change something") func unasked() async throws {
        try await withRig {
            try TestNameServer([.httpsRecord(["h3"], port: $0.port)])
        } _: { rig, names in
            func load(_ url: URL, _ change: (inout Configuration) throws -> Void = { _ in }) async throws {
                var configuration = rig.configuration
                try change(&configuration)
                try await withSession(configuration) { session in
                    // The certificate is not for every name here.
                    _ = try? await session.data(from: url)
                }
            }
            try await load(rig.server.url("/"))
            try await load(rig.url("127.0.0.1"))
            try await load(rig.url()) { $0.connections.httpVersions = .http1Only }
            try await load(rig.url()) { $0.connections.httpVersions = .http3Preferred }
            try await load(rig.url()) { $0.tls.maximumVersion = .tls12 }
            try await load(rig.url()) { $0.networks.resolver = RecordingResolver() }
            try await load(rig.url()) {
                $0.networks.addressOverrides = [try .addresses(["127.0.0.1"], of: Self.name)]
            }
            try await load(rig.url()) {
                $0.networks.nameResolver = NameResolver { _ in ["127.0.0.1"] }
            }
            try await withSession(rig.configuration) { session in
                var decisions = Decisions()
                decisions.challenge = Decision { _ in .performDefaultHandling }
                _ = try await session.data(for: Request(url: rig.url()), decisions: decisions)
            }
            #expect(names.names.isEmpty)
            try await load(rig.url())
            #expect(names.names.count == 1)
        }
    }

    @Test("What name servers have said is remembered for its time, and not for more origins than that")
    func table() throws {
        func origin(_ index: Int) throws -> Origin {
            try Origin(scheme: "https", host: Origin.Host("a\(index).example"))
        }
        let offer = ServiceOffer(service: AlternativeService("h3", port: 1), lifetime: 60)
        var table = ServiceOfferTable()
        var begun: [Bool] = []
        func begin(_ index: Int, now: Int64) throws { begun.append(try table.begin(origin(index), now: now)) }
        func end(_ index: Int, _ offer: ServiceOffer?, now: Int64) throws {
            let waiting = try table.end(origin(index), offer, now: now)
            #expect(waiting.isEmpty)
        }
        try begin(0, now: 0)
        try begin(0, now: 1)
        #expect(begun == [true, false])
        #expect(try table.isAsking(origin(0)) && table.service(of: origin(0), now: 1) == nil)
        try end(0, offer, now: 0)
        #expect(try table.service(of: origin(0), now: 59_999_999_999)?.port == 1)
        #expect(try table.service(of: origin(0), now: 60_000_000_000) == nil)
        begun = []
        try begin(0, now: 59_999_999_999)
        try begin(0, now: 60_000_000_000)
        #expect(begun == [false, true])
        try end(0, nil, now: 60_000_000_000)
        // Not more questions at a time.
        begun = []
        for index in 1...ServiceOfferTable.mostAsking { try begin(index, now: 0) }
        try begin(1_000, now: 0)
        #expect(begun == Array(repeating: true, count: ServiceOfferTable.mostAsking) + [false])
        for index in 1...ServiceOfferTable.mostAsking { try end(index, offer, now: Int64(index)) }
        for index in 2_000..<3_000 {
            try begin(index, now: 0)
            try end(index, offer, now: 1_000_000)
        }
        #expect(try table.service(of: origin(1), now: 0) == nil)
        #expect(try table.service(of: origin(2_999), now: 0) != nil)
    }
}

#endif
