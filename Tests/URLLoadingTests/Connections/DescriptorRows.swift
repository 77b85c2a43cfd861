// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// When file descriptors run out, idle connections of any protocol are closed for new ones, the oldest first.
@Suite(.timeLimit(.minutes(4))) struct DescriptorRows {
    /// The number of descriptors available to the connections of a test.
    private final class Descriptors: Sendable {
        private let most: Int
        private let made = Lock<[SocketTransport]>([])
        private let connecting = Lock(0)

        init(_ most: Int) { self.most = most }

        private var open: [SocketTransport] {
            made.withLock {
                $0.filter { transport in (try? transport.write(UnsafeRawBufferPointer(start: nil, count: 0))) != nil }
            }
        }
        /// Returns the ports of the open connections, in the order in which they were created.
        var ports: [Int] { open.compactMap(\.peer).map { Int($0.port) } }

        func give(to configuration: inout Configuration) {
            configuration.dial = { (origin, token) throws(IOFailure) in
                // A socket takes its descriptor before it is connected.
                let mayConnect = self.connecting.withLock { connecting in
                    guard self.open.count + connecting < self.most else { return false }
                    connecting += 1
                    return true
                }
                guard mayConnect else { throw IOFailure(.system(EMFILE), .connect) }
                defer { self.connecting.withLock { $0 -= 1 } }
                await Task.yield()
                let transport = try await SocketTransport.connect(to: .ipv4((127, 0, 0, 1), port: origin.port), token)
                self.made.withLock { $0.append(transport) }
                return transport
            }
        }
    }

    private func withOrigins(_ count: Int, _ use: ([HTTPTestServer]) async throws -> Void) async throws {
        let origins = try (0..<count).map { _ in try HTTPTestServer() }
        for origin in origins {
            origin.route("/") { _ in .ok("here") }
            origin.start()
        }
        let result: Result<Void, any Error>
        do { result = .success(try await use(origins)) } catch { result = .failure(error) }
        for origin in origins { await origin.stop() }
        try result.get()
    }

    /// A session that has this many descriptors for its connections.
    private func withSession(
        _ count: Int, _ base: Configuration = .ephemeral, _ use: (Session, Descriptors) async throws -> Void
    ) async throws {
        let descriptors = Descriptors(count)
        var configuration = base
        descriptors.give(to: &configuration)
        let session = Session(configuration)
        try await use(session, descriptors)
        await expectEmpty(session)
    }

    @Test("the connection idle for longest is closed, and newer ones stay")
    func oldest() async throws {
        try await withOrigins(4) { origins in
            try await withSession(2) { session, descriptors in
                for origin in origins { try await session.expect(origin.url(), "here") }
                #expect(descriptors.ports == origins.suffix(2).map { Int($0.port) })
                // The last but one is the oldest now.
                try await session.expect(origins[0].url(), "here")
                #expect(descriptors.ports == [origins[3], origins[0]].map { Int($0.port) })
            }
        }
    }

    @Test("without an idle connection the load waits for one that is in use") func inUse() async throws {
        try await withOrigins(2) { origins in
            try await withSession(1) { session, _ in
                let gate = Latch()
                origins[0].route("/slow") { _ in
                    await gate.wait()
                    return .ok("slow")
                }
                async let slow = session.text(origins[0].url("/slow"))
                try await origins[0].wait { $0.requests == 1 }
                async let other = session.text(origins[1].url())
                let cancelled = RunningLoad(session, Request(url: origins[1].url("/cancelled")))
                try await Task.sleep(for: .milliseconds(30))
                cancelled.task.cancel()
                #expect(await cancelled.reason == .cancelled)
                #expect(origins[1].counts.accepted == 0)
                gate.open()
                #expect(try await (slow, other) == ("slow", "here"))
            }
        }
    }

    @Test("a session without connections fails at once") func noConnection() async throws {
        try await withOrigins(1) { origins in
            try await withSession(0) { session, _ in
                let error = await failure(.cannotConnect, .system, .connecting) {
                    try await session.data(from: origins[0].url())
                }
                #expect(error?.detail?.contains("open files") == true)
            }
        }
    }

    @Test("500 loads, 64 at a time, succeed with eight descriptors") func many() async throws {
        try await withOrigins(3) { origins in
            try await withSession(8, .ephemeral) { session, _ in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<500 {
                        if number >= 64 { try await group.next() }
                        group.addTask { try await session.expect(origins[number % 3].url(), "here") }
                    }
                    try await group.waitForAll()
                }
            }
        }
    }

    @Test("an idle HTTP/2 connection gives up its descriptor, too")
    func http2() async throws {
        try await withHTTP2TestServer { one in
            try await withHTTP2TestServer { two in
                try await withSession(1, .http2) { session, descriptors in
                    for server in [one, two, one] {
                        server.route("/") { _ in .ok("here") }
                        try await session.expect(server.url(), "here")
                    }
                    #expect(descriptors.ports == [one.url().port ?? 0])
                }
            }
        }
    }

    @Test("an idle FTP control connection gives up its descriptor, and gets one")
    func ftp() async throws {
        try await withFTPTestServer { server in
            server.put("a", Data("file".utf8))
            try await withOrigins(2) { origins in
                try await withSession(2) { session, descriptors in
                    for _ in 0..<2 {
                        // One descriptor for the control connection, and one for the data.
                        try await session.expect(server.url("/a"), "file")
                        for origin in origins { try await session.expect(origin.url(), "here") }
                        #expect(descriptors.ports == origins.map { Int($0.port) })
                    }
                }
            }
        }
    }
}
