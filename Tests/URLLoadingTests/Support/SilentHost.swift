// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting

/// A host that takes connections, reads, and never answers.
final class SilentHost: Sendable {
    private let listener: SocketListener
    private let taken = Lock<[SocketTransport]>([])
    private let token = StopToken()

    init() throws { listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0)) }

    var port: UInt16 { listener.address.port }

    /// Takes a connection and waits for its first byte: the client has connected, and begun to speak.
    func acceptFirstByte() async throws {
        let connection = try await listener.accept(token)
        taken.withLock { $0.append(connection) }
        token.attach(connection.slot)
        var byte = [UInt8](repeating: 0, count: 1)
        while true {
            let progress = try byte.withUnsafeMutableBytes { room in try connection.read(into: room) }
            guard case .blocked(let interest) = progress else { break }
            await Poller.shared.park(connection.slot, interest, token)
        }
        token.detach(connection.slot)
    }

    /// Takes a connection.
    func connects() async throws {
        let connection = try await listener.accept(token)
        taken.withLock { $0.append(connection) }
    }

    func close() {
        for connection in taken.withLock({ $0 }) { connection.close() }
        listener.close()
    }
}

/// An address that neither takes nor refuses a connection: its queue is full.
final class FullHost: Sendable {
    private let listener: SocketListener
    private let filler: SocketTransport

    init(_ address: (UInt8, UInt8, UInt8, UInt8) = (127, 0, 0, 1), port: UInt16 = 0) async throws {
        listener = try SocketListener(.ipv4(address, port: port), backlog: 0)
        filler = try await SocketTransport.connect(to: listener.address, StopToken())
    }

    var port: UInt16 { listener.address.port }

    func close() {
        filler.close()
        listener.close()
    }
}
