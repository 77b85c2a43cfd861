// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingIO
import URLLoadingTesting

/// The peer of a stream.
final class StreamPeer: Sendable {
    let transport: any Transport
    private let token = StopToken()

    init(_ transport: any Transport) { self.transport = transport }

    /// Accepts the next connection.
    convenience init(_ listener: SocketListener) async throws { self.init(try await listener.accept(StopToken())) }

    func secured(by context: TLSServerContext) async throws -> StreamPeer {
        let transport = try TLSTransport(server: context, over: transport)
        try await transport.handshake(token)
        return StreamPeer(transport)
    }

    func send(_ text: String) async throws {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            switch try bytes.withUnsafeBytes({ try transport.write(UnsafeRawBufferPointer(rebasing: $0[sent...])) }) {
            case .moved(let count): sent += count
            case .end: return
            case .blocked(let interest): await Poller.shared.park(transport.slot, interest, token)
            }
        }
    }

    /// Reads this many bytes, or all up to the end.
    func text(_ count: Int = .max) async throws -> String {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while all.count < count {
            let most = min(buffer.count, count - all.count)
            switch try buffer.withUnsafeMutableBytes({
                try transport.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[..<most]))
            }) {
            case .moved(let moved): all += buffer[..<moved]
            case .end: return String(decoding: all, as: UTF8.self)
            case .blocked(let interest): await Poller.shared.park(transport.slot, interest, token)
            }
        }
        return String(decoding: all, as: UTF8.self)
    }

    func finish() { transport.finishWriting() }
    func close() { transport.close() }
}
