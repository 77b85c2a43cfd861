// SPDX-License-Identifier: Apache-2.0

// The lifetime of a test server of any protocol, from the listening socket to the last closed connection.

import Synchronization
import URLLoadingIO

/// The common part of all test servers.
protocol ServingTests: AnyObject, Sendable {
    associatedtype Connection: ServedConnection
    associatedtype Listener: TestListener
    var life: ServerLifetime<Listener> { get }
    /// Creates a connection for an accepted socket; `nil` once the server has stopped.
    func open(_ socket: Listener.Accepted) -> Connection?
    /// Stops creating connections. Returns the existing ones.
    func stopOpening() -> [Connection]
    /// Called when all connections are closed.
    func hasEnded() async
}

/// A connection of a test server.
protocol ServedConnection: AnyObject, Sendable {
    /// Serves the connection to its end.
    func serve() async
    /// Ends the connection at once.
    func end()
}

/// What accepts the connections of a server.
protocol TestListener: Sendable {
    associatedtype Accepted: Sendable
    /// The port; 0 for a Unix socket.
    var port: UInt16 { get }
    /// Waits for the next connection. Used by one task at a time.
    func accept(_ token: StopToken) async throws(IOFailure) -> Accepted
    /// Gives up a connection that the server does not open.
    func refuse(_ accepted: Accepted)
    func close()
}

extension SocketListener: TestListener {
    var port: UInt16 { address.port }
    func refuse(_ socket: SocketTransport) { socket.close() }
}

/// The listening socket of a server, and its running state.
final class ServerLifetime<Listener: TestListener>: Sendable {
    let listener: Listener
    let token = StopToken()
    fileprivate let task = Lock<Task<Void, Never>?>(nil)

    init(_ listener: Listener) { self.listener = listener }

    var port: UInt16 { listener.port }

    /// Accepts the next connection; `nil` when the server has stopped.
    fileprivate func nextConnection() async -> Listener.Accepted? {
        while token.stopReason == nil {
            do throws(IOFailure) { return try await listener.accept(token) } catch {
                // Out of descriptors, or the peer has already left: try again.
                try? await Poller.shared.sleep(until: Poller.now() + 5_000_000, token)
            }
        }
        return nil
    }

    fileprivate func close() { listener.close() }
}

/// The lifetime of a server of TCP or of a Unix socket.
typealias ServerLife = ServerLifetime<SocketListener>

extension ServerLife {
    convenience init(_ address: SocketAddress) throws(IOFailure) { self.init(try SocketListener(address)) }
}

extension ServingTests {
    func hasEnded() async {}

    func startServing() {
        life.task.withLock { task in
            guard task == nil else { return }
            task = Task { await self.serveAll() }
        }
    }

    func stopServing() async {
        endServing()
        await life.task.withLock { $0 }?.value
    }

    @concurrent func serveAll() async {
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                while let socket = await life.nextConnection() {
                    guard let connection = open(socket) else {
                        life.listener.refuse(socket)
                        continue
                    }
                    group.addTask { await connection.serve() }
                }
                // Handlers and scripts that wait for something else are cancelled.
                group.cancelAll()
            }
        } onCancel: {
            endServing()
        }
        life.close()
        await hasEnded()
    }

    private func endServing() {
        life.token.stop(.cancelled)
        for connection in stopOpening() { connection.end() }
    }

    /// Serves for the duration of a closure.
    nonisolated(nonsending) func serving<R>(_ use: nonisolated(nonsending) (Self) async throws -> R) async throws -> R {
        async let serving: Void = serveAll()
        do {
            let result = try await use(self)
            await stopServing()
            await serving
            return result
        } catch {
            await stopServing()
            await serving
            throw error
        }
    }
}
