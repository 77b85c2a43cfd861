// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestChildren
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingAgent

/// Checklist 149, security 79: servers that change, or are gone, in the middle of a background download.
@Suite(.timeLimit(.minutes(2))) struct OriginRows {
    /// Interrupts a download after 300,000 bytes, and lets the server answer in another way from then on.
    /// - Returns: the downloaded file, and the requests after the interruption.
    private func interrupted(
        then answer: @escaping @Sendable (HTTPTestServer.RecordedRequest) -> HTTPTestServer.Response
    ) async throws -> (content: [UInt8]?, requests: [HTTPTestServer.RecordedRequest]) {
        var result: (content: [UInt8]?, requests: [HTTPTestServer.RecordedRequest]) = (nil, [])
        try await SurvivalRows.with(stallsAfter: 300_000) { rig, origin in
            let place = rig.folder + "/film.bin"
            // The stalled connection ends with the idle timeout. On a busy machine that may also end an attempt whose
            // response the agent had no time to read, and the next one begins from zero.
            let program = try await rig.attach { $0.idleTimeout = .seconds(10) }
            try await program.download(origin.url("/film"), to: place)
            _ = try await program.wait { $0.received == 300_000 }
            let sent = origin.requests.count
            origin.route("/film") { answer($0) }
            let done = try await program.wait { $0.state == .finished }
            guard case .file? = done.outcome else { return _ = Issue.record("\(done)") }
            result = (Film.of(place), Array(origin.requests.dropFirst(sent)))
            origin.releaseStalls()
        }
        return result
    }

    @Test("An interrupted download asks for the rest only (checklist 149)")
    func rest() async throws {
        let (content, requests) = try await interrupted { Film.answer($0) }
        #expect(content == Film.content)
        #expect(requests.map { $0.headers[.range] } == ["bytes=300000-"])
    }

    @Test("A file that has changed on the server is downloaded anew, and never joined with the old one (security 79)")
    func changed() async throws {
        let other = [UInt8](Film.content.reversed())
        let (content, requests) = try await interrupted { Film.answer($0, "\"two\"", content: other) }
        #expect(content == other)
        #expect(requests.first?.headers[.ifRange] == "\"one\"")
    }

    @Test("A server that answers a range request with the whole file delivers the whole file (security 79)")
    func wholeFile() async throws {
        let (content, requests) = try await interrupted { _ in
            .ok(.bytes(Film.content), headers: [.contentType: "application/octet-stream", .etag: "\"one\""])
        }
        #expect(content == Film.content)
        #expect(requests.first?.headers[.range] == "bytes=300000-")
    }

    @Test("503 with Retry-After is waited for, before the first byte and in the middle (checklist 149)")
    func busy() async throws {
        let busy = HTTPTestServer.Response.status(.serviceUnavailable, headers: [.retryAfter: "1"])
        let count = Atomic(0)
        let (content, requests) = try await interrupted { request in
            count.add(1, ordering: .relaxed).newValue == 1 ? busy : Film.answer(request)
        }
        #expect(content == Film.content)
        #expect(requests.map { $0.headers[.range] } == ["bytes=300000-", "bytes=300000-"])

        try await SurvivalRows.with { rig, origin in
            let count = Atomic(0)
            origin.route("/busy") { request in
                count.add(1, ordering: .relaxed).newValue == 1 ? busy : Film.answer(request)
            }
            let program = try await rig.attach()
            try await program.download(origin.url("/busy"))
            let waiting = try await program.wait { $0.state == .waiting || $0.state == .finished }
            // A busy machine may show the end first.
            #expect(waiting.state == .finished || waiting.reason?.hasPrefix("retryAfter") == true)
            let done = try await program.wait { $0.state == .finished }
            #expect(done.attempts == 2)
            guard case .file(let path, _, _)? = done.outcome else { return _ = Issue.record("\(done)") }
            #expect(Film.of(path) == Film.content)
        }
    }

    private static let python = "/usr/bin/python3"

    @Test(
        "A server that is killed in mid-body and started again sends the rest only (checklist 149)",
        .enabled(if: access(OriginRows.python, X_OK) == 0))
    func restarted() async throws {
        let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Systemd/origin.py").path
        try await SurvivalRows.with { rig, origin in
            // A port that was free a moment ago.
            let port = try await withHTTPTestServer { String($0.port) }
            func start(_ log: String) throws -> ChildProcess {
                try ChildProcess(Self.python, [script, port], files: .init(output: rig.folder + log))
            }
            let first = try start("/first")
            let place = rig.folder + "/film.bin"
            let program = try await rig.attach()
            // The first server sends one half and waits, so that it is killed in mid-body on a busy machine, too.
            let url = try #require(URL(string: "http://127.0.0.1:\(port)/stalls"))
            try await program.download(url, to: place)
            _ = try await program.wait { $0.received >= 20_000 }
            first.send(SIGKILL)
            _ = await first.wait()
            _ = try await program.wait { $0.state == .waiting && $0.attempts >= 2 }
            let second = try start("/second")
            let done = try await program.wait { $0.state == .finished }
            #expect(Film.of(place) == Array(Film.content.prefix(200_000)), "\(done)")
            let ranges = try FileReader.text(rig.folder + "/second").split(separator: "\n")
            let offsets = ranges.map { Int($0.dropFirst(6).dropLast()) ?? 0 }
            #expect(offsets.count == 1 && offsets.allSatisfy { $0 >= 20_000 }, "\(ranges)")
            second.send(SIGKILL)
            _ = await second.wait()
        }
    }
}
