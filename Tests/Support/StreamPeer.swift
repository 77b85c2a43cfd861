// SPDX-License-Identifier: Apache-2.0

package import URLLoadingIO

/// The other end of a stream.
package final class StreamPeer: Sendable {
    package let transport: any Transport
    private let token = StopToken()

    package init(_ transport: any Transport) { self.transport = transport }

    /// Accepts the next connection.
    package convenience init(_ listener: SocketListener) async throws {
        self.init(try await listener.accept(StopToken()))
    }

    /// Returns the peer after a TLS handshake as the server.
    package func secured(by context: TLSServerContext) async throws -> StreamPeer {
        let transport = try TLSTransport(server: context, over: transport)
        try await transport.handshake(token)
        return StreamPeer(transport)
    }

    package func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    package func send(_ bytes: [UInt8]) async throws {
        var sent = 0
        while sent < bytes.count {
            switch try bytes.withUnsafeBytes({ try transport.write(UnsafeRawBufferPointer(rebasing: $0[sent...])) }) {
            case .moved(let count): sent += count
            case .end: return
            case .blocked(let interest): await Poller.shared.park(transport.slot, interest, token)
            }
        }
    }

    /// Returns this many bytes, or all up to the end.
    /// - Parameter atOnce: also fewer, but at least one.
    package func receive(_ count: Int = .max, atOnce: Bool = false) async throws -> [UInt8] {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while all.count < count {
            let most = min(buffer.count, count - all.count)
            switch try buffer.withUnsafeMutableBytes({
                try transport.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[..<most]))
            }) {
            case .moved(let moved):
                all += buffer[..<moved]
                if atOnce { return all }
            case .end: return all
            case .blocked(let interest): await Poller.shared.park(transport.slot, interest, token)
            }
        }
        return all
    }

    package func text(_ count: Int = .max) async throws -> String {
        String(decoding: try await receive(count), as: UTF8.self)
    }

    /// Echoes the input to its end.
    package func echo() async throws {
        while case let bytes = try await receive(atOnce: true), !bytes.isEmpty { try await send(bytes) }
        finish()
    }

    package func finish() { transport.finishWriting() }
    package func close() { transport.close() }
    package func reset() { (transport as? SocketTransport)?.abort() }
}
