// A connected socket and its slot: read, write, close, and nothing else.

import Synchronization
import URLLoadingCSystem

package final class SocketTransport: Transport {
    package let descriptor: Int32
    package let slot: PollSlot
    package let peer: SocketAddress?
    private let isClosed = Atomic<Bool>(false)
    /// Only touched by the task that connects.
    private nonisolated(unsafe) var isConnected: Bool
    /// The last read filled its buffer: there may be more, of which the slot has heard already.
    private let hasFilled = Atomic<Bool>(false)

    /// Takes over an open descriptor.
    init(descriptor: Int32, peer: SocketAddress?, isConnected: Bool = true, relay: PollSlot? = nil) throws(IOFailure) {
        self.descriptor = descriptor
        self.peer = peer
        self.isConnected = isConnected
        slot = Poller.shared.borrowSlot()
        if let relay { slot.relay(to: relay) }
        // Requests and answers are written whole: nothing is gained by waiting for more.
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

    /// Ends the connection with a reset, as a crashing peer does.
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
        let moved = csys_receive(descriptor, buffer.baseAddress, buffer.count)
        hasFilled.store(moved == buffer.count, ordering: .relaxed)
        if moved > 0 { return .moved(moved) }
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
        // Not every file system has it.
        case EINVAL, ENOSYS, EOPNOTSUPP: return nil
        default: return try Self.outcome(moved, .write)
        }
    }

    /// The number of a closed descriptor may be somebody else's by now.
    private func checkOpen(_ operation: IOFailure.Operation) throws(IOFailure) {
        guard isOpen else { throw IOFailure(.system(EBADF), operation) }
    }

    private static func outcome(_ result: Int, _ operation: IOFailure.Operation) throws(IOFailure) -> Progress {
        let error = Int32(-result)
        guard error == EAGAIN else { throw IOFailure(.system(error), operation) }
        return .blocked(operation == .read ? .read : .write)
    }

    package func hasPendingInput(askingKernel asks: Bool) -> Bool {
        // What was heard may be long consumed, and what is there may not have been heard yet.
        guard isOpen else { return true }
        let hasHeard = slot.readable.take()
        let hasHeardEnd = slot.takeEnd()
        guard hasHeard || hasHeardEnd || asks || hasFilled.load(ordering: .relaxed) else { return false }
        return csys_peek(descriptor) != -Int(EAGAIN)
    }

    /// What was read last filled its buffer, or an end was heard with it.
    package var mayHoldMore: Bool { hasFilled.load(ordering: .relaxed) || slot.takeEnd() }

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
        to address: SocketAddress, from binding: SocketBinding? = nil, marked mark: SocketMark? = nil,
        _ token: StopToken
    ) async throws(IOFailure) -> SocketTransport {
        let attempt = try begin(address, from: binding, marked: mark)
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

    /// Starts connecting and returns at once; `hasConnected` tells how far it is.
    /// `relay` hears what the socket hears.
    static func begin(
        _ address: SocketAddress, from binding: SocketBinding? = nil, marked mark: SocketMark? = nil,
        relay: PollSlot? = nil
    ) throws(IOFailure) -> SocketTransport {
        let descriptor = csys_socket(address.systemFamily)
        guard descriptor >= 0 else { throw IOFailure(.system(-descriptor), .connect) }
        do throws(IOFailure) { try binding?.bind(descriptor, for: address) } catch {
            _ = csys_close(descriptor)
            throw error
        }
        mark?.apply(to: descriptor, for: address)
        // Registered only then: a socket that is not connecting reports a hang-up. That a peer on this machine has answered
        // by now is not asked at once: it saves a wait, and costs handshakes made side by side 8 % more on one thread, for
        // each peer is woken alone.
        var isConnected = false
        do throws(IOFailure) { isConnected = try advance(descriptor, address) } catch {
            _ = csys_close(descriptor)
            throw error
        }
        return try SocketTransport(descriptor: descriptor, peer: address, isConnected: isConnected, relay: relay)
    }

    /// Whether the attempt has succeeded; throws if it has failed. Asks only after something was heard.
    func hasConnected() throws(IOFailure) -> Bool {
        if !isConnected, slot.writable.take() { isConnected = try advance() }
        return isConnected
    }

    private func advance() throws(IOFailure) -> Bool {
        guard let peer else { return true }
        return try Self.advance(descriptor, peer)
    }

    /// Asking to connect again is how the kernel tells what became of it, in one call.
    private static func advance(_ descriptor: Int32, _ address: SocketAddress) throws(IOFailure) -> Bool {
        switch -(address.withSystemAddress { csys_connect(descriptor, $0, $1) } ?? -EINVAL) {
        case 0, EISCONN: return true
        case EINPROGRESS, EALREADY: return false
        // A full backlog of a Unix socket answers EAGAIN and is not in progress: an error as well.
        case let error: throw IOFailure(.system(error), .connect)
        }
    }
}
