// SPDX-License-Identifier: Apache-2.0

// The surroundings of TLS tests: an authority, a server with one of its certificates, and a client that trusts it, over
// loopback sockets or a transport with faults.

import Synchronization
import Testing
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoadingIO

struct TLSRig {
    let authority: TestCertificateAuthority
    let server: TLSServerContext
    let client: TLSContext

    init(
        _ options: TestCertificateOptions = .init(),
        through intermediate: (TestCertificateAuthority) throws -> TestCertificateAuthority = { $0 },
        server setServer: (inout TLSServerContext.Configuration) -> Void = { _ in },
        client setClient: (inout TLSConfiguration) -> Void = { _ in }
    ) throws {
        authority = try TestCertificateAuthority(commonName: "Test root")
        let identity = try intermediate(authority).issue(options)
        var serverSide = TLSServerContext.Configuration(
            certificateChain: identity.certificatePEM, privateKey: identity.keyPEM)
        setServer(&serverSide)
        server = try TLSServerContext(serverSide)
        var clientSide = TLSConfiguration()
        clientSide.roots = .pem(authority.pem)
        setClient(&clientSide)
        client = try TLSContext(clientSide)
    }

    struct Pair {
        let client: TLSTransport
        let server: TLSTransport
        /// The server's socket, for faults below TLS.
        let far: SocketTransport
    }

    /// Returns both ends after the handshake; throws the client's failure.
    func connect(
        _ name: TLSPeerName = .dns("localhost"), port: UInt16 = 443, role: TLSPeer.Role = .origin,
        offering protocols: [String]? = nil, with context: TLSContext? = nil, zone: String? = nil,
        through wrap: (SocketTransport) -> any Transport = { $0 }
    ) async throws -> Pair {
        let (near, far) = try await socketPair()
        var peer = TLSPeer(name, port: port, role: role, applicationProtocols: protocols)
        peer.zone = zone
        let client = try TLSTransport(client: context ?? self.client, peer: peer, over: wrap(near))
        let server = try TLSTransport(server: server, over: far)
        async let accepted: Void = handshakeOrClose(server)
        do {
            try await handshake(client)
        } catch {
            client.close()
            await accepted
            throw error
        }
        await accepted
        return Pair(client: client, server: server, far: far)
    }

    /// Returns the failure of a handshake that must fail.
    func failure(_ name: TLSPeerName = .dns("localhost"), offering protocols: [String]? = nil) async throws
        -> TLSFailure
    {
        do {
            _ = try await connect(name, offering: protocols)
        } catch let error as IOFailure {
            if case .tls(let failure) = error.code { return failure }
            throw error
        }
        throw Unexpected.success
    }
}

enum Unexpected: Error { case success }

func socketPair() async throws -> (SocketTransport, SocketTransport) {
    let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
    async let accepted = listener.accept(StopToken())
    let near = try await SocketTransport.connect(to: listener.address, StopToken())
    return (near, try await accepted)
}

func handshake(_ transport: TLSTransport, _ token: StopToken = StopToken()) async throws(IOFailure) {
    token.attach(transport.slot)
    defer { token.detach(transport.slot) }
    try await transport.handshake(token)
}

/// The server closes after a failure, as servers do.
func handshakeOrClose(_ transport: TLSTransport) async {
    do { try await handshake(transport) } catch { transport.close() }
}

func send(_ bytes: [UInt8], on transport: any Transport) async throws {
    let token = StopToken()
    var rest = bytes[...]
    while !rest.isEmpty {
        let progress = try rest.withUnsafeBytes { try transport.write($0) }
        switch progress {
        case .moved(let count): rest = rest.dropFirst(count)
        case .end: return
        case .blocked(let interest): await Poller.shared.park(transport.slot, interest, token)
        }
    }
}

/// Reads `count` bytes, or up to the end if `count` is nil.
func receive(_ count: Int? = nil, from transport: any Transport) async throws -> [UInt8] {
    let token = StopToken()
    var all: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 32 * 1024)
    while count.map({ all.count < $0 }) ?? true {
        let progress = try buffer.withUnsafeMutableBytes { try transport.read(into: $0) }
        switch progress {
        case .moved(let moved): all += buffer[..<moved]
        case .end: return all
        case .blocked(let interest): await Poller.shared.park(transport.slot, interest, token)
        }
    }
    return all
}

func tlsKind(_ error: (any Error)?) -> TLSFailure.Kind? {
    guard let failure = error as? IOFailure, case .tls(let tls) = failure.code else { return nil }
    return tls.kind
}

func systemError(_ error: (any Error)?) -> Int32? {
    guard let failure = error as? IOFailure, case .system(let number) = failure.code else { return nil }
    return number
}

func stopReason(_ error: (any Error)?) -> StopReason? {
    guard let failure = error as? IOFailure, case .stopped(let reason) = failure.code else { return nil }
    return reason
}

/// A transport that moves a few bytes in each call, reports "not now" between them, and stalls or fails where told.
final class ChoppingTransport: Transport {
    let inner: SocketTransport
    private let piece: Int
    private let rests: Bool
    private let readBudget: Atomic<Int>
    private let writeBudget: Atomic<Int>
    /// The error of a write beyond the budget; `nil` to stall the write.
    private let writeFailure: IOFailure.Code?
    private let turn = Atomic<Int>(0)
    private let sent = Lock<[UInt8]>([])
    let hasStalled = Flag()

    init(
        _ inner: SocketTransport, piece: Int = .max, rests: Bool = false, reads: Int = .max, writes: Int = .max,
        writesFailWith writeFailure: IOFailure.Code? = nil
    ) {
        self.inner = inner
        self.piece = piece
        self.rests = rests
        readBudget = Atomic(reads)
        writeBudget = Atomic(writes)
        self.writeFailure = writeFailure
    }

    var written: [UInt8] { sent.withLock { $0 } }
    /// From now on no byte is accepted.
    func endWrites() { writeBudget.store(0, ordering: .relaxed) }
    var slot: PollSlot { inner.slot }
    func hasPendingInput(askingKernel asks: Bool) -> Bool { inner.hasPendingInput(askingKernel: asks) }
    var description: String { "chopped \(inner.description)" }
    func finishWriting() { inner.finishWriting() }
    func close() { inner.close() }

    /// Every other call reports "not now", so that each piece is waited for.
    private func rest(_ interest: PollSlot.Interest) -> Progress? {
        guard rests, turn.add(1, ordering: .relaxed).newValue % 2 == 0 else { return nil }
        slot.wake()
        return .blocked(interest)
    }

    private func allowed(_ count: Int, _ budget: borrowing Atomic<Int>) -> Int {
        min(count, piece, budget.load(ordering: .relaxed))
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Progress {
        if let rest = rest(.read) { return rest }
        let count = allowed(buffer.count, readBudget)
        guard count > 0 else {
            // The peer's bytes are lost: if they stayed in the socket, this wait would look like a lost wake-up.
            while case .moved(1...) = try inner.read(into: buffer) {}
            return stall(.read)
        }
        let progress = try inner.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
        if case .moved(let moved) = progress { readBudget.subtract(moved, ordering: .relaxed) }
        return progress
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(IOFailure) -> Progress {
        if let rest = rest(.write) { return rest }
        let count = allowed(bytes.count, writeBudget)
        guard count > 0 else {
            if let writeFailure { throw IOFailure(writeFailure, .write) }
            return stall(.write)
        }
        let progress = try inner.write(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        if case .moved(let moved) = progress {
            writeBudget.subtract(moved, ordering: .relaxed)
            sent.withLock { $0.append(contentsOf: bytes[..<moved]) }
        }
        return progress
    }

    private func stall(_ interest: PollSlot.Interest) -> Progress {
        hasStalled.raise()
        // What the socket holds is not to be read.
        _ = slot.beginRead()
        return .blocked(interest)
    }
}
