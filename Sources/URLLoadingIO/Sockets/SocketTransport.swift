// SPDX-License-Identifier: Apache-2.0

// In this folder: connected sockets, and the protocol that all byte streams share

// A connected socket and its slot: reads, writes and closes, nothing else.

import Synchronization
import URLLoadingCSystem

package final class SocketTransport: Transport {
    package let descriptor: Int32
    package let slot: PollSlot
    package let peer: SocketAddress?
    private let isClosed = Atomic<Bool>(false)
    /// Accessed only by the connecting task.
    private nonisolated(unsafe) var isConnected: Bool

    /// Takes ownership of an open descriptor.
    init(descriptor: Int32, peer: SocketAddress?, isConnected: Bool = true, relay: PollSlot? = nil) throws(IOFailure) {
        self.descriptor = descriptor
        self.peer = peer
        self.isConnected = isConnected
        slot = Poller.shared.borrowSlot()
        if let relay { slot.relay(to: relay) }
        // Requests and responses are written whole, so delaying packets (Nagle's algorithm) gains nothing.
        if peer?.family != .unix { _ = csys_set_no_delay(descriptor) }
        do throws(IOFailure) {
            try Poller.shared.register(descriptor, slot)
        } catch {
            close()
            throw error
        }
    }

    deinit { close() }

    package func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        _ = csys_close(descriptor)
        Poller.shared.returnSlot(slot)
    }

    /// Closes the connection with a reset, as a crashing peer does.
    package func abort() {
        if isOpen { _ = csys_set_reset_on_close(descriptor) }
        close()
    }

    package func finishWriting() {
        if isOpen { _ = csys_shutdown_write(descriptor) }
    }

    private var isOpen: Bool { !isClosed.load(ordering: .acquiring) }

    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Progress {
        try checkOpen(.read)
        let isEndNoted = slot.beginRead()
        let moved = csys_receive(descriptor, buffer.baseAddress, buffer.count)
        if moved > 0 {
            // A shorter read has taken all that there was (epoll(7)), but not an end that was notified with it.
            if moved == buffer.count || isEndNoted { slot.leaveInput(isEnd: isEndNoted) }
            return .moved(moved)
        }
        if moved == 0 { return .end }
        return try Self.outcome(moved, .read)
    }

    package func write(_ bytes: UnsafeRawBufferPointer) throws(IOFailure) -> Progress {
        try checkOpen(.write)
        let moved = csys_send(descriptor, bytes.baseAddress, bytes.count)
        return moved >= 0 ? .moved(moved) : try Self.outcome(moved, .write)
    }

    package func sendFile(_ file: FileReader, at offset: Int64, count: Int) throws(IOFailure) -> Progress? {
        try checkOpen(.write)
        let moved = file.send(to: descriptor, at: offset, count: count)
        if moved > 0 { return .moved(moved) }
        if moved == 0 { return .end }
        switch Int32(-moved) {
        // Some file systems do not support sendfile(2).
        case EINVAL, ENOSYS, EOPNOTSUPP: return nil
        default: return try Self.outcome(moved, .write)
        }
    }

    /// Throws once the socket is closed, because its descriptor number may have been reused.
    private func checkOpen(_ operation: IOFailure.Operation) throws(IOFailure) {
        guard isOpen else { throw IOFailure(.system(EBADF), operation) }
    }

    private static func outcome(_ result: Int, _ operation: IOFailure.Operation) throws(IOFailure) -> Progress {
        let error = Int32(-result)
        guard error == EAGAIN else { throw IOFailure(.system(error), operation) }
        return .blocked(operation == .read ? .read : .write)
    }

    package func hasPendingInput(askingKernel asks: Bool) -> Bool {
        // The notified data may have been consumed long ago, and pending data may not have been notified yet.
        guard isOpen else { return true }
        let asks = asks || slot.brief.isMuted.load(ordering: .relaxed)
        _ = slot.readable.take()
        guard asks || slot.mayHoldInput else { return false }
        let isEndNoted = slot.beginRead()
        guard csys_peek(descriptor) != -Int(EAGAIN) else { return false }
        slot.leaveInput(isEnd: isEndNoted)
        return true
    }

    package var mayHoldMore: Bool { slot.mayHoldInput }

    package func notifyReadable(at count: Int) -> Bool {
        isOpen && csys_set_receive_low_water(descriptor, Int32(clamping: count)) == 0
    }

    package func acknowledge() {
        if isOpen, peer?.family != .unix { _ = csys_acknowledge(descriptor) }
    }

    package var localAddress: SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        guard csys_local_address(descriptor, &storage, &length) == 0 else { return nil }
        return SocketAddress(storage, length: length)
    }

    package var remoteAddress: SocketAddress? { peer }

    package var description: String { "tcp(\(peer?.description ?? "?"))" }

    // MARK: Connecting

    /// Connects to one address.
    package static func connect(
        to address: SocketAddress, with setup: SocketSetup = SocketSetup(), marked mark: SocketMark? = nil,
        _ token: StopToken
    ) async throws(IOFailure) -> SocketTransport {
        let attempt = try begin(address, with: setup, marked: mark)
        token.attach(attempt.slot)
        defer { token.detach(attempt.slot) }
        while !attempt.isConnected {
            try token.check(.connect)
            await Poller.shared.park(attempt.slot, .write, token)
            try token.check(.connect)
            attempt.isConnected = try attempt.advance()
        }
        return attempt
    }

    /// Starts connecting and returns at once; `hasConnected` reports the outcome. `relay` receives the socket's
    /// notifications.
    static func begin(
        _ address: SocketAddress, with setup: SocketSetup = SocketSetup(), marked mark: SocketMark? = nil,
        relay: PollSlot? = nil
    ) throws(IOFailure) -> SocketTransport {
        let descriptor = csys_socket(address.systemFamily)
        guard descriptor >= 0 else { throw IOFailure(.system(-descriptor), .connect) }
        do throws(IOFailure) { try setup.apply(to: descriptor, for: address) } catch {
            _ = csys_close(descriptor)
            throw error
        }
        mark?.apply(to: descriptor, for: address)
        // Register the socket only now, because an unconnected socket reports a hang-up. Do not check at once whether a
        // local peer has already answered: that would save a wait, but makes handshakes made side by side on one thread
        // 8 % slower, because each peer is woken separately.
        var isConnected = false
        do throws(IOFailure) { isConnected = try advance(descriptor, address) } catch {
            _ = csys_close(descriptor)
            throw error
        }
        return try SocketTransport(descriptor: descriptor, peer: address, isConnected: isConnected, relay: relay)
    }

    /// Returns whether the attempt has succeeded; throws if it has failed. Calls the kernel only after a notification.
    func hasConnected() throws(IOFailure) -> Bool {
        if !isConnected, slot.writable.take() { isConnected = try advance() }
        return isConnected
    }

    private func advance() throws(IOFailure) -> Bool {
        guard let peer else { return true }
        return try Self.advance(descriptor, peer)
    }

    /// Calls connect(2) again, which reports the outcome of the attempt in one call.
    private static func advance(_ descriptor: Int32, _ address: SocketAddress) throws(IOFailure) -> Bool {
        switch -(address.withSystemAddress { csys_connect(descriptor, $0, $1) } ?? -EINVAL) {
        case 0, EISCONN: return true
        case EINPROGRESS, EALREADY: return false
        // A Unix socket with a full backlog answers EAGAIN without being in progress: an error as well.
        case let error: throw IOFailure(.system(error), .connect)
        }
    }
}
