// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

/// Passes bytes on between a client and a port of this machine, and shows the first that a client sends.
/// Each connection is served until either side ends it.
func relayConnections(
    _ listener: SocketListener, to port: UInt16, _ token: StopToken, _ seen: @escaping @Sendable ([UInt8]) -> Void
) async {
    await withDiscardingTaskGroup { group in
        while let client = try? await listener.accept(token) {
            group.addTask {
                guard let server = try? await SocketTransport.connect(to: .ipv4((127, 0, 0, 1), port: port), token)
                else { return client.close() }
                await withDiscardingTaskGroup { pair in
                    pair.addTask { await pump(from: client, to: server, token, seen) }
                    pair.addTask { await pump(from: server, to: client, token) { _ in } }
                }
                client.close()
                server.close()
            }
        }
    }
    listener.close()
}

/// The same to the port that the first bytes of a client choose.
func relayConnections(_ listener: SocketListener, _ token: StopToken, choosing: @escaping @Sendable ([UInt8]) -> UInt16)
    async
{
    await withDiscardingTaskGroup { group in
        while let client = try? await listener.accept(token) {
            group.addTask {
                var buffer = [UInt8](repeating: 0, count: 16 * 1024)
                token.attach(client.slot)
                let count = await receive(&buffer, client, token) ?? 0
                token.detach(client.slot)
                let first = Array(buffer[..<count])
                guard
                    let server = try? await SocketTransport.connect(
                        to: .ipv4((127, 0, 0, 1), port: choosing(first)), token),
                    await send(first, server, token)
                else { return client.close() }
                await withDiscardingTaskGroup { pair in
                    pair.addTask { await pump(from: client, to: server, token) { _ in } }
                    pair.addTask { await pump(from: server, to: client, token) { _ in } }
                }
                client.close()
                server.close()
            }
        }
    }
    listener.close()
}

private func pump(from: SocketTransport, to: SocketTransport, _ token: StopToken, _ seen: (([UInt8]) -> Void)) async {
    token.attach(from.slot)
    defer { token.detach(from.slot) }
    var buffer = [UInt8](repeating: 0, count: 16 * 1024)
    var isFirst = true
    while true {
        guard let count = await receive(&buffer, from, token), count > 0 else { break }
        if isFirst { seen(Array(buffer[..<count])) }
        isFirst = false
        guard await send(Array(buffer[..<count]), to, token) else { break }
    }
    to.finishWriting()
}

private func receive(_ buffer: inout [UInt8], _ socket: SocketTransport, _ token: StopToken) async -> Int? {
    while token.stopReason == nil {
        guard let progress = try? buffer.withUnsafeMutableBytes({ try socket.read(into: $0) }) else { return nil }
        switch progress {
        case .moved(let count): return count
        case .end: return 0
        case .blocked(let interest): await Poller.shared.park(socket.slot, interest, token)
        }
    }
    return nil
}

private func send(_ bytes: [UInt8], _ socket: SocketTransport, _ token: StopToken) async -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
        guard token.stopReason == nil, let progress = try? rest.withUnsafeBytes({ try socket.write($0) }) else {
            return false
        }
        switch progress {
        case .moved(let count): rest = rest.dropFirst(count)
        case .end: return false
        case .blocked(let interest): await Poller.shared.park(socket.slot, interest, token)
        }
    }
    return true
}

/// RFC 8446 4.1.2, as far as the numbers of the extensions.
enum ClientHello {
    static func extensions(of record: [UInt8]) -> [Int] {
        var place = 5 + 4 + 2 + 32
        func number(_ count: Int) -> Int? {
            guard place + count <= record.count else { return nil }
            defer { place += count }
            return record[place..<place + count].reduce(0) { $0 << 8 | Int($1) }
        }
        guard record.first == 22, let session = number(1) else { return [] }
        place += session
        guard let ciphers = number(2) else { return [] }
        place += ciphers
        guard let methods = number(1) else { return [] }
        place += methods
        guard let length = number(2) else { return [] }
        let end = place + length
        var found: [Int] = []
        while place < end, let kind = number(2), let size = number(2) {
            found.append(kind)
            place += size
        }
        return found
    }
}
