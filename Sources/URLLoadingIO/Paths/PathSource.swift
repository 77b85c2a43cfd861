// SPDX-License-Identifier: Apache-2.0

// Sources of network state: the kernel, or a test.

import Synchronization
import URLLoadingCSystem

package enum PathTable: Int32, Sendable, CaseIterable {
    case links, addresses, routes
}

package enum PathDatagram: Sendable, Equatable {
    case bytes(Int)
    /// Messages were lost: the socket's buffer overflowed, or this process's buffer was too small.
    case lost
    case none
}

/// An open channel. Used by one task at a time.
package protocol PathChannel: AnyObject, Sendable {
    var slot: PollSlot { get }
    /// The port id that marks answers to this channel.
    var port: UInt32 { get }
    func ask(_ table: PathTable, _ sequence: UInt32) throws(IOFailure)
    /// Receives the next datagram if there is one. Never waits.
    func receive(into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> PathDatagram
    /// Closes the channel. May be called twice.
    func close()
}

package protocol PathSource: Sendable {
    /// - Parameter notifiesOfChanges: whether changes wake the channel's slot.
    func open(notifiesOfChanges: Bool) throws(IOFailure) -> any PathChannel
    /// The local address from which a peer would be reached now; `nil` if the peer is unreachable.
    func localAddress(towards peer: SocketAddress) -> SocketAddress?
}

/// The kernel of this machine, through a netlink socket.
package struct SystemPaths: PathSource {
    package init() {}

    package func open(notifiesOfChanges: Bool) throws(IOFailure) -> any PathChannel {
        try RouteSocket(notifiesOfChanges: notifiesOfChanges)
    }

    package func localAddress(towards peer: SocketAddress) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        guard peer.family != .unix,
            peer.withSystemAddress({ csys_address_towards($0, $1, &storage, &length) }) == 0
        else { return nil }
        return SocketAddress(storage, length: length)
    }
}

private final class RouteSocket: PathChannel {
    let slot: PollSlot
    let port: UInt32
    private let descriptor: Int32
    private let isClosed = Atomic<Bool>(false)

    init(notifiesOfChanges: Bool) throws(IOFailure) {
        var port: UInt32 = 0
        descriptor = csys_paths_open(notifiesOfChanges, &port)
        guard descriptor >= 0 else { throw IOFailure(.system(-descriptor), .open) }
        self.port = port
        slot = Poller.shared.borrowSlot()
        guard notifiesOfChanges else { return }
        do throws(IOFailure) { try Poller.shared.register(descriptor, slot) } catch {
            close()
            throw error
        }
    }

    deinit { close() }

    func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        _ = csys_close(descriptor)
        Poller.shared.returnSlot(slot)
    }

    /// Throws once the channel is closed, because its descriptor number may have been reused.
    private func checkOpen() throws(IOFailure) {
        guard !isClosed.load(ordering: .acquiring) else { throw IOFailure(.system(EBADF), .read) }
    }

    func ask(_ table: PathTable, _ sequence: UInt32) throws(IOFailure) {
        try checkOpen()
        let result = csys_paths_ask(descriptor, table.rawValue, sequence)
        guard result == 0 else { throw IOFailure(.system(-result), .write) }
    }

    func receive(into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> PathDatagram {
        try checkOpen()
        let moved = csys_paths_receive(descriptor, buffer.baseAddress, buffer.count)
        if moved >= 0 { return .bytes(moved) }
        switch Int32(-moved) {
        case EAGAIN: return .none
        case ENOBUFS, EMSGSIZE: return .lost
        case let error: throw IOFailure(.system(error), .read)
        }
    }
}
