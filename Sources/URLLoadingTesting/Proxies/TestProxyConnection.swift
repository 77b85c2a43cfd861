// SPDX-License-Identifier: Apache-2.0

// One connection of the proxy. It belongs to the task that serves it; other tasks only end it.

import URLLoadingIO
import URLLoadingWire

final class TestProxyConnection: ServedConnection, @unchecked Sendable {
    // Unchecked: everything except `token` is accessed only by the serving task.
    let number: Int
    let proxy: TestProxy
    private let socket: SocketTransport
    let token = StopToken()
    var transport: any Transport
    var input: [UInt8] = []
    private var serverName: String?

    /// Thrown when serving is over.
    struct ConnectionEnded: Error {}

    init(_ socket: SocketTransport, number: Int, _ proxy: TestProxy) {
        self.socket = socket
        self.number = number
        self.proxy = proxy
        transport = socket
    }

    func end() { token.stop(.cancelled) }

    func serve() async {
        token.attach(socket.slot)
        do throws(ConnectionEnded) {
            try await applyFaults(.accept)
            if let context = proxy.tls { try await secure(context) }
            switch proxy.configuration.kind {
            case .http: while true { try await serveHTTP() }
            case .socks: try await serveSOCKS()
            }
        } catch {}
        token.detach(socket.slot)
        transport.close()
        proxy.closed(number)
    }

    private func secure(_ context: TLSServerContext) async throws(ConnectionEnded) {
        do throws(IOFailure) {
            let secured = try TLSTransport(server: context, over: socket)
            transport = secured
            try await secured.handshake(token)
            serverName = secured.negotiated?.serverName
        } catch { throw ConnectionEnded() }
    }

    @discardableResult
    func record(_ method: String, _ target: String, _ headers: Headers = Headers(), credentials: String? = nil)
        -> TestProxy.RecordedRequest
    {
        let asked = TestProxy.RecordedRequest(
            method: method, target: target, headers: headers, credentials: credentials, connection: number,
            serverName: serverName)
        proxy.record(asked)
        return asked
    }

    // MARK: Faults

    var fault: TestProxy.Fault? { proxy.configuration.fault }

    func applyFaults(_ point: TestProxy.Point) async throws(ConnectionEnded) {
        switch fault {
        case .stall(point): try await stall()
        case .close(point): throw ConnectionEnded()
        default: break
        }
    }

    /// Waits until the client leaves.
    private func stall() async throws(ConnectionEnded) {
        proxy.change { $0.stalled += 1 }
        defer { proxy.change { $0.stalled -= 1 } }
        while true { _ = try await read() }
    }

    /// Sends a reply, unless a fault replaces it.
    func answer(_ bytes: [UInt8]) async throws(ConnectionEnded) {
        switch fault {
        case .garbage: try await send(Array("220 mail.example ESMTP\r\n".utf8))
        case .answer(let other): try await send(other)
        case .stall(.answer), .close(.answer):
            try await send(Array(bytes[..<(bytes.count / 2)]))
            try await applyFaults(.answer)
        default: return try await send(bytes)
        }
        // Wait like a server that takes its reply for valid.
        try await stall()
    }

    // MARK: Bytes

    /// Reads at least one more byte.
    func read() async throws(ConnectionEnded) -> ArraySlice<UInt8> {
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            guard token.stopReason == nil else { throw ConnectionEnded() }
            let progress = buffer.withUnsafeMutableBytes { room in
                Result { () throws(IOFailure) in try transport.read(into: room) }
            }
            switch progress {
            case .success(.moved(let count)): return buffer[..<count]
            case .success(.blocked(let interest)): await Poller.shared.park(transport.slot, interest, token)
            case .success(.end), .failure: throw ConnectionEnded()
            }
        }
    }

    func take(_ count: Int) async throws(ConnectionEnded) -> [UInt8] {
        while input.count < count { input += try await read() }
        defer { input.removeFirst(count) }
        return Array(input[..<count])
    }

    func send(_ bytes: [UInt8]) async throws(ConnectionEnded) {
        guard await ProxyPump.send(bytes[...], to: transport, token) else { throw ConnectionEnded() }
    }

    /// Connects to the destination, and relays bytes until both sides have ended.
    func tunnel(to host: SOCKSAddress.Host, _ port: UInt16, accepting: [UInt8], refusing: [UInt8])
        async throws(ConnectionEnded)
    {
        let address: SocketAddress =
            switch host {
            case .ipv4(let bytes): .ipv4((bytes[0], bytes[1], bytes[2], bytes[3]), port: port)
            case .ipv6(let bytes): .ipv6(bytes, port: port)
            case .name: .ipv4((127, 0, 0, 1), port: port)
            }
        guard let origin = try? await SocketTransport.connect(to: address, token) else {
            try await answer(refusing)
            throw ConnectionEnded()
        }
        defer { origin.close() }
        var first = accepting
        if case .extraBytes(let extra) = fault { first += extra }
        try await answer(first)
        guard await ProxyPump.send(input[...], to: origin, token) else { throw ConnectionEnded() }
        await ProxyPump.run(transport, origin, token)
        throw ConnectionEnded()
    }
}

/// Relays bytes in both directions.
enum ProxyPump {
    static func run(_ a: any Transport, _ b: any Transport, _ token: StopToken) async {
        token.attach(b.slot)
        defer { token.detach(b.slot) }
        await withDiscardingTaskGroup { pair in
            pair.addTask { await pass(from: a, to: b, token) }
            pair.addTask { await pass(from: b, to: a, token) }
        }
    }

    private static func pass(from: any Transport, to: any Transport, _ token: StopToken) async {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        reading: while token.stopReason == nil {
            let progress = buffer.withUnsafeMutableBytes { room in
                Result { () throws(IOFailure) in try from.read(into: room) }
            }
            switch progress {
            case .success(.moved(let count)):
                guard await send(buffer[..<count], to: to, token) else { break reading }
            case .success(.blocked(let interest)): await Poller.shared.park(from.slot, interest, token)
            case .success(.end): break reading
            case .failure:
                // A failure on one side ends the other side too.
                token.stop(.cancelled)
                return
            }
        }
        to.finishWriting()
    }

    static func send(_ bytes: ArraySlice<UInt8>, to: any Transport, _ token: StopToken) async -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            guard token.stopReason == nil else { return false }
            let progress = rest.withUnsafeBytes { bytes in Result { () throws(IOFailure) in try to.write(bytes) } }
            switch progress {
            case .success(.moved(let count)): rest = rest.dropFirst(count)
            case .success(.blocked(let interest)): await Poller.shared.park(to.slot, interest, token)
            case .success(.end), .failure: return false
            }
        }
        return true
    }
}
