// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Foundation
import Glibc
import Synchronization
import Testing
@testable import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Loads whose machine gets another address: the system would send from 127.0.0.2, and 127.0.0.1 is cut off.
@Suite(.timeLimit(.minutes(4)))
struct HTTP3MovingTests {
    private static let large = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }

    /// By what a connection notices that it must move.
    enum Sign: Sendable, CaseIterable {
        /// The kernel reports a change of the networks.
        case news
        /// The server does not answer.
        case silence
    }

    /// A network between a session and a server.
    private struct Way: Sendable {
        let server: HTTP3Server
        let relay: DatagramRelay
        let paths: ScriptedPaths
        let url: URL

        /// Cuts off the present address, and lets the system choose another one.
        func move(_ sign: Sign, alsoCuts others: Bool = false) {
            relay.cut(alsoOthers: others)
            paths.reach(by: .ipv4((127, 0, 0, 2), port: 0))
            guard sign == .news else { return }
            let address = RouteBytes.address(1, [10, 0, 0, 2])
            paths.change(telling: [address]) { $0.addresses.append(address) }
        }
    }

    private func with(
        _ limits: QUICLimits = .forServers, loss: Double = 0, rebindings: [Int] = [],
        change: (inout Configuration) -> Void = { _ in },
        answer: @escaping @Sendable (HTTP3Received) -> HTTP3Answer = { _ in HTTP3Answer(body: Self.large) },
        _ use: (Session, Way) async throws -> Void
    ) async throws {
        let paths = ScriptedPaths()
        paths.reach(by: .ipv4((127, 0, 0, 1), port: 0))
        try await withMovingServer(
            limits: limits,
            change: {
                $0.networkMonitor = NetworkMonitor(paths)
                $0.connections.http2PingInterval = .milliseconds(200)
                change(&$0)
            }, answer: answer
        ) { server, session in
            var (up, down) = (DatagramFaults(seed: 5), DatagramFaults(seed: 6))
            (up.loss, down.loss) = (loss, loss)
            (up.delay, down.delay) = (.milliseconds(1), .milliseconds(1))
            let relay = try DatagramRelay(to: server.port, client: up, server: down, rebindings: rebindings)
            defer { relay.stop() }
            let url = try #require(URL(string: "https://localhost:\(relay.port)/"))
            // On the event loop: other rows occupy the threads of Swift's pool for longer than QUIC's time-outs.
            try await withTaskExecutorPreference(eventLoopExecutor) {
                try await use(session, Way(server: server, relay: relay, paths: paths, url: url))
            }
        }
    }

    private func localAddress(_ session: Session, _ url: URL) async throws -> String? {
        let task = session.dataTask(Request(url: url)).resumed()
        _ = try await task.value
        return try await task.metrics.transactions.last?.localAddress
    }

    @Test("A download notices nothing of another address", arguments: Sign.allCases, [0, 0.02])
    func download(sign: Sign, loss: Double) async throws {
        try await with(loss: loss) { session, way in
            let bytes = try await session.load(Request(url: way.url)) { _, body in
                var bytes: [UInt8] = []
                var hasMoved = false
                for try await chunk in body {
                    bytes += Array(chunk)
                    guard bytes.count > Self.large.count / 8, !hasMoved else { continue }
                    hasMoved = true
                    way.move(sign)
                }
                return bytes
            }
            #expect(bytes == Self.large)
            #expect(way.server.connections == 1 && way.server.requests == 1)
            #expect(way.relay.clientCount > 1)
            try await eventually(way.server.moves) { $0 > 0 }
            #expect(try await localAddress(session, way.url) == "127.0.0.2")
            #expect(way.server.connections == 1)
        }
    }

    @Test("An upload notices nothing of another address", arguments: Sign.allCases, [0, 0.02])
    func upload(sign: Sign, loss: Double) async throws {
        let answer: @Sendable (HTTP3Received) -> HTTP3Answer = {
            HTTP3Answer(body: Array(($0.body == Self.large ? "whole" : "other").utf8))
        }
        try await with(loss: loss, answer: answer) { session, way in
            let body = RequestBody.stream(of: Self.large) { way.move(sign) }
            let (data, _) = try await session.data(for: Request(url: way.url, method: .post, body: body))
            #expect(String(decoding: data, as: UTF8.self) == "whole")
            #expect(way.server.connections == 1 && way.server.requests == 1)
            #expect(way.relay.clientCount > 1)
            try await eventually(way.server.moves) { $0 > 0 }
        }
    }

    @Test("An idle connection moves, and carries the next load") func idle() async throws {
        try await with(answer: { _ in HTTP3Answer(body: [1]) }) { session, way in
            _ = try await session.data(from: way.url)
            way.move(.news)
            try await eventually(way.server.moves) { $0 > 0 }
            #expect(try await localAddress(session, way.url) == "127.0.0.2")
            #expect(way.server.connections == 1)
        }
    }

    @Test("News of the networks without another address move nothing") func same() async throws {
        try await with { session, way in
            let bytes = try await session.load(Request(url: way.url)) { _, body in
                var bytes: [UInt8] = []
                for try await chunk in body {
                    bytes += Array(chunk)
                    let link = RouteBytes.link(Int32(truncatingIfNeeded: bytes.count % 100) + 1, "v")
                    way.paths.change(telling: [link]) { $0.links = [link] }
                }
                return bytes
            }
            #expect(bytes == Self.large)
            #expect(way.relay.clientCount == 1 && way.server.moves == 0)
        }
    }

    @Test("Where the server forbids it, the load fails as without another address, and the next one connects anew")
    func forbidden() async throws {
        var limits = QUICLimits.forServers
        (limits.forbidsMigration, limits.idleTimeout) = (true, 10_000_000_000)
        try await with(limits) { session, way in
            await expectFailure(.truncated) { try await cutOff(session, way) }
            #expect(way.server.connections == 1 && way.relay.clientCount == 1)
            _ = try await session.data(from: way.url)
            #expect(way.server.connections == 2)
        }
    }

    @Test(
        "Where the other address leads nowhere either, the load fails by the idle timeout of QUIC",
        arguments: Sign.allCases)
    func nowhere(sign: Sign) async throws {
        var limits = QUICLimits.forServers
        limits.idleTimeout = 10_000_000_000
        try await with(limits) { session, way in
            await expectFailure(.truncated) { try await cutOff(session, way, sign, alsoOthers: true) }
            #expect(way.server.connections == 1 && way.server.moves == 0)
        }
    }

    private func cutOff(
        _ session: Session, _ way: Way, _ sign: Sign = .news, alsoOthers: Bool = false
    ) async throws {
        try await session.load(Request(url: way.url)) { _, body in
            var count = 0
            for try await chunk in body {
                if count == 0 { way.move(sign, alsoCuts: alsoOthers) }
                count += chunk.count
            }
        }
    }

    @Test("A router that gives the client another address changes nothing", arguments: [0, 0.02])
    func rebound(loss: Double) async throws {
        try await with(
            loss: loss, rebindings: [60, 300], answer: { HTTP3Answer(body: $0.body) }
        ) { session, way in
            let request = Request(url: way.url, method: .post, body: .data(Data(Self.large)))
            let (data, _) = try await session.data(for: request)
            #expect(data.elementsEqual(Self.large))
            #expect(way.relay.rebindingCount == 2 && way.server.connections == 1)
            try await eventually(way.server.moves) { $0 > 0 }
        }
    }

    @Test("The kernel's reports are read while there are connections") func reader() async throws {
        try await with(answer: { _ in HTTP3Answer(body: [1]) }) { session, way in
            _ = try await session.data(from: way.url)
            session.core.pool.http3.closeIdle()
            // One that ends soon does not ask for them.
            #expect(way.paths.opened == 0)
            _ = try await session.data(from: way.url)
            try await way.paths.wait { $0.opened > 0 && $0.open > 0 }
            session.core.pool.http3.closeIdle()
            try await way.paths.wait { $0.open == 0 }
        }
    }
}

extension RequestBody {
    /// Returns a body in pieces that calls a closure in its middle.
    fileprivate static func stream(of bytes: [UInt8], halfway: @escaping @Sendable () -> Void) -> RequestBody {
        .stream(length: Int64(bytes.count)) {
            let count = PieceCount()
            return AsyncStream<[UInt8]> {
                let start = count.next() * PieceCount.size
                guard start < bytes.count else { return nil }
                if start == bytes.count / 2 { halfway() }
                return Array(bytes[start..<min(start + PieceCount.size, bytes.count)])
            }
        }
    }
}

private final class PieceCount: Sendable {
    static let size = 64 << 10
    private let count = Lock(0)

    /// Returns 0 at first, and one more each time.
    func next() -> Int {
        count.withLock { count in
            defer { count += 1 }
            return count
        }
    }
}

// MARK: - Addresses of the kernel

@Suite(.timeLimit(.minutes(4)))
struct HTTP3NamespaceTests {
    @Test(
        "An address of the machine is removed in the middle of a body, and another one remains",
        .enabled(if: Namespaces.areAllowed && !Namespaces.isInside, Namespaces.areMissing),
        arguments: ["download", "upload"])
    func inside(_ name: String) async throws { try await Namespaces.prove(name, of: "HTTP3NamespaceChild") }
}

/// Each row has a namespace of its own.
@Suite(.enabled(if: Namespaces.isInside, "run by HTTP3NamespaceTests"), .timeLimit(.minutes(4)))
struct HTTP3NamespaceChild {
    private static let large = (0..<2 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }

    /// The server is in a namespace of its own, at an address behind both of the link's networks.
    private func with(
        answer: @escaping @Sendable (HTTP3Received) -> HTTP3Answer, _ use: (Session, URL) async throws -> Void
    ) async throws {
        let server = try await apart {
            ip(
                "link set lo up", "link add v1 type veth peer name v0 netns \(getpid())",
                "addr add 10.7.0.1/32 dev lo", "addr add 10.8.0.9/24 dev v1", "addr add 10.9.0.9/24 dev v1",
                "link set v1 up")
            return try HTTP3Server(.init(addresses: [[10, 7, 0, 1]]), host: 0x0A07_0001, answer: answer)
        }
        defer { server.stop() }
        ip(
            "link set lo up", "addr add 10.8.0.1/24 dev v0", "addr add 10.9.0.1/24 dev v0", "link set v0 up",
            "route add 10.7.0.1 via 10.8.0.9 src 10.8.0.1 metric 1",
            "route add 10.7.0.1 via 10.9.0.9 src 10.9.0.1 metric 2")
        var configuration = Configuration.ephemeral
        configuration.tls.trustRoots = .pem(server.roots)
        configuration.connections.httpVersions = .http3PriorKnowledge
        let url = try #require(URL(string: "https://10.7.0.1:\(server.port)/"))
        try await withSession(configuration) { session in
            try await use(session, url)
            let task = session.dataTask(Request(url: url)).resumed()
            _ = try await task.value
            #expect(try await task.metrics.transactions.last?.localAddress == "10.9.0.1")
        }
        #expect(server.connections == 1)
        try await eventually(server.moves) { $0 > 0 }
    }

    /// Calls a closure in a thread with a namespace of its own. The thread wakes no task: a thread that it began for
    /// one would be in that namespace, too.
    private func apart<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        let outcome = Outcome<R>()
        Thread.detachNewThread {
            // The C library's headers declare it as an extension, which Swift does not see.
            typealias Unshare = @convention(c) (Int32) -> Int32
            outcome.result.withLock {
                $0 = Result {
                    // CLONE_NEWNET
                    guard let symbol = dlsym(nil, "unshare"),
                        unsafeBitCast(symbol, to: Unshare.self)(0x4000_0000) == 0
                    else { throw IOFailure(.system(errno), .open) }
                    return try body()
                }
            }
        }
        _ = try await eventually(outcome.result.withLock { $0 != nil }) { $0 }
        return try #require(outcome.result.withLock { $0 }).get()
    }

    private final class Outcome<R: Sendable>: Sendable {
        let result = Lock<Result<R, any Error>?>(nil)
    }

    private func ip(_ commands: String...) {
        for command in commands { #expect(Namespaces.run("ip \(command)"), "\(command)") }
    }

    private func remove() { ip("addr del 10.8.0.1/24 dev v0") }

    @Test("A download goes on") func download() async throws {
        try await with(answer: { _ in HTTP3Answer(body: Self.large) }) { session, url in
            let bytes = try await session.load(Request(url: url)) { _, body in
                var bytes: [UInt8] = []
                var hasMoved = false
                for try await chunk in body {
                    bytes += Array(chunk)
                    guard bytes.count > Self.large.count / 8, !hasMoved else { continue }
                    hasMoved = true
                    remove()
                }
                return bytes
            }
            #expect(bytes == Self.large)
        }
        print("namespace proved: download")
    }

    @Test("An upload goes on") func upload() async throws {
        let answer: @Sendable (HTTP3Received) -> HTTP3Answer = {
            HTTP3Answer(body: Array(($0.body == Self.large ? "whole" : "other").utf8))
        }
        try await with(answer: answer) { session, url in
            let body = RequestBody.stream(of: Self.large) { remove() }
            let (data, _) = try await session.data(for: Request(url: url, method: .post, body: body))
            #expect(String(decoding: data, as: UTF8.self) == "whole")
        }
        print("namespace proved: upload")
    }
}

#endif
