// SPDX-License-Identifier: Apache-2.0

// The SOCKS proxy: the server side of RFC 1928, RFC 1929 and SOCKS 4A, for CONNECT only.

import URLLoadingWire

extension TestProxyConnection {
    func serveSOCKS() async throws(ConnectionEnded) {
        let version = try await take(1)[0]
        switch version {
        case 4: try await serveVersion4()
        case 5: try await serveVersion5()
        default: throw ConnectionEnded()
        }
    }

    private func serveVersion5() async throws(ConnectionEnded) {
        let methods = try await take(Int(try await take(1)[0]))
        try await applyFaults(.greeting)
        let wanted: UInt8 = proxy.configuration.user == nil ? 0 : 2
        // Garbage is sent at once; other faults occur when the request is known.
        if case .garbage = fault { try await answer([]) }
        guard methods.contains(wanted) else {
            try await send([5, 0xFF])
            throw ConnectionEnded()
        }
        try await send([5, wanted])
        var credentials: String?
        if wanted == 2 { credentials = try await authenticate() }
        let head = try await take(4)
        let host = try await host(head[3])
        let port = try await port()
        record("SOCKS5", "\(host.text):\(port)", credentials: credentials)
        try await applyFaults(.request)
        guard head[1] == 1 else { return try await answer([5, 7, 0, 1, 0, 0, 0, 0, 0, 0]) }
        if case .refuse(let code) = fault {
            return try await answer([5, UInt8(truncatingIfNeeded: code), 0, 1, 0, 0, 0, 0, 0, 0])
        }
        try await tunnel(
            to: host.host, port, accepting: [5, 0, 0, 1, 127, 0, 0, 1, 0, 0], refusing: [5, 5, 0, 1, 0, 0, 0, 0, 0, 0])
    }

    private func authenticate() async throws(ConnectionEnded) -> String {
        _ = try await take(1)
        let user = try await text()
        let password = try await text()
        try await applyFaults(.authentication)
        let isAccepted = user == proxy.configuration.user && password == proxy.configuration.password
        try await send([1, isAccepted ? 0 : 1])
        guard isAccepted else { throw ConnectionEnded() }
        return "\(user):\(password)"
    }

    private func text() async throws(ConnectionEnded) -> String {
        String(decoding: try await take(Int(try await take(1)[0])), as: UTF8.self)
    }

    private func port() async throws(ConnectionEnded) -> UInt16 {
        let bytes = try await take(2)
        return UInt16(bytes[0]) << 8 | UInt16(bytes[1])
    }

    private func host(_ kind: UInt8) async throws(ConnectionEnded) -> (text: String, host: SOCKSAddress.Host) {
        switch kind {
        case 1:
            let bytes = try await take(4)
            return (Origin.Host(address: bytes)?.description ?? "", .ipv4(bytes))
        case 3:
            let name = try await text()
            return (name, .name(Array(name.utf8)))
        case 4:
            let bytes = try await take(16)
            return (Origin.Host(address: bytes)?.description ?? "", .ipv6(bytes))
        default: throw ConnectionEnded()
        }
    }

    private func serveVersion4() async throws(ConnectionEnded) {
        _ = try await take(1)
        let port = try await port()
        let address = try await take(4)
        let user = try await line()
        let isName = address[..<3] == [0, 0, 0] && address[3] != 0
        let name = isName ? try await line() : nil
        try await applyFaults(.greeting)
        if case .garbage = fault { try await answer([]) }
        record(
            "SOCKS4A", "\(name ?? Origin.Host(address: address)?.description ?? ""):\(port)",
            credentials: user.isEmpty ? nil : user)
        try await applyFaults(.request)
        if case .refuse(let code) = fault {
            return try await answer([0, UInt8(truncatingIfNeeded: code), 0, 0, 0, 0, 0, 0])
        }
        if let wanted = proxy.configuration.user, wanted != user { return try await answer([0, 93, 0, 0, 0, 0, 0, 0]) }
        let host: SOCKSAddress.Host = name.map { .name(Array($0.utf8)) } ?? .ipv4(address)
        try await tunnel(to: host, port, accepting: [0, 90, 0, 0, 0, 0, 0, 0], refusing: [0, 91, 0, 0, 0, 0, 0, 0])
    }

    /// Reads text up to a zero byte.
    private func line() async throws(ConnectionEnded) -> String {
        var bytes: [UInt8] = []
        while bytes.count < 512 {
            let byte = try await take(1)[0]
            if byte == 0 { return String(decoding: bytes, as: UTF8.self) }
            bytes.append(byte)
        }
        throw ConnectionEnded()
    }
}
