// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import URLLoadingIO

/// A Unix socket on which a session tells programs of the same user, such as `urlload top`, what it is doing.
///
/// ```swift
/// let socket = try session.exposeStatistics(at: "/run/user/1000/crawler.top")
/// ```
/// Closed by ``close()``, and with the session; the file is removed then. It does not keep the session alive.
public final class StatisticsSocket: Sendable, CustomStringConvertible {
    /// The address of the socket.
    public let path: String
    private let listener: LocalListener
    /// The file, which a program may have replaced meanwhile.
    private let place: FilePlace?
    private let token: StopToken
    private let clock: LoopClock
    private let snapshot: @Sendable () -> SessionSnapshot
    private let clientCount = Atomic<Int>(0)
    private let hasClosed = Atomic<Bool>(false)

    /// Clients beyond that are sent away.
    private static let maximumClients = 8
    /// Nanoseconds between two snapshots.
    private static let interval: Int64 = 1_000_000_000

    init(
        path: String, _ clock: LoopClock, _ snapshot: @escaping @Sendable () -> SessionSnapshot
    ) throws(LoadError) {
        do throws(IOFailure) { listener = try Self.listen(path) } catch {
            throw LoadError(
                .cannotCreateFile, phase: .preparing, party: .local, detail: "\(path): \(Self.words(error))")
        }
        (self.path, self.clock, self.snapshot) = (path, clock, snapshot)
        place = FilePlace(itself: path)
        token = StopToken(clock: clock)
        Task { await serve() }
    }

    /// Closes the socket and its connections, and removes its file. Further calls have no effect.
    public func close() {
        guard !hasClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        if let place, FilePlace(itself: path) == place { PrivateFolder.remove(path) }
        // Ends the wait of `serve`, which closes the listener: its slot is given back when no task parks on it.
        token.stop(.cancelled)
    }

    var isClosed: Bool { hasClosed.load(ordering: .acquiring) }

    /// The path, and the number of connected programs: `/run/user/1000/crawler.top, 1 client`.
    public var description: String {
        let count = clientCount.load(ordering: .relaxed)
        return "\(path), \(count) client\(count == 1 ? "" : "s")"
    }

    /// Listens, in place of a socket that a program left behind when it was killed.
    private static func listen(_ path: String) throws(IOFailure) -> LocalListener {
        do throws(IOFailure) { return try LocalListener(path: path) } catch {
            guard LocalListener.isAbandoned(path) else { throw error }
            PrivateFolder.remove(path)
            return try LocalListener(path: path)
        }
    }

    private static func words(_ failure: IOFailure) -> String {
        switch failure.code {
        case .system(EADDRINUSE): "the path is in use"
        case .system(let number): "the socket cannot be opened: \(String(cString: strerror(number)))"
        default: "the path is not valid for a socket; it may have at most 107 bytes"
        }
    }

    // MARK: Clients

    private func serve() async {
        await withDiscardingTaskGroup { group in
            while !isClosed {
                do throws(IOFailure) {
                    let socket = try await listener.accept(token)
                    if isPermitted(socket) { group.addTask { await self.serve(socket) } } else { socket.close() }
                } catch {
                    // Without descriptors, for example: a later client may be luckier.
                    try? await clock.sleep(until: clock.now() + Self.interval, token)
                }
            }
            listener.close()
        }
    }

    /// Whether a client is served: of this user, and not too many. The mode of the file does not stop users who may
    /// override it; the credentials that the kernel reports do (SO_PEERCRED, unix(7)).
    private func isPermitted(_ socket: LocalSocket) -> Bool {
        guard (try? socket.peer())?.user == LocalPeer.ownUser,
            clientCount.load(ordering: .relaxed) < Self.maximumClients
        else { return false }
        clientCount.wrappingAdd(1, ordering: .relaxed)
        return true
    }

    /// Sends a snapshot a second until the client leaves. A snapshot is made when the one before was taken, so that a
    /// slow client holds one in memory.
    private func serve(_ socket: LocalSocket) async {
        defer {
            socket.close()
            clientCount.wrappingSubtract(1, ordering: .relaxed)
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        while !isClosed, let line = try? encoder.encode(snapshot()) {
            do throws(IOFailure) {
                try await socket.send(Array(line) + [UInt8(ascii: "\n")], token)
                if try await socket.hasPeerLeft(by: clock.now() + Self.interval, clock, token) { return }
            } catch {
                return
            }
        }
    }
}
