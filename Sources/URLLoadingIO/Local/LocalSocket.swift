// SPDX-License-Identifier: Apache-2.0

// In this folder: local sockets with credentials and descriptors; started programs

// Connections between processes of one machine, with the identity of the peer and the transfer of open files (unix(7)).

import Glibc
import Synchronization
import URLLoadingCSystem

/// The process at the other end of a local socket, as recorded by the kernel when the connection was made.
package struct LocalPeer: Sendable, Equatable {
    package let process: Int32
    package let user: UInt32

    /// The effective user of this process.
    package static var ownUser: UInt32 { geteuid() }
}

/// A connected local socket. One task reads and one writes at a time.
package final class LocalSocket: Sendable {
    private let descriptor: Int32
    private let slot: PollSlot
    private let isClosed = Atomic<Bool>(false)

    /// Takes over an open, non-blocking descriptor.
    init(descriptor: Int32) throws(IOFailure) {
        self.descriptor = descriptor
        slot = Poller.shared.borrowSlot()
        do throws(IOFailure) { try Poller.shared.register(descriptor, slot) } catch {
            close()
            throw error
        }
    }

    deinit { close() }

    /// Connects to a path.
    /// - Throws: `ENOENT` or `ECONNREFUSED` if no process listens there, `EAGAIN` if its backlog is full.
    package static func connect(to path: String) throws(IOFailure) -> LocalSocket {
        let address = try SocketAddress.unix(path)
        let descriptor = csys_socket(AF_UNIX)
        guard descriptor >= 0 else { throw IOFailure(.system(-descriptor), .connect) }
        // A local socket connects at once or fails.
        let outcome = address.withSystemAddress { csys_connect(descriptor, $0, $1) } ?? -EINVAL
        guard outcome >= 0 else {
            _ = csys_close(descriptor)
            throw IOFailure(.system(-outcome), .connect)
        }
        return try LocalSocket(descriptor: descriptor)
    }

    /// Connects to a listener, and waits while its backlog is full: a busy process accepts late.
    /// - Parameter timeout: the time to wait for a place in the backlog.
    /// - Throws: as ``connect(to:)``; `EAGAIN` if the backlog is full for so long, or the calling task is cancelled.
    package static func connect(to path: String, timeout: Duration) async throws(IOFailure) -> LocalSocket {
        let end = ContinuousClock.now + timeout
        while true {
            do throws(IOFailure) { return try connect(to: path) } catch {
                // The kernel reports no event when a place becomes free.
                guard case .system(EAGAIN) = error.code, ContinuousClock.now < end,
                    (try? await Task.sleep(for: .milliseconds(5))) != nil
                else { throw error }
            }
        }
    }

    /// Ends the connection; a waiting task is woken and fails.
    package func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        slot.wake()
        _ = csys_close(descriptor)
        Poller.shared.returnSlot(slot)
    }

    /// Ends both directions: the peer gets the end of input at once, and a waiting task fails. The descriptor stays
    /// open until the last reference is released.
    package func shutDown() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// - Throws: the system's error; the connection cannot be used then.
    package func peer() throws(IOFailure) -> LocalPeer {
        var peer = csys_peer()
        let outcome = csys_peer_credentials(descriptor, &peer)
        guard outcome >= 0 else { throw IOFailure(.system(-outcome), .connect) }
        return LocalPeer(process: peer.process, user: peer.user)
    }

    /// Waits for bytes, and receives the open files that were sent with them.
    /// - Returns: the bytes; empty at the end of input.
    /// - Throws: `EMSGSIZE` if more than two files were sent at once.
    package func receive(atMost limit: Int, _ token: StopToken) async throws(IOFailure) -> (
        bytes: [UInt8], files: [PassedFile]
    ) {
        token.attach(slot)
        defer { token.detach(slot) }
        while true {
            try check(token, .read)
            var files = [Int32](repeating: -1, count: Int(CSYS_MOST_DESCRIPTORS))
            var count: Int32 = 0
            var moved = 0
            _ = slot.beginRead()
            let bytes = [UInt8](unsafeUninitializedCapacity: limit) { room, filled in
                moved = csys_receive_descriptors(descriptor, room.baseAddress, limit, &files, &count)
                filled = max(0, moved)
            }
            if moved >= 0 { return (bytes, files.prefix(Int(count)).map { PassedFile($0) }) }
            guard moved == -Int(EAGAIN) else { throw IOFailure(.system(Int32(-moved)), .read) }
            await Poller.shared.park(slot, .read, token)
        }
    }

    /// Waits until a moment, or until the peer has closed its end; what the peer sends meanwhile is dropped.
    /// - Parameter moment: in nanoseconds of the clock.
    /// - Returns: true if the peer has closed its end.
    package func hasPeerLeft(
        by moment: Int64, _ clock: LoopClock, _ token: StopToken
    ) async throws(IOFailure) -> Bool {
        token.attach(slot)
        defer { token.detach(slot) }
        clock.schedule(slot, at: moment)
        clock.manual?.beganSleeping(slot, until: moment, token)
        defer { clock.manual?.endedSleeping(slot) }
        var dropped = [UInt8](repeating: 0, count: 256)
        while clock.now() < moment {
            try check(token, .read)
            _ = slot.beginRead()
            let moved = recv(descriptor, &dropped, dropped.count, 0)
            if moved == 0 { return true }
            if moved < 0, errno != EAGAIN, errno != EINTR { throw IOFailure(.system(errno), .read) }
            if moved < 0 { await Poller.shared.park(slot, .read, token) }
        }
        return false
    }

    /// Sends all bytes, and the open files with the first of them.
    package func send(_ bytes: [UInt8], files: [PassedFile] = [], _ token: StopToken) async throws(IOFailure) {
        token.attach(slot)
        defer { token.detach(slot) }
        var rest = bytes[...]
        var descriptors = files.map(\.descriptor)
        while !rest.isEmpty {
            try check(token, .write)
            let moved = rest.withUnsafeBytes {
                csys_send_descriptors(descriptor, $0.baseAddress, $0.count, descriptors, Int32(descriptors.count))
            }
            if moved >= 0 {
                rest = rest.dropFirst(moved)
                descriptors = []
            } else if moved == -Int(EAGAIN) {
                await Poller.shared.park(slot, .write, token)
            } else {
                throw IOFailure(.system(Int32(-moved)), .write)
            }
        }
        withExtendedLifetime(files) {}
    }

    private func check(_ token: StopToken, _ operation: IOFailure.Operation) throws(IOFailure) {
        try token.check(operation)
        guard !isClosed.load(ordering: .acquiring) else { throw IOFailure(.system(EBADF), operation) }
    }
}

/// A listening local socket.
package final class LocalListener: Sendable {
    private let descriptor: Int32
    private let slot: PollSlot
    private let isClosed = Atomic<Bool>(false)

    /// Takes over a listening descriptor, from a service manager or from the parent process.
    package init(adopting descriptor: Int32) throws(IOFailure) {
        self.descriptor = descriptor
        slot = Poller.shared.borrowSlot()
        let outcome = csys_adopt(descriptor)
        do throws(IOFailure) {
            guard outcome >= 0 else { throw IOFailure(.system(-outcome), .listen) }
            try Poller.shared.register(descriptor, slot)
        } catch {
            close()
            throw error
        }
    }

    /// Listens at a path that does not exist yet; only this user may connect.
    package convenience init(path: String, backlog: Int32 = 128) throws(IOFailure) {
        try self.init(adopting: try Self.descriptor(listeningAt: path, backlog: backlog).release())
    }

    /// Listens at a path, in place of the file there: see ``descriptor(replacing:)``.
    package convenience init(replacing path: String) throws(IOFailure) {
        try self.init(adopting: try Self.descriptor(replacing: path).release())
    }

    /// Returns a listening socket for a process that is started with it; this process does not accept from it.
    package static func descriptor(listeningAt path: String, backlog: Int32 = 128) throws(IOFailure) -> PassedFile {
        let address = try SocketAddress.unix(path)
        let descriptor = csys_socket(AF_UNIX)
        guard descriptor >= 0 else { throw IOFailure(.system(-descriptor), .listen) }
        let file = PassedFile(descriptor)
        // The mode of the socket's file restricts the users that may connect (unix(7)); it is set before listening.
        guard fchmod(descriptor, 0o600) == 0 else { throw IOFailure(.system(errno), .listen) }
        let outcome = address.withSystemAddress { csys_listen(descriptor, $0, $1, backlog) } ?? -EINVAL
        guard outcome >= 0 else { throw IOFailure(.system(-outcome), .listen) }
        return file
    }

    /// Returns a listening socket that has taken the place of the file at a path. Programs that try to connect
    /// meanwhile never find a socket there that does not listen yet, which they would take for abandoned.
    package static func descriptor(replacing path: String) throws(IOFailure) -> PassedFile {
        // As long as the path: the names of sockets are short.
        let new = String(path.dropLast()) + "~"
        PrivateFolder.remove(new)
        let file = try descriptor(listeningAt: new)
        guard rename(new, path) == 0 else { throw IOFailure(.system(errno), .listen) }
        return file
    }

    deinit { close() }

    package func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        slot.wake()
        _ = csys_close(descriptor)
        Poller.shared.returnSlot(slot)
    }

    /// Whether a path leads to a socket on which no process listens any more, such as one that a killed process left.
    ///
    /// False for some milliseconds after the end of a process that was just starting another one: the new process has
    /// all descriptors until its program begins (fork(2), FD_CLOEXEC). Connections made meanwhile end without an
    /// answer.
    package static func isAbandoned(_ path: String) -> Bool {
        guard FileKind.isSocket(path) else { return false }
        do throws(IOFailure) {
            try LocalSocket.connect(to: path).close()
            return false
        } catch {
            if case .system(ECONNREFUSED) = error.code { return true }
            return false
        }
    }

    /// Returns a pending connection; `nil` without one.
    package func acceptNow() throws(IOFailure) -> LocalSocket? {
        guard !isClosed.load(ordering: .acquiring) else { throw IOFailure(.system(EBADF), .accept) }
        while true {
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let accepted = csys_accept(descriptor, &storage, &length)
            if accepted >= 0 { return try LocalSocket(descriptor: accepted) }
            switch -accepted {
            case EAGAIN: return nil
            case ECONNABORTED, EINTR, EPROTO: continue
            case let error: throw IOFailure(.system(error), .accept)
            }
        }
    }

    /// Waits for the next connection. One task at a time.
    package func accept(_ token: StopToken) async throws(IOFailure) -> LocalSocket {
        token.attach(slot)
        defer { token.detach(slot) }
        while true {
            try token.check(.accept)
            _ = slot.beginRead()
            if let socket = try acceptNow() { return socket }
            await Poller.shared.park(slot, .read, token)
        }
    }
}
