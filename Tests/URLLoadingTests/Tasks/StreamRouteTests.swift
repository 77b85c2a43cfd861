// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// A stream is notified when the system would use another route to its peer.
@Suite(.timeLimit(.minutes(4)))
struct StreamRouteTests {
    private static let own = SocketAddress.ipv4((127, 0, 0, 1), port: 0),
        other = SocketAddress.ipv4((10, 0, 0, 7), port: 0)

    private static func change(_ networks: ScriptedPaths, _ index: Int32, reachingBy address: SocketAddress?) {
        networks.reach(by: address)
        let link = RouteBytes.link(index, "eth\(index)")
        networks.change(telling: [link]) {
            $0.links.append(link)
            $0.addresses.append(RouteBytes.address(index, [192, 0, 2, UInt8(index)]))
            $0.routes = [RouteBytes.defaultRoute(through: [index])]
        }
    }

    /// A stream that both ends know to be connected.
    private static func connected(_ networks: ScriptedPaths) async throws -> (StreamRig, StreamTask, StreamPeer) {
        let rig = try StreamRig { $0.networkMonitor = NetworkMonitor(networks) }
        let (task, peer) = try await rig.connected()
        try await peer.send("x")
        _ = try await task.read()
        return (rig, task, peer)
    }

    @Test("another route to the peer is reported once, and again after it was gone")
    func told() async throws {
        let networks = ScriptedPaths()
        let found = Watched(0)
        let (rig, task, peer) = try await Self.connected(networks)
        let watching = Task { await task.watchRoutes { found.add() } }
        try await networks.wait { $0.asked > 0 }
        #expect(found.value == 0)
        for (index, address, times) in [
            (2, Self.other, 1), (3, Self.other, 1), (4, Self.own, 1), (5, nil, 1), (6, Self.other, 2),
        ] {
            let asked = networks.counts.asked
            Self.change(networks, Int32(index), reachingBy: address)
            try await networks.wait { $0.asked > asked }
            try await found.wait { $0 >= times }
            #expect(found.value == times)
        }
        // The end of the stream ends the watch, and its socket.
        task.cancel()
        await watching.value
        #expect(networks.open == 0)
        peer.close()
        await rig.finish()
    }

    @Test("another address of the same link is a change, though the path is drawn as before")
    func addresses() async throws {
        let link = RouteBytes.link(2, "eth0")
        let first = RouteBytes.address(2, [192, 0, 2, 1])
        let second = RouteBytes.address(2, [192, 0, 2, 9])
        let networks = ScriptedPaths(
            .init(links: [link], addresses: [first], routes: [RouteBytes.defaultRoute(through: [2])]))
        let found = Watched(0)
        let (rig, task, peer) = try await Self.connected(networks)
        networks.reach(by: Self.own)
        let watching = Task { await task.watchRoutes { found.add() } }
        try await networks.wait { $0.asked > 0 }
        networks.reach(by: Self.other)
        networks.change(telling: [second]) { $0.addresses = [first, second] }
        try await found.wait { $0 > 0 }
        task.cancel()
        await watching.value
        peer.close()
        await rig.finish()
    }

    @Test("a stream that is bound to an interface has no other route")
    func bound() async throws {
        let networks = ScriptedPaths()
        let interface = try NetworkInterface.address("127.0.0.1")
        let rig = try StreamRig {
            $0.networkMonitor = NetworkMonitor(networks)
            $0.networks.interface = interface
        }
        let (task, peer) = try await rig.connected()
        let watching = Task { await task.watchRoutes { Issue.record("there is none") } }
        task.cancel()
        await watching.value
        #expect(networks.opened == 0)
        peer.close()
        await rig.finish()
    }

    @Test("the kernel tells the local address that it would use for a peer")
    func kernel() throws {
        let kernel = SystemPaths()
        #expect(kernel.localAddress(towards: Self.own)?.withPort(0) == Self.own)
        #expect(kernel.localAddress(towards: try .unix("/nowhere")) == nil)
    }
}
