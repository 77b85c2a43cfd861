// SPDX-License-Identifier: Apache-2.0

// The socket of a session's statistics, as `urlload top` reads it.

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

@Suite(.timeLimit(.minutes(4)))
struct StatisticsSocketTests {
    private func withPath(_ use: nonisolated(nonsending) (String) async throws -> Void) async throws {
        let path = FileManager.default.temporaryDirectory.path() + "/top-\(UInt64.random(in: 0 ... .max))"
        defer { unlink(path) }
        try await use(path)
    }

    /// The program closed the connection.
    private struct SentAway: Error {}

    /// Reads the first snapshot.
    private func read(_ path: String) async throws -> SessionSnapshot {
        let socket = try LocalSocket.connect(to: path)
        defer { socket.close() }
        var line: [UInt8] = []
        while line.last != UInt8(ascii: "\n") {
            let bytes = try await socket.receive(atMost: 4096, StopToken()).bytes
            // Not `#require`, which records an issue also where the caller tries again.
            if bytes.isEmpty { throw SentAway() }
            line += bytes
        }
        return try JSONDecoder().decode(SessionSnapshot.self, from: Data(line))
    }

    private func isSocket(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }

    @Test("OpenMetrics text has the connections and the traffic of each host, counted from the first call on")
    func openMetrics() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            try await withSession(.ephemeral) { session in
                _ = try await session.data(from: origin.url())
                #expect(session.openMetrics().hasSuffix("\n# EOF\n"))
                _ = try await session.data(from: origin.url())
                let lines = session.openMetrics().split(separator: "\n").map(String.init)
                let host = "\(origin.url())".trimmingSlash
                for line in [
                    "# TYPE urlloading_loads gauge", "urlloading_loads 0",
                    "urlloading_connections{host=\"\(host)\",state=\"idle\"} 1",
                    "# UNIT urlloading_received_bytes bytes", "urlloading_received_bytes_total{host=\"\(host)\"} 5",
                    "urlloading_finished_loads_total{host=\"\(host)\"} 1",
                    "urlloading_finished_loads_total{host=\"\"} 0",
                ] { #expect(lines.contains(line), "\(line): \(lines)") }
            }
        }
    }

    @Test("labels of OpenMetrics text are escaped, and hosts that are left out are counted without a name")
    func openMetricsText() {
        var snapshot = SessionSnapshot(process: 1, moment: 0, loads: 2)
        var host = SessionSnapshot.Host(name: "a\"b\\c\nd")
        host.traffic.finished = 3
        snapshot.hosts = [host]
        snapshot.total.finished = 5
        let text = OpenMetricsText(snapshot).text
        #expect(text.contains("urlloading_finished_loads_total{host=\"a\\\"b\\\\c\\nd\"} 3\n"))
        #expect(text.contains("urlloading_finished_loads_total{host=\"\"} 2\n"))
    }

    @Test("the text of several sessions has each family once, and its samples name their session")
    func severalSessions() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            try await withSession(.ephemeral) { first in
                try await withSession(.ephemeral) { second in
                    let sessions = ["b": second, "a": first]
                    _ = Session.openMetrics(of: sessions)
                    _ = try await first.data(from: origin.url())
                    let text = Session.openMetrics(of: sessions)
                    let host = "\(origin.url())".trimmingSlash
                    let name = "urlloading_finished_loads"
                    #expect(
                        text.contains(
                            """
                            # TYPE \(name) counter
                            # HELP \(name) Loads that got their response.
                            \(name)_total{session="a",host="\(host)"} 1
                            \(name)_total{session="a",host=""} 0
                            \(name)_total{session="b",host=""} 0
                            # TYPE
                            """), "\(text)")
                    #expect(text.hasSuffix("\n# EOF\n"))
                }
            }
        }
    }

    @Test("a snapshot has the connections, the queue and the traffic of each host")
    func snapshot() async throws {
        try await withHTTPTestServer { origin in
            try await withPath { path in
                // The responses wait for its end.
                let (gate, opener) = AsyncStream.makeStream(of: Void.self)
                origin.route("/quick") { _ in .ok("hello") }
                origin.route("/slow") { _ in
                    for await _ in gate {}
                    return .ok("slow")
                }
                try await withSession(.ephemeral.with { $0.connections.maximumPerHost = 1 }) { session in
                    try session.exposeStatistics(at: path)
                    _ = try await session.data(from: origin.url("/quick"))
                    var host = try #require(try await read(path).hosts.first)
                    #expect(host.name == "\(origin.url())".trimmingSlash && host.idle == 1 && host.active == 0)
                    #expect(host.traffic.finished == 1 && host.traffic.bytesReceived == 5)

                    async let first = session.data(from: origin.url("/slow"))
                    async let second = session.data(from: origin.url("/slow"))
                    // A program that has left is noticed soon, not at once: many in a row may be too many.
                    repeat { if let now = try? await read(path).hosts.first { host = now } } while host.waiting == 0
                    #expect(host.active == 1 && host.idle == 0 && host.waiting == 1)
                    #expect(try await read(path).loads == 2)
                    opener.finish()
                    _ = try await (first, second)
                    await #expect(throws: LoadError.self) {
                        try await session.data(from: URL(string: "http://127.0.0.1:1/")!)
                    }
                    let total = try await read(path).total
                    #expect(total.finished == 3 && total.failed == 1 && total.bytesReceived == 13)
                }
            }
        }
    }

    @Test("a snapshot counts the rules that responses of a host broke, by kind")
    func tolerated() async throws {
        try await withHTTPTestServer { origin in
            try await withPath { path in
                origin.route("/broken") { _ in .raw([.bytes(Array("HTTP/1.1 200 OK\nContent-Length: 0\n\n".utf8))]) }
                origin.route("/sound") { _ in .ok("") }
                try await withSession(.ephemeral) { session in
                    try session.exposeStatistics(at: path)
                    for place in ["/broken", "/sound", "/broken"] {
                        _ = try await session.data(from: origin.url(place))
                    }
                    let now = try await read(path)
                    #expect(now.total.tolerated == ["bareLineFeed": 2])
                    #expect(now.hosts.first?.traffic.tolerated == ["bareLineFeed": 2])
                }
            }
        }
    }

    @Test("a snapshot of an earlier version has no such counts")
    func earlierVersion() throws {
        let text = #"{"bytesSent":1,"bytesReceived":2,"finished":3,"failed":4}"#
        let traffic = try JSONDecoder().decode(SessionSnapshot.Traffic.self, from: Data(text.utf8))
        #expect(traffic.failed == 4 && traffic.tolerated.isEmpty)
    }

    @Test("the socket belongs to this user alone, and ends with its session or earlier")
    func life() async throws {
        try await withPath { path in
            try await withSession(.ephemeral) { session in
                let socket = try session.exposeStatistics(at: path)
                var status = stat()
                #expect(lstat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
                #expect(throws: LoadError.self) { try session.exposeStatistics(at: path) }
                socket.close()
                socket.close()
                #expect(!isSocket(path))
                try session.exposeStatistics(at: path)
                _ = try await read(path)
            }
            #expect(!isSocket(path))
        }
    }

    @Test("a session that has ended opens none; a released session closes its own")
    func ended() async throws {
        try await withPath { path in
            let session = Session(.ephemeral)
            await expectEmpty(session)
            #expect(throws: LoadError.self) { try session.exposeStatistics(at: path) }
            #expect(!isSocket(path))
            func expose() throws { try Session(.ephemeral).exposeStatistics(at: path) }
            try expose()
            #expect(!isSocket(path))
        }
    }

    @Test("a socket that a killed program left is replaced; another file is not")
    func abandoned() async throws {
        try await withPath { path in
            let session = Session(.ephemeral)
            defer { session.invalidateAndCancel() }
            // A socket stays when its descriptor is closed without more.
            _ = try LocalListener(path: path)
            #expect(isSocket(path))
            try session.exposeStatistics(at: path).close()
            try Data("kept".utf8).write(to: URL(filePath: path))
            #expect(throws: LoadError.self) { try session.exposeStatistics(at: path) }
            #expect(try Data(contentsOf: URL(filePath: path)) == Data("kept".utf8))
            #expect(throws: LoadError.self) {
                try session.exposeStatistics(at: "/tmp/" + String(repeating: "x", count: 200))
            }
        }
    }

    @Test("eight programs are served, the ninth is sent away until one leaves")
    func bounded() async throws {
        try await withPath { path in
            try await withSession(.ephemeral) { session in
                try session.exposeStatistics(at: path)
                var sockets: [LocalSocket] = []
                for _ in 0..<8 {
                    let socket = try LocalSocket.connect(to: path)
                    #expect(try await !socket.receive(atMost: 4096, StopToken()).bytes.isEmpty)
                    sockets.append(socket)
                }
                let ninth = try LocalSocket.connect(to: path)
                #expect(try await ninth.receive(atMost: 4096, StopToken()).bytes.isEmpty)
                sockets.removeLast().close()
                // The place is free when the next snapshot finds the program gone.
                while (try? await read(path)) == nil { try await Task.sleep(for: .milliseconds(100)) }
                for socket in sockets { socket.close() }
            }
        }
    }
}

extension String {
    fileprivate var trimmingSlash: String { hasSuffix("/") ? String(dropLast()) : self }
}
