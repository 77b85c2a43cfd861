// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Files in parts over HTTP/2, where the parts are streams of one connection; and servers that lie there.
@Suite(.timeLimit(.minutes(4)))
struct ParallelHTTP2Rows {
    private struct Rig {
        let folder: TemporaryFolder
        let server: HTTP2TestServer
        let session: Session
        /// The server's clock.
        let clock: ManualClock
        let options: DownloadOptions
        var url: URL { server.url("/file") }

        func task() -> LoadTask<DownloadedFile> { session.downloadTask(Request(url: url), options: options).resumed() }

        /// Waits for this many requests for ranges, and lets the first response go on.
        func goOn(after count: Int) async throws {
            try await server.wait { $0.requests >= count + 1 }
            clock.advance(by: .seconds(1))
        }

        func expectComplete(sourceLocation: SourceLocation = #_sourceLocation) throws {
            #expect(folder.names == ["file"], sourceLocation: sourceLocation)
            #expect(try folder.bytes("file") == ParallelRows.content, sourceLocation: sourceLocation)
        }
    }

    /// The first response: its first bytes, a pause, the rest.
    private static func whole() -> HTTPTestServer.Response {
        .ok(
            .chunks([
                .bytes(Array(ParallelRows.content.prefix(ParallelRows.first))), .pause(.seconds(1)),
                .bytes(Array(ParallelRows.content.dropFirst(ParallelRows.first))),
            ]), headers: [.etag: "\"one\"", .contentLength: "\(ParallelRows.content.count)"])
    }

    private static func with(
        _ count: Int = 4, _ change: (inout Configuration) -> Void = { _ in },
        answer: @escaping ParallelRows.Answer = ParallelRows.part, _ use: (Rig) async throws -> Void
    ) async throws {
        let (clock, folder) = (ManualClock(), try TemporaryFolder())
        var setting = HTTP2TestServer.Configuration()
        setting.clock = clock
        try await withHTTP2TestServer(setting) { server in
            server.route("/file") { request in ParallelRows.range(request).map { answer(request, $0) } ?? whole() }
            var options = DownloadOptions(destination: folder.url("file"))
            options.parallelRanges = ParallelRanges(count, minimumPartSize: 64 << 10)
            var configuration = Configuration.http2
            configuration.temporaryDirectory = URL(filePath: folder.path)
            change(&configuration)
            try await withSession(configuration) { session in
                try await use(Rig(folder: folder, server: server, session: session, clock: clock, options: options))
            }
            #expect(server.failures.isEmpty)
        }
    }

    @Test("the parts are streams of one connection") func streams() async throws {
        try await Self.with { rig in
            let task = rig.task()
            try await rig.goOn(after: 3)
            _ = try await task.value
            #expect(rig.server.counts.accepted == 1)
            #expect(rig.server.requests.dropFirst().allSatisfy { $0.headers[.ifRange] == "\"one\"" })
            try rig.expectComplete()
        }
    }

    @Test(
        "a response that is not the requested part is not written, and the first stream loads the file",
        arguments: ParallelRows.Lie.allCases)
    func lies(_ lie: ParallelRows.Lie) async throws {
        try await Self.with(answer: { ParallelRows.lie(lie, $0, $1) }) { rig in
            let task = rig.task()
            try await rig.goOn(after: 3)
            _ = try await task.value
            try rig.expectComplete()
        }
    }

    @Test("one lie among right parts costs no more than its request", arguments: ParallelRows.Lie.allCases)
    func oneLie(_ lie: ParallelRows.Lie) async throws {
        let once = ParallelRows.Once()
        try await Self.with(answer: { request, range in
            once.take() ? ParallelRows.lie(lie, request, range) : ParallelRows.part(request, range)
        }) { rig in
            let task = rig.task()
            try await rig.goOn(after: 3)
            do {
                _ = try await task.value
            } catch {
                // The refusal came when the first stream had brought its part, and no request may follow for an hour.
                #expect(lie == .tooMany && (error as? LoadError)?.resumeToken != nil, "\(error)")
                return
            }
            try rig.expectComplete()
        }
    }

    @Test("a part with more bytes than its range ends the download with an error, and no token") func tooLong()
        async throws
    {
        try await Self.with(answer: { request, range in
            var response = ParallelRows.part(request, range)
            response.body = .chunks([.bytes(Array(ParallelRows.content[range])), "and more"])
            return response
        }) { rig in
            let task = rig.task()
            try await rig.server.wait { $0.requests >= 4 }
            let error = await failure(.rangeNotSatisfiable) { try await task.value }
            #expect(error?.resumeToken == nil)
            try await eventuallyFiles(rig.folder.names) { $0.isEmpty }
        }
    }

    @Test("a part that stalls is taken over by another stream") func stall() async throws {
        let (time, once) = (ManualClock(), ParallelRows.Once())
        try await Self.with(
            3,
            {
                $0.use(time)
                $0.timeouts.idle = nil
            }
        ) { request, range in
            guard once.take() else { return ParallelRows.part(request, range) }
            var response = ParallelRows.part(request, range)
            response.headers[.contentLength] = "\(range.count)"
            response.body = .chunks([.bytes(Array(ParallelRows.content[range].prefix(10_000))), .pause(.seconds(9))])
            return response
        } _: { rig in
            let task = rig.task()
            try await rig.goOn(after: 2)
            // The others divide what is left until too little is left, and wait.
            try await time.untilSleeping(2)
            try await time.untilWaiting()
            time.advance(by: .seconds(11))
            _ = try await task.value
            try rig.expectComplete()
        }
    }

    @Test("a redirect of one part to another host is not followed", arguments: [Status.found, .permanentRedirect])
    func redirect(_ status: Status) async throws {
        let once = ParallelRows.Once()
        try await withHTTPTestServer { other in
            other.route("/*") { request in ParallelRows.part(request, ParallelRows.range(request) ?? 0..<1) }
            let place = other.url("/file").absoluteString
            try await Self.with(answer: { request, range in
                once.take() ? .redirect(place, status: status) : ParallelRows.part(request, range)
            }) { rig in
                let task = rig.task()
                try await rig.goOn(after: 3)
                _ = try await task.value
                #expect(other.counts.requests == 0)
                try rig.expectComplete()
            }
        }
    }

    @Test("a stream that is reset, or refused, leaves its bytes to the others") func connection() async throws {
        let once = ParallelRows.Once()
        try await Self.with(answer: { request, range in
            guard once.take() else { return ParallelRows.part(request, range) }
            // RST_STREAM with INTERNAL_ERROR.
            return .raw([.bytes(HTTP2Frame.resetStream(2 * request.exchange - 1, .internalError).bytes)], then: .stall)
        }) { rig in
            let task = rig.task()
            try await rig.goOn(after: 3)
            _ = try await task.value
            try rig.expectComplete()
        }
    }
}
