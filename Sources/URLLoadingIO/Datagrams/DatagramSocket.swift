// SPDX-License-Identifier: Apache-2.0

// In this folder: connected sockets for datagrams, in builds with HTTP/3

#if HTTP3

import Synchronization
import URLLoadingCSystem

/// A connected UDP socket and its slot.
///
/// Sends and receives many datagrams with one call of the kernel where it can (UDP_SEGMENT, UDP_GRO), and otherwise one
/// message for each. Marks packets for explicit congestion notification (RFC 3168), and never lets them be fragmented.
/// Its methods do not wait: a task parks on the slot, as with a `Transport`. One task may send while another receives.
package final class DatagramSocket: Sendable {
    package let slot: PollSlot
    package let peer: SocketAddress
    private let descriptor: Int32
    /// The DSCP in the upper six bits of the traffic class.
    private let traffic: Int32
    private let cuts: Atomic<Bool>
    private let isClosed = Atomic<Bool>(false)
    private let stranded = Atomic<Bool>(false)
    /// Whether the kernel notifies of room for output. It would do so after each datagram, so it is asked for that only
    /// while there is none.
    private let awaitsRoom = Atomic<Bool>(false)
    private let isMuted = Atomic<Bool>(false)

    /// Creates a socket that sends to `peer` and receives only from it. Nothing is sent.
    package init(
        to peer: SocketAddress, with setup: SocketSetup = SocketSetup(), marked mark: SocketMark? = nil
    ) throws(IOFailure) {
        guard peer.family != .unix else { throw IOFailure(.invalidAddress(peer.description), .connect) }
        let descriptor = csys_datagram_socket(peer.systemFamily)
        guard descriptor >= 0 else { throw IOFailure(.system(-descriptor), .connect) }
        self.descriptor = descriptor
        self.peer = peer
        traffic = Int32(mark?.codePoint ?? 0) << 2
        slot = Poller.shared.borrowSlot()
        let abilities = csys_datagram_prepare(descriptor, peer.systemFamily)
        cuts = Atomic(abilities & Int32(CSYS_CUTS_DATAGRAMS) != 0)
        do throws(IOFailure) {
            var setup = setup
            setup.keepAlive = nil
            try setup.apply(to: descriptor, for: peer)
            mark?.apply(to: descriptor, for: peer)
            let outcome = peer.withSystemAddress { csys_connect(descriptor, $0, $1) } ?? -EINVAL
            guard outcome == 0 else { throw IOFailure(.system(-outcome), .connect) }
            try Poller.shared.register(descriptor, slot, for: .input)
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

    package var localAddress: SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        guard csys_local_address(descriptor, &storage, &length) == 0 else { return nil }
        return SocketAddress(storage, length: length)
    }

    /// Throws once the socket is closed, because its descriptor number may have been reused.
    private func checkOpen(_ operation: IOFailure.Operation) throws(IOFailure) {
        guard !isClosed.load(ordering: .acquiring) else { throw IOFailure(.system(EBADF), operation) }
    }

    // MARK: Sending

    /// Whether the kernel cuts datagrams from a buffer.
    package var cutsDatagrams: Bool { cuts.load(ordering: .relaxed) }
    /// Sends a message for each datagram from now on.
    func stopCutting() { cuts.store(false, ordering: .relaxed) }

    /// Whether the system has refused the latest datagrams because it has no way to the peer from the socket's address,
    /// or the address is not the machine's any more. That may pass.
    package var isStranded: Bool { stranded.load(ordering: .relaxed) }

    /// Sends datagrams of `size` bytes; the last one may be smaller.
    ///
    /// A datagram that the network does not take counts as sent: to its sender, it is lost like any other. Throws
    /// `.system(ECONNREFUSED)` as ``receive(into:)`` does, and then has sent nothing.
    /// - Parameter ecn: the mark of congestion, 0 to 3.
    /// - Returns: the number of bytes in the datagrams that were sent.
    package func send(_ bytes: UnsafeRawBufferPointer, size: Int, ecn: UInt8) throws(IOFailure) -> Progress {
        try checkOpen(.write)
        guard size > 0, !bytes.isEmpty else { return .moved(bytes.count) }
        var cuts = cutsDatagrams
        let traffic = traffic | Int32(ecn & 3)
        var isRepeated = false
        while true {
            let moved = csys_send_datagrams(
                descriptor, peer.systemFamily, bytes.baseAddress, bytes.count, size, traffic, cuts)
            let error = moved < 0 ? Int32(-moved) : 0
            // The first report may be of an earlier datagram.
            if isRepeated || !Self.reports.contains(error) {
                stranded.store(Self.strandings.contains(error), ordering: .relaxed)
            }
            guard moved < 0 else {
                if awaitsRoom.load(ordering: .relaxed) { awaitRoom(false) }
                return .moved(moved)
            }
            switch error {
            case EAGAIN:
                awaitRoom(true)
                return .blocked(.write)
            // There was no memory for it: it is lost like others, because no event follows.
            case ENOBUFS: return .moved(min(size, bytes.count))
            // The device cannot do it (udp(7)).
            case EIO where cuts, EINVAL where cuts:
                stopCutting()
                cuts = false
            case _ where !Self.reports.contains(error): throw IOFailure(.system(error), .write)
            // It may be of an earlier datagram: a socket keeps one report, and gives it to the next call.
            case _ where !isRepeated: isRepeated = true
            // One of the datagrams is too large for the device.
            case EMSGSIZE where cuts && bytes.count > size: cuts = false
            case EMSGSIZE: return .moved(min(size, bytes.count))
            default: return .moved(bytes.count)
            }
        }
    }

    private func awaitRoom(_ isAwaited: Bool) {
        awaitsRoom.store(isAwaited, ordering: .relaxed)
        setInterests()
    }

    /// Turns the notifications of input off, for a task that receives again and again without a wait, or on: what has
    /// arrived meanwhile is then notified. Not called while another task sends.
    package func mute(_ isMute: Bool) {
        guard isMuted.exchange(isMute, ordering: .relaxed) != isMute else { return }
        setInterests()
    }

    private func setInterests() {
        var interests: Poller.Interests = isMuted.load(ordering: .relaxed) ? [] : .input
        if awaitsRoom.load(ordering: .relaxed) { interests.insert(.output) }
        Poller.shared.setInterests(interests, in: descriptor, slot)
    }

    /// What routers and the peer's machine report of datagrams (icmp(7)), what the system says of networks that it has
    /// none of for now, and of its packet filter. All of it may pass, and a part can be forged.
    private static let reports = [
        EMSGSIZE, ENETUNREACH, EHOSTUNREACH, EHOSTDOWN, ENONET, ENOPROTOOPT, EOPNOTSUPP, EPROTO, EACCES, EPERM,
        ENETDOWN,
    ]
    private static let strandings = [ENETUNREACH, EHOSTUNREACH, ENETDOWN, ENODEV, EADDRNOTAVAIL, EINVAL]

    // MARK: Receiving

    /// Receives what has arrived, as far as `buffer` has room. `.moved` is the number of groups in the buffer: if fewer
    /// than it has room for, nothing was left.
    ///
    /// Throws `.system(ECONNREFUSED)` where the peer's machine has reported that no process has the port. Such a report
    /// can be forged, and the next call receives all the same. Other reports are of single datagrams, and left out.
    package func receive(into buffer: DatagramBuffer) throws(IOFailure) -> Progress {
        try checkOpen(.read)
        _ = slot.beginRead()
        var count: Int32 = 0
        // Each call gives one report. A cause that stays is not one.
        for _ in 0..<Self.mostReports {
            count = buffer.fill { csys_receive_datagrams(descriptor, $0, $1, $2, $3) }
            guard count < 0, Self.reports.contains(-count) else { break }
        }
        guard count != -EAGAIN else { return .blocked(.read) }
        // Datagrams may lie behind those that were received, and behind a report.
        if count < 0 || count == buffer.mostGroups { slot.leaveInput(isEnd: false) }
        guard count >= 0 else { throw IOFailure(.system(-count), .read) }
        return .moved(Int(count))
    }
    private static let mostReports = 16
}

#endif
