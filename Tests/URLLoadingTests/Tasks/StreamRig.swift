// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// A listening socket, a session whose names all resolve to it, and the TLS settings of both.
final class StreamRig: Sendable {
    let listener: SocketListener
    let session: Session
    let clock = ManualClock()
    private let secure: TLSServerContext
    static let host = "stream.example"

    init(
        _ change: (inout Configuration) -> Void = { _ in },
        server: (inout TLSServerContext.Configuration) -> Void = { _ in }
    ) throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let identity = try authority.issue(.init(names: [Self.host]))
        var serverSide = TLSServerContext.Configuration(
            certificateChain: identity.certificatePEM, privateKey: identity.keyPEM)
        // A client that still offers HTTP here would be refused.
        serverSide.applicationProtocols = ["stream"]
        server(&serverSide)
        secure = try TLSServerContext(serverSide)
        listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        var configuration = Configuration.ephemeral
        configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
        configuration.networks.resolver = RecordingResolver()
        configuration.timeouts.idle = nil
        configuration.use(clock)
        change(&configuration)
        session = Session(configuration)
    }

    func task(secure: Bool = false) -> StreamTask {
        session.streamTask(host: Self.host, port: Int(listener.address.port), secure: secure)
    }

    /// The next connection.
    func accept(secure: Bool = false) async throws -> StreamPeer {
        try await peer(try await listener.accept(StopToken()), secure: secure)
    }

    func peer(_ transport: any Transport, secure: Bool) async throws -> StreamPeer {
        let peer = StreamPeer(transport)
        return secure ? try await peer.secured(by: self.secure) : peer
    }

    func secure(_ peer: StreamPeer) async throws -> StreamPeer { try await peer.secured(by: secure) }

    /// A stream and its peer.
    func connected(secure: Bool = false) async throws -> (StreamTask, StreamPeer) {
        let task = task(secure: secure).resumed()
        let peer = try await accept(secure: secure)
        // The peer may complete the handshake earlier than this side.
        try await task.connected()
        return (task, peer)
    }

    /// A session without connections ends at once; that it does shows that no stream is left.
    func finish() async {
        session.finishTasksAndInvalidate()
        await session.invalidated()
        listener.close()
    }
}

/// Opens a stream to a peer, and ends both after the closure.
nonisolated(nonsending) func withStream(
    secure: Bool = false, _ change: (inout Configuration) -> Void = { _ in },
    server: (inout TLSServerContext.Configuration) -> Void = { _ in },
    _ use: nonisolated(nonsending) (StreamRig, StreamTask, StreamPeer) async throws -> Void
) async throws {
    let rig = try StreamRig(change, server: server)
    let (task, peer) = try await rig.connected(secure: secure)
    try await use(rig, task, peer)
    task.cancel()
    peer.close()
    await rig.finish()
}

extension StreamTask {
    func text(atLeast least: Int = 1, atMost most: Int = 64 * 1024, timeout limit: Duration? = nil) async throws
        -> String
    {
        String(decoding: try await read(atLeast: least, atMost: most, timeout: limit).0, as: UTF8.self)
    }

    func write(_ text: String) async throws { try await write(Data(text.utf8)) }
}

/// Bytes that a lost or repeated piece would shift.
func pattern(_ count: Int, _ seed: UInt8) -> [UInt8] {
    let block = (0..<251).map { UInt8($0) ^ seed }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + block.count)
    while bytes.count < count { bytes += block }
    bytes.removeLast(bytes.count - count)
    return bytes
}
