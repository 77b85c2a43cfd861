// SPDX-License-Identifier: Apache-2.0

// The socket of a server. All connections share it, so the task that accepts connections passes each datagram to the
// connection it belongs to.

#if HTTP3

import Glibc
import Synchronization
import URLLoadingIO

/// The first datagram of a client.
struct HTTP3Arrival: Sendable {
    let datagram: [UInt8]
    let address: DatagramSockets.Address
}

final class HTTP3Listener: TestListener {
    let port: UInt16
    private let descriptor: Int32
    private let slot: PollSlot
    private let isClosed = Atomic<Bool>(false)
    private let state = Lock(State())

    private struct State: Sendable {
        var peers: [DatagramSockets.Address: HTTP3Peer] = [:]
        var isSilent = false
    }

    /// The most connections at once; datagrams of further clients are lost.
    private static let mostPeers = 1_000
    /// The datagrams after which other tasks have a turn.
    private static let turn = 256

    /// - Parameter wanted: 0 for a port that the system chooses.
    init(port wanted: UInt16) throws {
        (descriptor, port) = try DatagramSockets.bound(port: wanted)
        // As much as the system permits: connections share it.
        var size = Int32(4 << 20)
        for option in [SO_RCVBUF, SO_SNDBUF] {
            setsockopt(descriptor, SOL_SOCKET, option, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        slot = Poller.shared.borrowSlot()
        do throws(IOFailure) { try Poller.shared.register(descriptor, slot) } catch {
            close()
            throw error
        }
    }

    deinit { close() }

    func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        DatagramSockets.close(descriptor)
        Poller.shared.returnSlot(slot)
    }

    func accept(_ token: StopToken) async throws(IOFailure) -> HTTP3Arrival {
        token.attach(slot)
        defer { token.detach(slot) }
        var count = 0
        while true {
            try token.check(.accept)
            _ = slot.beginRead()
            guard let (datagram, from) = DatagramSockets.receive(descriptor) else {
                await Poller.shared.park(slot, .read, token)
                continue
            }
            count += 1
            if count.isMultiple(of: Self.turn) { await Task.yield() }
            let address = DatagramSockets.Address(from)
            let (peer, isIgnored) = state.withLock { state in
                (state.peers[address], state.isSilent || state.peers.count >= Self.mostPeers)
            }
            if let peer {
                if !state.withLock({ $0.isSilent }) { peer.receive(datagram) }
            } else if !isIgnored {
                guard let moved = moved(datagram, to: address) else {
                    return HTTP3Arrival(datagram: datagram, address: address)
                }
                moved.receive(datagram)
            }
        }
    }

    /// Returns the connection of a client whose address has changed.
    private func moved(_ datagram: [UInt8], to address: DatagramSockets.Address) -> HTTP3Peer? {
        guard let first = datagram.first, first & 0x80 == 0 else { return nil }
        let peers = state.withLock { Array($0.peers.values) }
        guard let peer = peers.first(where: { $0.owns(datagram) }) else { return nil }
        remove(peer)
        peer.move(to: address)
        add(peer)
        return peer
    }

    func refuse(_ arrival: HTTP3Arrival) {}

    func add(_ peer: HTTP3Peer) { state.withLock { $0.peers[peer.address] = peer } }
    func remove(_ peer: HTTP3Peer) {
        state.withLock { if $0.peers[peer.address] === peer { $0.peers[peer.address] = nil } }
    }
    func fallSilent() { state.withLock { $0.isSilent = true } }

    /// Sends datagrams of `size` bytes. Those for which the socket has no room are lost.
    func send(_ bytes: UnsafeRawBufferPointer, size: Int, to address: DatagramSockets.Address) {
        guard !isClosed.load(ordering: .acquiring) else { return }
        for start in stride(from: 0, to: bytes.count, by: max(1, size)) {
            let datagram = UnsafeRawBufferPointer(rebasing: bytes[start..<min(bytes.count, start + size)])
            DatagramSockets.send(datagram, from: descriptor, to: address.system, flags: Int32(MSG_DONTWAIT))
        }
    }
}

#endif
