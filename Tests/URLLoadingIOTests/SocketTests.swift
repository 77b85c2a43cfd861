// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import URLLoadingCSystem
import URLLoadingTestSupport

@testable import URLLoadingIO

@Suite(.timeLimit(.minutes(4)))
struct SocketTests {
    private static let anywhere = SocketAddress.ipv4((127, 0, 0, 1), port: 0)

    static func settle() async throws {
        try await Poller.shared.sleep(until: Poller.now() + 1_000_000, StopToken())
    }

    private func unixPath() -> String { "/tmp/url-loading-\(getpid())-\(UInt32.random(in: 0 ..< .max)).sock" }

    @Test("Bytes go in both directions, and closing one direction keeps the other open")
    func bothWays() async throws {
        let (near, far) = try await socketPair()
        try await send(Array("ping".utf8), on: near)
        #expect(try await receive(4, from: far) == Array("ping".utf8))
        near.finishWriting()
        #expect(try await receive(from: far) == [])
        try await send(Array("pong".utf8), on: far)
        far.close()
        #expect(try await receive(from: near) == Array("pong".utf8))
        far.close()
    }

    @Test("The SIGPIPE of a file that is sent is taken back in a thread that has the signal blocked, too")
    func brokenPipe() {
        var pair: [Int32] = [0, 0]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        close(pair[1])
        let (sent, isPending) = sendFile(100, into: pair[0])
        #expect(sent == -Int(EPIPE) && !isPending)
    }

    @Test("So is that of a peer that leaves while a file is sent, of which a part was taken") func brokenInTheMiddle()
        throws
    {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        #expect(Self.anywhere.withSystemAddress { bind(listener, $0, $1) } == 0 && listen(listener, 1) == 0)
        var (storage, length) = (sockaddr_storage(), socklen_t(MemoryLayout<sockaddr_storage>.size))
        #expect(csys_local_address(listener, &storage, &length) == 0)
        let address = try #require(SocketAddress(storage, length: length))
        let near = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #expect(address.withSystemAddress { connect(near, $0, $1) } == 0)
        close(accept(listener, nil, nil))
        // Until the end has arrived: the first segment is then answered with a reset, within the call that sends it.
        #expect(csys_wait_readable(near, 10_000_000_000) == 1)
        let (sent, isPending) = sendFile(1 << 20, into: near)
        #expect((1..<1 << 20).contains(sent) && !isPending, "\(sent)")
    }

    /// Sends a part of a file in a thread that has SIGPIPE blocked, and closes the socket.
    /// - Returns: the result, and whether the signal is pending.
    private func sendFile(_ count: Int, into descriptor: Int32) -> (result: Int, isPending: Bool) {
        let file = open("/proc/self/exe", O_RDONLY)
        defer {
            close(file)
            close(descriptor)
        }
        var (signals, before, pending) = (sigset_t(), sigset_t(), sigset_t())
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, &before)
        let sent = csys_send_file(descriptor, file, 0, count)
        sigpending(&pending)
        let isPending = sigismember(&pending, SIGPIPE) == 1
        var none = timespec()
        if isPending { sigtimedwait(&signals, nil, &none) }
        pthread_sigmask(SIG_SETMASK, &before, nil)
        return (sent, isPending)
    }

    @Test("A connected socket knows the addresses of both ends")
    func addresses() async throws {
        let (near, far) = try await socketPair()
        #expect(near.peer == far.localAddress)
        #expect(far.peer == near.localAddress)
        #expect(near.description == "tcp(\(near.peer?.description ?? ""))")
    }

    @Test("A socket takes the first free port of its range, and reports that there is none")
    func localPorts() async throws {
        let listener = try SocketListener(Self.anywhere)
        // A port that was free a moment ago; another process may take it, so several are offered.
        let taken = try SocketListener(Self.anywhere)
        let first = taken.address.port
        var setup = SocketSetup()
        setup.ports = first...max(first, min(first &+ 200, 65_535))
        let near = try await SocketTransport.connect(to: listener.address, with: setup, StopToken())
        let port = try #require(near.localAddress?.port)
        #expect(port > first && setup.ports?.contains(port) == true)
        setup.ports = first...first
        await #expect(throws: IOFailure.self) {
            try await SocketTransport.connect(to: listener.address, with: setup, StopToken())
        }
        withExtendedLifetime(taken) {}
        near.close()
    }

    @Test("Keep-alive probes are set before a socket connects, and are off by default")
    func keepAlive() async throws {
        let listener = try SocketListener(Self.anywhere)
        func option(_ level: Int32, _ name: Int32, of socket: SocketTransport) -> Int32 {
            var value: Int32 = -1
            var size = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(socket.descriptor, level, name, &value, &size)
            return value
        }
        let plain = try await SocketTransport.connect(to: listener.address, StopToken())
        #expect(option(SOL_SOCKET, SO_KEEPALIVE, of: plain) == 0)
        var setup = SocketSetup()
        setup.keepAlive = .init(seconds: 7, count: 3)
        let probed = try await SocketTransport.connect(to: listener.address, with: setup, StopToken())
        #expect(option(SOL_SOCKET, SO_KEEPALIVE, of: probed) == 1)
        let tcp = Int32(IPPROTO_TCP)
        #expect(option(tcp, TCP_KEEPIDLE, of: probed) == 7 && option(tcp, TCP_KEEPINTVL, of: probed) == 7)
        #expect(option(tcp, TCP_KEEPCNT, of: probed) == 3)
        plain.close()
        probed.close()
    }

    @Test("A connection in conversation delays its acknowledgements, until it is told to acknowledge at once")
    func acknowledgement() async throws {
        let (near, far) = try await socketPair()
        var delays: Bool {
            var value: Int32 = -1
            var size = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(near.descriptor, Int32(IPPROTO_TCP), TCP_QUICKACK, &value, &size)
            return value == 0
        }
        // Linux delays once requests and answers alternate (tcp(7), TCP_QUICKACK).
        for _ in 0..<8 {
            try await send([1], on: near)
            _ = try await receive(1, from: far)
            try await send([2], on: far)
            _ = try await receive(1, from: near)
        }
        #expect(delays)
        near.acknowledge()
        #expect(!delays)
        near.close()
        near.acknowledge()
        far.close()
    }

    @Test("Pending input is reported: bytes, an end, or a reset", arguments: ["bytes", "end", "reset", "nothing"])
    func pendingInput(_ kind: String) async throws {
        let (near, far) = try await socketPair()
        try await Self.settle()
        #expect(!near.hasPendingInput(askingKernel: false))
        switch kind {
        case "bytes": try await send([1], on: far)
        case "end": far.finishWriting()
        case "reset": far.abort()
        default: break
        }
        guard kind != "nothing" else {
            try await Self.settle()
            return #expect(!near.hasPendingInput(askingKernel: false))
        }
        try await near.eventuallyHasInput()
    }

    @Test("An end that arrives with bytes is reported after they are read", arguments: [false, true])
    func endBehindBytes(_ isReset: Bool) async throws {
        let (near, far) = try await socketPair()
        try await send([1, 2, 3], on: far)
        if isReset { far.abort() } else { far.close() }
        try await Self.settle()
        // Like a reader that had to wait: the wake-up of the slot is used for the bytes.
        await Poller.shared.park(near.slot, .read, StopToken())
        var buffer = [UInt8](repeating: 0, count: 100)
        let progress = try buffer.withUnsafeMutableBytes { try near.read(into: $0) }
        #expect(progress == .moved(3))
        #expect(near.hasPendingInput(askingKernel: false))
    }

    @Test("Bytes beyond the buffer of a read are reported as pending")
    func moreThanAsked() async throws {
        let (near, far) = try await socketPair()
        try await send([1, 2, 3, 4], on: far)
        try await Self.settle()
        await Poller.shared.park(near.slot, .read, StopToken())
        var buffer = [UInt8](repeating: 0, count: 2)
        _ = try buffer.withUnsafeMutableBytes { try near.read(into: $0) }
        #expect(near.hasPendingInput(askingKernel: false))
        #expect(near.hasPendingInput(askingKernel: false))
        _ = try buffer.withUnsafeMutableBytes { try near.read(into: $0) }
        #expect(!near.hasPendingInput(askingKernel: false))
    }

    @Test("A reset is an error for the reader; writing to a closed peer is an error and raises no signal")
    func reset() async throws {
        let (near, far) = try await socketPair()
        far.abort()
        let error = await #expect(throws: IOFailure.self) { _ = try await receive(from: near) }
        #expect(systemError(error) == ECONNRESET)
        let written = await #expect(throws: IOFailure.self) {
            while true { try await send([1], on: near) }
        }
        #expect(systemError(written) == EPIPE)
    }

    @Test("a port without a listener refuses the connection")
    func refused() async throws {
        let listener = try SocketListener(Self.anywhere)
        listener.close()
        let error = await #expect(throws: IOFailure.self) {
            try await SocketTransport.connect(to: listener.address, StopToken())
        }
        #expect(systemError(error) == ECONNREFUSED)
        #expect(error?.operation == .connect)
    }

    @Test("Listening on a used port fails")
    func inUse() throws {
        let listener = try SocketListener(Self.anywhere)
        defer { listener.close() }
        let error = #expect(throws: IOFailure.self) { try SocketListener(listener.address) }
        #expect(systemError(error) == EADDRINUSE)
        #expect(error?.operation == .listen)
    }

    @Test("A listener holds its port at the other loopback address, where it refuses connections")
    func bothLoopbackAddresses() async throws {
        let everyLoopback = SocketAddress.ipv6([UInt8](repeating: 0, count: 15) + [1], port: 0)
        guard let probe = try? SocketListener(everyLoopback) else { return }  // this machine has no IPv6
        probe.close()
        let listener = try SocketListener(Self.anywhere)
        defer { listener.close() }
        let twin = everyLoopback.withPort(listener.address.port)
        let error = await #expect(throws: IOFailure.self) {
            try await SocketTransport.connect(to: twin, StopToken())
        }
        #expect(systemError(error) == ECONNREFUSED)
        // A socket that binds the port without asking for its reuse, as another program would.
        let stranger = socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(stranger) }
        let bound = twin.withSystemAddress { bind(stranger, $0, $1) }
        #expect(bound == -1 && errno == EADDRINUSE)
        // Listening on both addresses with one port takes asking for it.
        let second = try SocketListener(twin)
        second.close()
    }

    @Test("A stopped token ends accept, read and write")
    func stopped() async throws {
        let listener = try SocketListener(Self.anywhere)
        defer { listener.close() }
        let token = StopToken()
        async let accepted = Result { try await listener.accept(token) }
        token.stop(.cancelled)
        #expect(stopReason((await accepted).error) == .cancelled)

        let (near, far) = try await socketPair()
        let reading = StopToken()
        reading.attach(near.slot)
        let reader = Task {
            var byte: [UInt8] = [0]
            while true {
                try reading.check(.read)
                if case .moved = try byte.withUnsafeMutableBytes({ try near.read(into: $0) }) { return }
                await Poller.shared.park(near.slot, .read, reading)
            }
        }
        try await near.slot.eventuallyParked()
        reading.stop(.idle)
        let error = await #expect(throws: IOFailure.self) { try await reader.value }
        #expect(stopReason(error) == .idle)
        reading.detach(near.slot)
        far.close()
    }

    @Test("A large transfer waits for its reader and arrives completely")
    func large() async throws {
        let (near, far) = try await socketPair()
        let bytes = (0..<(8 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        async let sent: Void = send(bytes, on: near)
        let received = try await receive(bytes.count, from: far)
        try await sent
        #expect(received == bytes)
    }

    @Test("A Unix socket is listened on and connected to by its path")
    func unix() async throws {
        let path = unixPath()
        defer { unlink(path) }
        let address = try SocketAddress.unix(path)
        let missing = await #expect(throws: IOFailure.self) {
            try await SocketTransport.connect(to: address, StopToken())
        }
        #expect(systemError(missing) == ENOENT)
        #expect(SystemError.kind(ENOENT) == .refused)
        let listener = try SocketListener(address)
        defer { listener.close() }
        #expect(listener.address == address)
        #expect(listener.address.description == "unix:\(path)")
        #expect(listener.address.port == 0)
        async let accepted = listener.accept(StopToken())
        let near = try await SocketTransport.connect(to: address, StopToken())
        let far = try await accepted
        try await send(Array("through".utf8), on: near)
        near.close()
        #expect(try await receive(from: far) == Array("through".utf8))
        // The path stays in use until its file is removed.
        #expect(systemError(#expect(throws: IOFailure.self) { try SocketListener(address) }) == EADDRINUSE)
    }

    @Test(
        "A path that does not fit into an address is refused",
        arguments: ["", "a\0b", String(repeating: "x", count: 108)])
    func badPath(_ path: String) {
        let error = #expect(throws: IOFailure.self) { try SocketAddress.unix(path) }
        guard case .invalidAddress? = error?.code else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("Addresses have descriptions, and can get another port")
    func description() throws {
        #expect(SocketAddress.ipv4((192, 0, 2, 1), port: 80).description == "192.0.2.1:80")
        #expect(SocketAddress.ipv4((192, 0, 2, 1), port: 0).withPort(443).port == 443)
        let six = SocketAddress.ipv6([0x20, 1, 0xd, 0xb8] + [UInt8](repeating: 0, count: 11) + [1], port: 8080)
        #expect(six.description == "[2001:db8::1]:8080")
        #expect(six.withPort(1) == .ipv6([0x20, 1, 0xd, 0xb8] + [UInt8](repeating: 0, count: 11) + [1], port: 1))
        #expect(try SocketAddress.scope(of: "7") == 7)
        #expect(throws: IOFailure.self) { try SocketAddress.scope(of: "no-such-interface") }
        let unix = try SocketAddress.unix("/x")
        #expect(unix.withPort(9) == unix)
    }

    @Test("Slots are reused after sockets are closed")
    func slots() async throws {
        let slot: PollSlot
        do {
            let (near, far) = try await socketPair()
            slot = near.slot
            near.close()
            near.close()
            far.close()
        }
        #expect(!slot.hasWaiter)
    }
}

extension Result where Failure == any Error {
    init(_ make: () async throws -> Success) async {
        do { self = .success(try await make()) } catch { self = .failure(error) }
    }

    var error: (any Error)? {
        if case .failure(let error) = self { error } else { nil }
    }
}
