// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Ownership and lifetimes.
@Suite(.timeLimit(.minutes(4)))
struct LifetimeRows {
    @Test(
        "a request answered before it was sent completely costs its connection (security 46)", arguments: [false, true])
    func halfSent(_ hasBody: Bool) async throws {
        let transport = ScriptedTransport([
            .take(10), .give("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig"), .block,
        ])
        try await withSession(.ephemeral.with { $0.dial = { _, _ in transport } }) { session in
            let url = try #require(URL(string: "http://a.example/"))
            let body: RequestBody? = hasBody ? .data(Data(count: 1000)) : nil
            let (data, response) = try await session.data(for: Request(url: url, method: .post, body: body))
            #expect(response.http?.status == .contentTooLarge)
            #expect(data == Data("big".utf8))
            #expect(session.connectionsDescription == "empty")
        }
    }

    /// A connection that its peer has closed: writes fail, and a read brings what the peer said before.
    private final class ClosedTransport: Transport {
        let slot = Poller.shared.borrowSlot()
        let last: IOFailure.Code
        init(_ last: IOFailure.Code) { self.last = last }
        deinit { Poller.shared.returnSlot(slot) }
        var description: String { "closed" }
        func hasPendingInput(askingKernel: Bool) -> Bool { false }
        func finishWriting() {}
        func close() {}
        func read(into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Progress {
            throw IOFailure(last, .read)
        }
        func write(_ bytes: UnsafeRawBufferPointer) throws(IOFailure) -> Progress {
            throw IOFailure(.system(EPIPE), .write)
        }
    }

    @Test("a TLS alert that arrived before a request could be written is the reason of the failure")
    func alertBeforeWrite() async throws {
        let required = IOFailure.Code.tls(TLSFailure(.alert(116), detail: "certificate required"))
        for (last, reason) in [(required, .clientCertificateRequired), (.system(ECONNRESET), .connectionLost)]
            as [(IOFailure.Code, LoadError.Reason)]
        {
            try await withSession(.ephemeral.with { $0.dial = { _, _ in ClosedTransport(last) } }) { session in
                await expectFailure(reason, .remote) { try await session.data(from: url("http://a.example/")) }
            }
        }
    }

    @Test("cancelling the task that iterates a body ends the load, even if another task began it")
    func cancelledReader() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: 2), .stall)]) { _ in .ok("0123456789") }
            var configuration = Configuration.ephemeral
            configuration.timeouts.idle = nil
            configuration.timeouts.resource = nil
            try await withSession(configuration) { session in
                let reason = try await session.load(Request(url: origin.url())) { _, body in
                    await withTaskGroup(of: LoadError.Reason?.self) { group in
                        group.addTask {
                            do { for try await _ in body {} } catch { return (error as? LoadError)?.reason }
                            return nil
                        }
                        try? await origin.wait { $0.stalled == 1 }
                        group.cancelAll()
                        return await group.next() ?? nil
                    }
                }
                #expect(reason == .cancelled)
            }
            origin.releaseStalls()
        }
    }

    @Test(
        "excessive limits still work as limits",
        arguments: [
            Duration.seconds(-10_000_000_000), .zero, .nanoseconds(1), .seconds(Int64.min),
        ])
    func oddLimits(_ limit: Duration) async throws {
        try await withHTTPTestServer { origin in
            origin.inject(.init(.requestHead, .stall))
            for isIdle in [true, false] {
                var configuration = Configuration.ephemeral
                if isIdle { configuration.timeouts.idle = limit } else { configuration.timeouts.resource = limit }
                try await withSession(configuration) { session in
                    _ = await failure(isIdle ? .idleTimeout : .resourceTimeout) {
                        try await session.data(from: origin.url())
                    }
                }
            }
            origin.releaseStalls()
        }
    }

    @Test("no limit is too large to be accepted", arguments: [Duration.seconds(Int64.max), .seconds(10_000_000_000)])
    func largeLimits(_ limit: Duration) async throws {
        try await withHTTPTestServer(answering: "x") { origin in
            origin.route("/chunks") { _ in .ok(.chunks(["x", "y"])) }
            var configuration = Configuration.ephemeral
            configuration.timeouts.idle = limit
            configuration.timeouts.resource = limit
            configuration.connections.idleLifetime = limit
            configuration.connections.maximumPerHost = .max
            configuration.connections.maximumIdle = .max
            configuration.limits.headSize = .max
            configuration.limits.fieldCount = .max
            configuration.limits.chunkExtensionSize = .max
            configuration.limits.trailerSize = .max
            configuration.limits.informationalCount = .max
            configuration.limits.collectedBodySize = .max
            for (path, count) in [("/", 1), ("/chunks", 2)] {
                // A session each, because the first exchange of a connection is set up apart from the others.
                try await withSession(configuration) { session in
                    let (data, _) = try await session.data(from: origin.url(path))
                    #expect(data.count == count)
                }
            }
        }
    }

    @Test("timers do not retain an ended session")
    func timersDoNotRetainAnEndedSession() async throws {
        weak var registry: LoadRegistry?
        weak var pool: ConnectionPool?
        try await withHTTPTestServer(answering: "x") { origin in
            let session = Session(.ephemeral)
            registry = session.core.registry
            pool = session.core.pool
            _ = try await session.data(from: origin.url())
            session.finishTasksAndInvalidate()
            await session.invalidated()
        }
        #expect(registry == nil)
        #expect(pool == nil)
    }
}
