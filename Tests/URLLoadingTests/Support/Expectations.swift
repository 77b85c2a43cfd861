// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The error a load must end with; success or any other error is an issue.
nonisolated(nonsending) func failure<R>(
    _ reason: LoadError.Reason, _ party: LoadError.Party? = nil, _ phase: LoadError.Phase? = nil,
    _ comment: String = "", sourceLocation: SourceLocation = #_sourceLocation,
    _ load: nonisolated(nonsending) () async throws -> R
) async -> LoadError? {
    do {
        let result = try await load()
        Issue.record("\(comment): no error but \(result)", sourceLocation: sourceLocation)
    } catch let error as LoadError {
        #expect(error.reason == reason, "\(comment): \(error)", sourceLocation: sourceLocation)
        if let party { #expect(error.party == party, "\(comment): \(error)", sourceLocation: sourceLocation) }
        if let phase { #expect(error.phase == phase, "\(comment): \(error)", sourceLocation: sourceLocation) }
        return error
    } catch {
        Issue.record("\(comment): \(error)", sourceLocation: sourceLocation)
    }
    return nil
}

/// Expects an error when the test does not inspect it further.
nonisolated(nonsending) func expectFailure<R>(
    _ reason: LoadError.Reason, _ party: LoadError.Party? = nil, _ phase: LoadError.Phase? = nil,
    _ comment: String = "", sourceLocation: SourceLocation = #_sourceLocation,
    _ load: nonisolated(nonsending) () async throws -> R
) async {
    _ = await failure(reason, party, phase, comment, sourceLocation: sourceLocation, load)
}

extension Session {
    /// The body as text.
    nonisolated func text(_ url: URL) async throws -> String {
        String(decoding: try await data(from: url).0, as: UTF8.self)
    }

    nonisolated func text(_ request: Request) async throws -> String {
        String(decoding: try await data(for: request).0, as: UTF8.self)
    }
}

extension Session {
    /// The body must be this text. (A `try` within `#expect` alone does not make a closure a throwing one.)
    nonisolated func expect(_ request: Request, _ text: String, sourceLocation: SourceLocation = #_sourceLocation)
        async throws
    {
        let body = try await self.text(request)
        #expect(body == text, sourceLocation: sourceLocation)
    }

    nonisolated func expect(_ url: URL, _ text: String, sourceLocation: SourceLocation = #_sourceLocation) async throws
    {
        try await expect(Request(url: url), text, sourceLocation: sourceLocation)
    }
}

extension WebSocketTask {
    /// The server must return this message.
    func expectEcho(_ message: WebSocketMessage, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let answer = try await echo(of: message)
        #expect(answer == message, sourceLocation: sourceLocation)
    }
}

func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

/// A gate, closed until it is opened, or until the waiting task is cancelled: for handlers that answer when the test
/// says so.
final class Latch: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Lock(State())

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLock { state in
                    if !state.isOpen { state.waiting.append(continuation) }
                    return state.isOpen
                }
                if isOpen { continuation.resume() }
            }
        } onCancel: {
            open()
        }
    }
}

/// Resolves every name to this machine, or to no address, and records the names.
final class RecordingResolver: Resolver {
    private let names = Lock<[String]>([])
    private let outcome: Result<[SocketAddress], IOFailure>

    init(_ outcome: Result<[SocketAddress], IOFailure> = .success([.ipv4((127, 0, 0, 1), port: 0)])) {
        self.outcome = outcome
    }

    var asked: [String] { names.withLock { $0 } }

    func addresses(of name: String, _ token: StopToken) async throws(IOFailure) -> [SocketAddress] {
        names.withLock { $0.append(name) }
        return try outcome.get()
    }
}

extension Session {
    /// Waits until the number of running loads fulfils a condition. The registry notifies only those who wait for the
    /// end of the session.
    nonisolated(nonsending) func eventuallyLoads(
        file: StaticString = #fileID, line: UInt = #line, until isSo: (Int) -> Bool
    ) async throws {
        try await eventually(core.registry.count, file: file, line: line, until: isSo)
    }
}

extension SharedBearerToken {
    /// Waits until this many loads wait for a renewed token. Nothing happens when a load begins to wait.
    nonisolated(nonsending) func eventuallyWaiting(
        _ count: Int, file: StaticString = #fileID, line: UInt = #line
    ) async throws {
        try await eventually(waitingCount, file: file, line: line) { $0 == count }
    }
}

/// Waits until events that the poller knew before have been delivered: they precede its timer.
func pollerHasRun() async throws {
    try await Poller.shared.sleep(until: Poller.now() + 1_000_000, StopToken())
}

extension ManualClock {
    /// Advances step by step until a condition holds: for timers that the library sets at a moment of which no test is
    /// notified.
    func advance(
        by step: Duration, file: StaticString = #fileID, line: UInt = #line, until isSo: () -> Bool
    ) async throws {
        try await eventually(now, file: file, line: line) { _ in
            guard !isSo() else { return true }
            advance(by: step)
            return false
        }
    }
}

/// A port on which no process listens: a socket is bound to it until the process ends, or another test would be given
/// the same port.
func closedPort() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
            bind(descriptor, address, length) == 0 ? getsockname(descriptor, address, &length) : -1
        }
    }
    try #require(result == 0)
    return UInt16(bigEndian: address.sin_port)
}

/// Expects the loaded body. (As above: `#expect(try await …)` loses its errors.)
nonisolated(nonsending) func expect<R: Equatable>(
    _ load: nonisolated(nonsending) () async throws -> R, _ expected: R,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    let result = try await load()
    #expect(result == expected, sourceLocation: sourceLocation)
}
