// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// A server answers before it has the whole request, and then ends the stream or the connection (RFC 9113 8.1, 6.8).
@Suite(.timeLimit(.minutes(4)))
struct HTTP2EarlyAnswerTests {
    /// The frames that the server sends after its response.
    enum Ending: String, Sendable, CaseIterable {
        case resetWithoutError, cancel, goAway, goAwayBelow, goAwayWithError, both

        func act(_ peer: HTTP2Peer, _ stream: Int) async throws {
            switch self {
            case .resetWithoutError: try await peer.reset(stream, .noError)
            case .cancel: try await peer.reset(stream, .cancel)
            case .goAway: try await peer.goAway(last: stream)
            case .goAwayBelow: try await peer.goAway(last: 0)
            case .goAwayWithError: try await peer.goAway(last: stream, .internalError)
            case .both: try await peer.send(.resetStream(stream, .noError), .goAway(last: stream))
            }
        }

        var leavesConnection: Bool { self == .resetWithoutError || self == .cancel }
    }

    enum Source: Sendable, CaseIterable {
        case data, stream, file

        /// More than the window that a server gives at first.
        func body(_ folder: TemporaryFolder) throws -> RequestBody {
            switch self {
            case .data: return .data(Data(bytes(1_000_000)))
            case .stream: return .stream { AsyncStream<[UInt8]>(unfolding: { [UInt8](repeating: 1, count: 10_000) }) }
            case .file:
                try Data(bytes(1_000_000)).write(to: folder.url("body"))
                return .file(folder.url("body"))
            }
        }
    }

    /// Receives a request up to the first bytes of its body.
    private static func beginUpload(_ peer: HTTP2Peer) async throws -> HTTP2Peer.Request {
        let request = try await peer.acceptRequest()
        _ = try await peer.expect(.data, stream: request.stream)
        return request
    }

    @Test(
        "an early response is delivered whole, and the connection stays usable if possible", arguments: Ending.allCases,
        Source.allCases)
    func wholeAnswer(_ ending: Ending, _ source: Source) async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let body = try source.body(folder)
        for status in [Status.ok, .contentTooLarge] {
            try await withHTTP2 { server, session in
                server.route("*") { _ in .ok("next") }
                server.script(onConnection: 1) { peer in
                    let first = try await Self.beginUpload(peer)
                    try await peer.respond(to: first.stream, status, body: Array("early".utf8))
                    try await ending.act(peer, first.stream)
                    while let next = try? await request(behind: first.stream, peer) {
                        try await peer.respond(to: next, body: Array("next".utf8))
                    }
                }
                for round in 1...3 {
                    if round == 1 {
                        let (data, response) = try await session.data(
                            for: Request(url: server.url("/"), method: .post, body: body))
                        #expect(String(decoding: data, as: UTF8.self) == "early" && response.http?.status == status)
                    } else {
                        try await session.expect(server.url("/next"), "next")
                    }
                }
                #expect(server.counts.accepted == (ending.leavesConnection ? 1 : 2))
            }
        }
    }

    /// The number of the next stream; late frames of the previous one are ignored.
    private func request(behind stream: Int, _ peer: HTTP2Peer) async throws -> Int {
        while true {
            let frame = try await peer.receive()
            if frame.kind == .headers { return frame.stream }
            try await peer.answerControl(frame)
        }
    }

    @Test("a truncated early response fails once, without a retry", arguments: Ending.allCases, Source.allCases)
    func cutAnswer(_ ending: Ending, _ source: Source) async throws {
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        let body = try source.body(folder)
        try await withHTTP2 { server, session in
            server.route("*") { _ in .ok("next") }
            server.script(onConnection: 1) { peer in
                let first = try await Self.beginUpload(peer)
                try await peer.respond(to: first.stream, body: Array("ear".utf8), endStream: false)
                try await ending.act(peer, first.stream)
                peer.finish()
                await peer.untilClosed()
            }
            let error = await #expect(throws: LoadError.self) {
                try await session.data(for: Request(url: server.url("/"), method: .post, body: body))
            }
            #expect(error?.party == .remote && error?.phase == .receiving, "\(String(describing: error))")
            #expect(server.counts.accepted == 1)
            try await session.expect(server.url("/next"), "next")
        }
    }
}
