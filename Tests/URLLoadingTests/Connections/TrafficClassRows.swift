// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// The marks of connections, as received by the peer and as set on this side's socket.
@Suite(.timeLimit(.minutes(4)))
struct TrafficClassRows {
    /// Accepts connections, records the mark of the first packet of each, and answers every request.
    final class Listener: Sendable {
        let descriptor: Int32, url: URL
        let seen = Watched<[Int]>([])
        private static let threads = BlockingThreads(limit: 256)

        /// The code points of the connections, in the order of acceptance.
        var marks: [Int] { seen.value }

        init?(isSixth: Bool) {
            let family = isSixth ? AF_INET6 : AF_INET
            let descriptor = socket(family, Int32(SOCK_STREAM.rawValue), 0)
            var one: Int32 = 1
            // TCP_SAVE_SYN: the kernel keeps the first packet of each connection for inspection.
            setsockopt(descriptor, Int32(IPPROTO_TCP), 27, &one, socklen_t(MemoryLayout<Int32>.size))
            guard (isSixth ? Self.bindSixth(descriptor) : Self.bindFourth(descriptor)) == 0, listen(descriptor, 16) == 0
            else {
                close(descriptor)
                return nil
            }
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            _ = withUnsafeMutablePointer(to: &storage) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
            }
            guard let port = SocketAddress(storage, length: length)?.port,
                let url = URL(string: "http://\(isSixth ? "[::1]" : "127.0.0.1"):\(port)/")
            else {
                close(descriptor)
                return nil
            }
            (self.descriptor, self.url) = (descriptor, url)
            Self.threads.run { self.acceptAll() }
        }

        private static func bindFourth(_ descriptor: Int32) -> Int32 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            return withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }

        private static func bindSixth(_ descriptor: Int32) -> Int32 {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_addr = in6addr_loopback
            return withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size))
                }
            }
        }

        func end() { shutdown(descriptor, Int32(SHUT_RDWR)) }

        deinit { close(descriptor) }

        private func acceptAll() {
            while true {
                let connection = accept(descriptor, nil, nil)
                guard connection >= 0 else { return }
                var packet = [UInt8](repeating: 0, count: 512)
                var length = socklen_t(512)
                getsockopt(connection, Int32(IPPROTO_TCP), 28, &packet, &length)
                let octet = packet[0] >> 4 == 6 ? Int(packet[0] & 15) << 4 | Int(packet[1] >> 4) : Int(packet[1])
                seen.append(octet >> 2)
                Self.threads.run { Self.answer(connection) }
            }
        }

        private static func answer(_ connection: Int32) {
            var buffer = [UInt8](repeating: 0, count: 4096)
            let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8)
            // A request without a body is one packet.
            while read(connection, &buffer, buffer.count) > 0 {
                _ = send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
            }
            close(connection)
        }
    }

    /// The mark of this side's socket: the code point, and the priority of its packets.
    static func ownMark(_ metrics: LoadMetrics) -> (codePoint: Int, priority: Int)? {
        guard let last = metrics.transactions.last, let port = last.localPort, let peer = last.remotePort else {
            return nil
        }
        let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        for descriptor in open.compactMap({ Int32($0) }) {
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let isSocket = withUnsafeMutablePointer(to: &storage) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) } == 0
            }
            guard isSocket, let address = SocketAddress(storage, length: length), Int(address.port) == port,
                remotePort(descriptor) == peer
            else { continue }
            var octet: Int32 = 0
            var priority: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            if address.family == .ipv6 {
                getsockopt(descriptor, Int32(IPPROTO_IPV6), 67, &octet, &size)
            } else {
                getsockopt(descriptor, Int32(IPPROTO_IP), 1, &octet, &size)
            }
            size = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(descriptor, SOL_SOCKET, 12, &priority, &size)
            return (Int(octet >> 2), Int(priority))
        }
        return nil
    }

    private static func remotePort(_ descriptor: Int32) -> Int? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
        }
        return result == 0 ? SocketAddress(storage, length: length).map { Int($0.port) } : nil
    }

    private static let classes: [(TrafficClass, codePoint: Int, priority: Int)] = [
        (.default, 0, 0), (.background, 1, 1), (.responsive, 18, 4), (.streaming, 26, 4), (.interactive, 32, 6),
        (.video, 34, 4),
        (.signaling, 40, 6), (.voice, 46, 6), (TrafficClass(dscp: 12), 12, 0),
        (TrafficClass(dscp: 200), 63, 0),
    ]

    @Test(
        "the first packet is marked; loads of one class share a connection, those of different classes do not",
        arguments: [false, true])
    func marked(_ isSixth: Bool) async throws {
        guard let listener = Listener(isSixth: isSixth) else { return }
        defer { listener.end() }
        let session = Session(.ephemeral)
        for (kind, codePoint, priority) in Self.classes {
            var request = Request(url: listener.url)
            request.trafficClass = kind
            for _ in 0..<2 {
                let task = session.dataTask(request).resumed()
                _ = try await task.value
                let metrics = try await task.metrics
                let own = try #require(Self.ownMark(metrics))
                #expect(own == (codePoint, priority), "\(kind)")
            }
        }
        #expect(listener.marks == Self.classes.map(\.codePoint))
        session.invalidateAndCancel()
    }

    @Test("loads and streams have the session's class unless they have their own", arguments: [false, true])
    func configured(_ isSixth: Bool) async throws {
        guard let listener = Listener(isSixth: isSixth), let host = listener.url.host(), let port = listener.url.port
        else { return }
        defer { listener.end() }
        let session = Session(.ephemeral.with { $0.networks.trafficClass = .background })
        _ = try await session.data(from: listener.url)
        var request = Request(url: listener.url)
        request.trafficClass = .voice
        _ = try await session.data(for: request)
        request.trafficClass = .default
        _ = try await session.data(for: request)
        let stream = session.streamTask(host: host, port: port).resumed()
        try await stream.write(Data("x".utf8))
        // A stream is not notified of the acceptance by its peer.
        let marks = try await listener.seen.wait { $0.count == 4 }
        #expect(marks == [1, 46, 0, 1])
        stream.cancel()
        session.invalidateAndCancel()
    }
}
