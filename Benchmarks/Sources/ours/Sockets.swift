// SPDX-License-Identifier: Apache-2.0

// WebSockets, compared with GETs of the same bytes: OURS_SHAPE=echo sends a message of 1 KiB and awaits its echo,
// OURS_SHAPE=messages receives messages of 16 MiB, OURS_SHAPE=rest keeps sockets open that receive one message a
// second.

import BenchMeasure
import FoundationEssentials
import Synchronization
import URLLoading

extension Ours {
    static let kilobyte = Data(repeating: 1, count: 1024)

    /// Runs one phase: as many sockets as connections, each opened outside of the measured region if possible.
    func converse(_ url: String, _ requests: Int, _ warm: Int) async throws {
        var options = WebSocketOptions()
        options.maximumMessageSize = 64 << 20
        let sockets = (0..<connections).map { _ in session.webSocketTask(URL(string: url)!, options: options) }
        if shape == .rest { bench_start() }
        // Handshakes are limited, because the server's accept queue is finite.
        for socket in sockets {
            socket.resume()
            _ = try await socket.opened
        }
        if shape == .rest { return try await rest(sockets) }
        if warm > 0 { _ = try await converse(sockets, warm) }
        bench_start()
        let bytes = try await converse(sockets, requests)
        bench_stop(requests, bytes)
    }

    private func converse(_ sockets: [WebSocketTask], _ requests: Int) async throws -> Int64 {
        let countdown = Countdown(requests)
        let question = WebSocketMessage.data(shape == .messages ? Data([1]) : Self.kilobyte)
        return try await withThrowingTaskGroup(of: Int64.self) { group in
            for socket in sockets {
                group.addTask {
                    var bytes: Int64 = 0
                    while countdown.next() != nil {
                        try await socket.send(question)
                        bytes += Int64(try await socket.receive().count)
                    }
                    return bytes
                }
            }
            return try await group.reduce(0, +)
        }
    }

    /// Keeps one receiver on each socket; for this many seconds one message a second is sent to each socket and echoed.
    private static let seconds = 10

    private func rest(_ sockets: [WebSocketTask]) async throws {
        let heard = Tally()
        let receivers = Task {
            await withTaskGroup(of: Void.self) { group in
                for socket in sockets {
                    group.addTask {
                        while let message = try? await socket.receive() {
                            heard.bytes.add(message.count, ordering: .relaxed)
                        }
                    }
                }
            }
        }
        let message = WebSocketMessage.data(Self.kilobyte)
        let clock = ContinuousClock()
        let began = clock.now
        // Sends to groups of sockets, a hundred times a second.
        let group = max(1, sockets.count / 100)
        for tick in 0..<Self.seconds * 100 {
            try await clock.sleep(until: began + .milliseconds(tick * 10))
            for index in 0..<group { try await sockets[(tick * group + index) % sockets.count].send(message) }
        }
        while heard.bytes.load(ordering: .relaxed) < Self.seconds * 100 * group * 1024 {
            try await clock.sleep(for: .milliseconds(10))
        }
        bench_in_flight()
        bench_stop(sockets.count, Int64(sockets.count * 1024))
        for socket in sockets { socket.cancel() }
        await receivers.value
    }
}

private final class Tally: Sendable { let bytes = Atomic<Int>(0) }
