// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import Glibc
import Testing
import URLLoadingCSystem

@testable import URLLoadingIO

@Suite(.timeLimit(.minutes(2)))
struct DatagramTests {
    /// A peer over loopback that is not connected.
    private final class Peer {
        let descriptor: Int32
        let address: SocketAddress

        init(_ address: SocketAddress = .ipv4((127, 0, 0, 1), port: 0)) throws {
            let descriptor = csys_datagram_socket(address.systemFamily)
            self.descriptor = descriptor
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let isBound = address.withSystemAddress { csys_reserve(descriptor, $0, $1) } == 0
            guard isBound, csys_local_address(descriptor, &storage, &length) == 0,
                let own = SocketAddress(storage, length: length)
            else { throw IOFailure(.system(EADDRNOTAVAIL), .listen) }
            self.address = own
            _ = csys_datagram_prepare(descriptor, own.systemFamily)
        }

        deinit { _ = csys_close(descriptor) }

        func connect(to other: DatagramSocket) throws {
            let local = try #require(other.localAddress)
            #expect(local.withSystemAddress { csys_connect(descriptor, $0, $1) } == 0)
        }
    }

    private struct Datagram: Equatable {
        let bytes: [UInt8]
        let ecn: UInt8
    }

    /// Receives `count` datagrams from a socket, waiting for each.
    private func receive(_ count: Int, from socket: DatagramSocket) async throws -> [Datagram] {
        let buffer = DatagramBuffer()
        let token = StopToken()
        var all: [Datagram] = []
        while all.count < count {
            switch try socket.receive(into: buffer) {
            case .moved: buffer.forEach { all.append(Datagram(bytes: Array($0), ecn: $1)) }
            default: await Poller.shared.park(socket.slot, .read, token)
            }
        }
        return all
    }

    /// Receives what has arrived at the peer, one datagram after the other.
    private func arrived(at peer: Peer, count: Int) async throws -> [Datagram] {
        let buffer = DatagramBuffer()
        var all: [Datagram] = []
        for _ in 0..<10_000 where all.count < count {
            let groups = buffer.fill { csys_receive_datagrams(peer.descriptor, $0, $1, $2, $3) }
            if groups > 0 { buffer.forEach { all.append(Datagram(bytes: Array($0), ecn: $1)) } }
            if groups <= 0 { try await Poller.shared.sleep(until: Poller.now() + 1_000_000, StopToken()) }
        }
        return all
    }

    private func send(_ bytes: [UInt8], size: Int, ecn: UInt8 = 0, on socket: DatagramSocket) async throws {
        let token = StopToken()
        var rest = bytes[...]
        while !rest.isEmpty {
            switch try rest.withUnsafeBytes({ try socket.send($0, size: size, ecn: ecn) }) {
            case .moved(let count): rest = rest.dropFirst(count)
            default: await Poller.shared.park(socket.slot, .write, token)
            }
        }
    }

    @Test("What a socket sends does not wake the task that waits for an answer") func quietSending() async throws {
        // A slot may be woken for an earlier user of it, but not each one.
        var isQuiet = false
        for _ in 0..<20 where !isQuiet {
            let peer = try Peer()
            let socket = try DatagramSocket(to: peer.address)
            defer { socket.close() }
            for _ in 0..<20 { try await send([1, 2, 3], size: 3, on: socket) }
            #expect(try await arrived(at: peer, count: 20).count == 20)
            // The kernel would have told of the room that each of them left.
            try await Poller.shared.sleep(until: Poller.now() + 20_000_000, StopToken())
            isQuiet = !socket.slot.writable.take() && !socket.slot.readable.take() && !socket.slot.mayHoldInput
        }
        #expect(isQuiet)
    }

    @Test("Datagrams keep their borders, whether the kernel cuts them or not", arguments: [false, true])
    func borders(cuts: Bool) async throws {
        let peer = try Peer()
        let socket = try DatagramSocket(to: peer.address)
        if !cuts { socket.stopCutting() }
        // More than one message each, with a smaller one at the end.
        let bytes = (0..<(40 * 1_200 + 17)).map { UInt8(truncatingIfNeeded: $0 / 1_200) }
        try await send(bytes, size: 1_200, on: socket)
        let all = try await arrived(at: peer, count: 41)
        #expect(all.map(\.bytes.count) == [Int](repeating: 1_200, count: 40) + [17])
        #expect(all.flatMap(\.bytes).elementsEqual(bytes))
    }

    @Test("Marks of congestion are sent and reported", arguments: [SocketAddress.Family.ipv4, .ipv6])
    func marks(family: SocketAddress.Family) async throws {
        let address: SocketAddress =
            family == .ipv4
            ? .ipv4((127, 0, 0, 1), port: 0) : .ipv6([UInt8](repeating: 0, count: 15) + [1], port: 0)
        guard let peer = try? Peer(address) else { return }
        let socket = try DatagramSocket(to: peer.address, marked: SocketMark(codePoint: 10, priority: 0))
        try peer.connect(to: socket)
        for mark in UInt8(0)...3 {
            try await send([mark], size: 1_200, ecn: mark, on: socket)
            #expect(try await arrived(at: peer, count: 1) == [Datagram(bytes: [mark], ecn: mark)])
        }
        var byte: [UInt8] = [9]
        #expect(csys_send_datagrams(peer.descriptor, peer.address.systemFamily, &byte, 1, 1, 3, false) == 1)
        #expect(try await receive(1, from: socket) == [Datagram(bytes: [9], ecn: 3)])
    }

    @Test("A group of datagrams is received one by one")
    func joined() async throws {
        let peer = try Peer()
        let socket = try DatagramSocket(to: peer.address)
        try peer.connect(to: socket)
        let bytes = (0..<(40 * 1_000 + 1)).map { UInt8(truncatingIfNeeded: $0 / 1_000) }
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                csys_send_datagrams(peer.descriptor, AF_INET, $0.baseAddress, $0.count, 1_000, 0, socket.cutsDatagrams)
            }
            guard count > 0 else { break }
            sent += count
        }
        let all = try await receive(41, from: socket)
        #expect(all.map(\.bytes.count) == [Int](repeating: 1_000, count: 40) + [1])
        #expect(all.flatMap(\.bytes).elementsEqual(bytes))
    }

    @Test("A datagram that is too large for the device counts as sent")
    func tooLarge() async throws {
        let peer = try Peer()
        let socket = try DatagramSocket(to: peer.address)
        // Loopback takes 65,536 bytes with the headers of IP and UDP, and none is fragmented.
        let bytes = [UInt8](repeating: 1, count: 65_520)
        let progress = try bytes.withUnsafeBytes { try socket.send($0, size: bytes.count, ecn: 0) }
        #expect(progress == .moved(65_520))
        try await send([7], size: 1_200, on: socket)
        #expect(try await arrived(at: peer, count: 1) == [Datagram(bytes: [7], ecn: 0)])
    }

    @Test("A port without a process is reported, and the socket goes on")
    func refused() async throws {
        var peer: Peer? = try Peer()
        let address = try #require(peer?.address)
        peer = nil
        let socket = try DatagramSocket(to: address)
        try await send([1], size: 1_200, on: socket)
        let failure = await #expect(throws: IOFailure.self) { try await self.receive(1, from: socket) }
        guard case .system(ECONNREFUSED)? = failure?.code else {
            Issue.record("not refused: \(String(describing: failure))")
            return
        }
        let again = try socket.receive(into: DatagramBuffer())
        #expect(again == .blocked(.read))
    }

    /// A socket whose peer's port was closed, so that a report of that waits, and is open again.
    private func reopened() async throws -> (DatagramSocket, Peer) {
        var peer: Peer? = try Peer()
        let address = try #require(peer?.address)
        let socket = try DatagramSocket(to: address)
        peer = nil
        try await send([1], size: 1_200, on: socket)
        let again = try Peer(address)
        try again.connect(to: socket)
        return (socket, again)
    }

    @Test("A muted socket is not notified of a datagram until it is not mute any more") func mute() async throws {
        let peer = try Peer()
        let socket = try DatagramSocket(to: peer.address)
        defer { socket.close() }
        try peer.connect(to: socket)
        // What the registration notified of is taken.
        _ = try socket.receive(into: DatagramBuffer())
        socket.mute(true)
        var byte: [UInt8] = [7]
        #expect(csys_send_datagrams(peer.descriptor, AF_INET, &byte, 1, 1, 0, false) == 1)
        try await Poller.shared.sleep(until: Poller.now() + 20_000_000, StopToken())
        #expect(!socket.slot.mayHoldInput)
        socket.mute(false)
        for _ in 0..<10_000 where !socket.slot.mayHoldInput {
            try await Poller.shared.sleep(until: Poller.now() + 1_000_000, StopToken())
        }
        #expect(try await receive(1, from: socket) == [Datagram(bytes: [7], ecn: 0)])
    }

    @Test("A datagram behind a report of the network is received without a further notification")
    func reportFirst() async throws {
        let (socket, peer) = try await reopened()
        var byte: [UInt8] = [9]
        #expect(csys_send_datagrams(peer.descriptor, AF_INET, &byte, 1, 1, 0, false) == 1)
        // Both are noted before the first call, so that no notification is left for the second one.
        for _ in 0..<10_000 where !socket.slot.mayHoldInput {
            try await Poller.shared.sleep(until: Poller.now() + 1_000_000, StopToken())
        }
        try await Poller.shared.sleep(until: Poller.now() + 20_000_000, StopToken())
        #expect(throws: IOFailure.self) { try socket.receive(into: DatagramBuffer()) }
        #expect(socket.slot.mayHoldInput)
        #expect(try await receive(1, from: socket) == [Datagram(bytes: [9], ecn: 0)])
    }

    @Test("A report of the network that meets a send is thrown once, and the socket goes on")
    func reportOfSend() async throws {
        let (socket, peer) = try await reopened()
        let failure = await #expect(throws: IOFailure.self) { try await self.send([2], size: 1_200, on: socket) }
        guard case .system(ECONNREFUSED)? = failure?.code else {
            Issue.record("not refused: \(String(describing: failure))")
            return
        }
        let bytes = (0..<(4 * 1_200)).map { UInt8(truncatingIfNeeded: $0 / 1_200) }
        try await send(bytes, size: 1_200, on: socket)
        #expect(try await arrived(at: peer, count: 4).flatMap(\.bytes) == bytes)
    }

    @Test("A closed socket sends and receives nothing, and its slot is returned")
    func closed() throws {
        let peer = try Peer()
        let socket = try DatagramSocket(to: peer.address)
        socket.close()
        socket.close()
        #expect(throws: IOFailure.self) { try socket.receive(into: DatagramBuffer()) }
        #expect(throws: IOFailure.self) {
            try [UInt8(1)].withUnsafeBytes { try socket.send($0, size: 1_200, ecn: 0) }
        }
    }

    @Test("A Unix socket is not a peer for datagrams")
    func local() throws {
        let address = try SocketAddress.unix("/tmp/none")
        #expect(throws: IOFailure.self) { try DatagramSocket(to: address) }
    }
}

#endif
