// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// Odd durations and limits: an error or a sane value, and never the end of the process.
@Suite(.timeLimit(.minutes(4)))
struct OddDurationRows {
    /// `Duration.components` ends the process for the ones beyond `Int64.max` seconds.
    private static let excessive: [Duration] = [
        .seconds(Int64.max / 1_000_000_000), .seconds(Int64.max), .seconds(Int64.max) * 10,
    ]
    private static let none: [Duration] = [.zero, .nanoseconds(-1), .seconds(-1), .seconds(Int64.min) * 10]

    private func outcome(
        _ origin: HTTPTestServer, _ path: String = "/", _ change: (inout Configuration, inout Request) -> Void
    ) async -> String {
        var configuration = Configuration.ephemeral
        var request = Request(url: origin.url(path))
        change(&configuration, &request)
        let session = Session(configuration)
        defer { session.invalidateAndCancel() }
        do throws(LoadError) { return "\(try await session.data(for: request).1.status.code)" } catch {
            return error.reason.name
        }
    }

    @Test("excessive durations are no limit")
    func excessive() async throws {
        try await withHTTPTestServer(answering: "in") { origin in
            for limit in Self.excessive {
                #expect(
                    await outcome(origin) { configuration, request in
                        (configuration.timeouts.idle, configuration.timeouts.resource) = (limit, limit)
                        (configuration.timeouts.connect, configuration.connections.idleLifetime) = (limit, limit)
                        (configuration.connections.http2PingInterval, configuration.connections.http2PingTimeout) = (
                            limit, limit
                        )
                        configuration.timeouts.expectContinue = limit
                        (request.idleTimeout, request.resourceTimeout, request.connectTimeout) = (limit, limit, limit)
                        request.body = .data(Data(count: 10))
                        request.method = .put
                    } == "200")
            }
        }
    }

    @Test("durations of zero or less are over at once")
    func negative() async throws {
        try await withHTTPTestServer(answering: "in") { origin in
            for limit in Self.none {
                #expect(await outcome(origin) { $1.resourceTimeout = limit } == "resourceTimeout")
                #expect(
                    await outcome(origin) { configuration, _ in configuration.connections.idleLifetime = limit }
                        == "200")
            }
        }
    }

    @Test("a retry policy takes any duration and any number of attempts")
    func retries() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .status(.serviceUnavailable, headers: ["Retry-After": "99999999999999999999"]) }
            for delay in Self.excessive + Self.none {
                for attempts in [Int.min, 0, 2] {
                    var policy = RetryPolicy(maximumAttempts: attempts)
                    policy.statuses = [.serviceUnavailable]
                    policy.backoff = .exponential(base: delay, cap: delay)
                    policy.maximumRetryAfter = delay
                    policy.maximumDuration = delay
                    #expect(
                        await outcome(origin) { configuration, _ in configuration.retries.policy = policy } == "503")
                }
            }
        }
    }

    @Test("decisions, streams and WebSockets take any duration")
    func callers() async throws {
        try await withHTTPTestServer(answering: "in") { origin in
            origin.webSocket("/echo", .echo)
            let address = try #require(URL(string: "ws://127.0.0.1:\(origin.url().port ?? 0)/echo"))
            for limit in Self.excessive {
                var decisions = Decisions()
                decisions.response = Decision(timeout: limit, fallback: .cancel) { _ in .allow }
                let session = Session(.ephemeral, decisions: decisions)
                #expect(try await session.data(from: origin.url()).0 == Data("in".utf8))
                var options = WebSocketOptions()
                (options.pingInterval, options.closeTimeout, options.maximumMessageSize) = (limit, limit, .max)
                let socket = session.webSocketTask(address, options: options)
                socket.resume()
                try await socket.send(.text("in"))
                _ = try await socket.ping(timeout: limit)
                #expect(try await socket.receive() == .text("in"))
                _ = await socket.close()
                let stream = session.streamTask(host: "127.0.0.1", port: origin.url().port ?? 0)
                stream.resume()
                try await stream.write(Data("GET / HTTP/1.0\r\n\r\n".utf8), timeout: limit)
                #expect(try await stream.read(atLeast: 1, atMost: .max, timeout: limit).0.count > 0)
                session.invalidateAndCancel()
            }
        }
    }
}
