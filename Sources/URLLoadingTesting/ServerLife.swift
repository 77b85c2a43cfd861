// The life of a server for tests, of whatever protocol: from the listening socket to the last closed connection.

import Synchronization
import URLLoadingIO

/// What all servers of tests have in common.
protocol ServingTests: AnyObject, Sendable {
    associatedtype Connection: ServedConnection
    var life: ServerLife { get }
    /// Makes a connection of an accepted socket; `nil` once the server has stopped.
    func open(_ socket: SocketTransport) -> Connection?
    /// No connection is made any more. Returns those there are.
    func stopOpening() -> [Connection]
    /// All are closed.
    func hasEnded() async
}

/// One client of it.
protocol ServedConnection: AnyObject, Sendable {
    /// Serves to its end.
    func serve() async
    /// Makes that end come at once.
    func end()
}

/// Where it listens, and whether it goes on.
final class ServerLife: Sendable {
    private let listener: SocketListener
    let token = StopToken()
    fileprivate let task = Lock<Task<Void, Never>?>(nil)

    init(_ address: SocketAddress) throws(IOFailure) { listener = try SocketListener(address) }

    /// 0 for a Unix socket.
    var port: UInt16 { listener.address.port }

    /// `nil` when it is over.
    fileprivate func nextConnection() async -> SocketTransport? {
        while token.stopReason == nil {
            do throws(IOFailure) { return try await listener.accept(token) } catch {
                // Out of descriptors, or the peer was gone already: there will be others.
                try? await Poller.shared.sleep(until: Poller.now() + 5_000_000, token)
            }
        }
        return nil
    }

    fileprivate func close() { listener.close() }
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
                        socket.close()
                        continue
                    }
                    group.addTask { await connection.serve() }
                }
                // Handlers and scripts that wait for something of their own learn that nobody wants it any more.
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

    /// Serves for the length of a scope.
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
