// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import URLLoadingTestSupport
import URLLoadingTesting

/// The network of the rows of HTTP/3 itself. These rows need no build with HTTP/3.
struct DatagramFaultsTests {
    private static func datagram(_ number: Int) -> [UInt8] { [UInt8(number % 251), UInt8(number / 251), 7, 7] }
    private static func number(_ datagram: [UInt8]) -> Int { Int(datagram[0]) + Int(datagram[1]) * 251 }

    private static func sent(_ network: DatagramFaults) -> [[UInt8]] {
        var (network, arrived) = (network, [[UInt8]]())
        for number in 0..<2_000 {
            let now = Int64(number) * 1_000_000
            network.add(datagram(number), now: now)
            arrived += network.arrived(now: now)
        }
        while let next = network.next { arrived += network.arrived(now: next) }
        return arrived
    }

    @Test("Without faults every datagram arrives, in order") func plain() {
        let (arrived, expected) = (Self.sent(DatagramFaults()), (0..<2_000).map(Self.datagram))
        #expect(arrived == expected)
    }

    @Test("A seed decides, and every fault happens about as often as it is asked for") func seeds() {
        var network = DatagramFaults(seed: 1)
        (network.loss, network.doubling, network.corruption, network.cutting) = (0.1, 0.1, 0.1, 0.1)
        network.reordering = 0.1
        let (one, two) = (Self.sent(network), Self.sent(network))
        #expect(one == two)
        var other = DatagramFaults(seed: 2)
        (other.loss, other.reordering) = (0.1, 0.1)
        let three = Self.sent(other)
        #expect((1_700..<1_900).contains(three.count))
        let numbers = three.map(Self.number)
        #expect(numbers != numbers.sorted() && Set(numbers).count == numbers.count)
        let whole = one.filter { $0.count == 4 && $0[2] == 7 && $0[3] == 7 }
        #expect((1_450..<1_900).contains(whole.count) && one.count > 1_900)
    }

    @Test("One datagram is lost, doubled, cut or has a wrong bit", arguments: DatagramFaults.Fault.allCases)
    func single(fault: DatagramFaults.Fault) {
        var network = DatagramFaults()
        network.singles[1] = fault
        let arrived = Self.sent(network)
        switch fault {
        case .lose: #expect(arrived.count == 1_999 && arrived[1][0] == 2)
        case .double: #expect(arrived.count == 2_001 && arrived[1] == arrived[2])
        case .truncate: #expect(arrived.count == 2_000 && arrived[1].count == 2)
        case .flip: #expect(arrived.count == 2_000 && arrived[1] != [1, 0, 7, 7] && arrived[1].count == 4)
        }
    }

    @Test("A relay passes datagrams on in both directions, and shows the server another address")
    func relay() async throws {
        let (server, port) = try DatagramSockets.bound()
        let (client, _) = try DatagramSockets.bound()
        defer { for descriptor in [server, client] { DatagramSockets.close(descriptor) } }
        var network = DatagramFaults(seed: 1)
        network.doubling = 1
        let relay = try DatagramRelay(to: port, client: network, server: DatagramFaults(), rebindings: [2])
        defer { relay.stop() }
        var addresses: Set<UInt16> = []
        for number in 0..<3 {
            DatagramSockets.send(Self.datagram(number), from: client, to: DatagramSockets.address(relay.port))
            for _ in 0..<2 {
                let (bytes, from) = try await eventuallyReceived(server)
                #expect(bytes == Self.datagram(number))
                addresses.insert(from.sin_port)
                DatagramSockets.send(bytes + [1], from: server, to: from)
                let (answer, _) = try await eventuallyReceived(client)
                #expect(answer == bytes + [1])
            }
        }
        #expect(addresses.count == 2 && relay.rebindingCount == 1)
        try await eventually(relay.faultCount) { $0 == 3 }
    }

    private nonisolated(nonsending) func eventuallyReceived(_ descriptor: Int32) async throws -> ([UInt8], sockaddr_in)
    {
        let received = try await eventually(DatagramSockets.receive(descriptor)) { $0 != nil }
        return try #require(received)
    }
}
