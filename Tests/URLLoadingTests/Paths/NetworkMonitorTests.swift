// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoadingIO

/// The events of the network monitor, from a kernel that the test scripts.
@Suite(.timeLimit(.minutes(4)))
struct NetworkMonitorTests {
    static let loopback = [RouteBytes.link(1, "lo", flags: 0x49, hardware: 772)]
    static let address = RouteBytes.address(2, [192, 0, 2, 2])
    static let route = RouteBytes.defaultRoute(through: [2])
    static let home = ScriptedPaths.Tables(
        links: loopback + [RouteBytes.link(2, "eth0")], addresses: [address], routes: [route])

    static func monitor(_ kernel: ScriptedPaths) -> NetworkMonitor {
        NetworkMonitor(kernel) { $0.name.hasPrefix("wl") ? .wifi : LinkKind.make($0, LinkKind.Facts()) }
    }

    private static let six: [UInt8] = [0x20, 1, 0xD, 0xB8] + [UInt8](repeating: 0, count: 12)
    private static let local: [UInt8] = [0xFE, 0x80] + [UInt8](repeating: 0, count: 14)

    static let pictures: [(String, [[UInt8]], [[UInt8]], [[UInt8]])] = [
        ("unsatisfied", [], [], []),
        ("unsatisfied", [], [RouteBytes.address(1, [127, 0, 0, 1], scope: 254)], []),
        ("unsatisfied", [], [RouteBytes.address(1, [10, 0, 0, 1])], [RouteBytes.defaultRoute(through: [1])]),
        ("satisfied eth0(wired, 4)", [RouteBytes.link(2, "eth0")], [address], [route]),
        ("satisfied eth0(wired, 4)", [RouteBytes.link(2, "eth0")], [address], []),
        ("satisfied eth0(wired, 4)", [RouteBytes.link(2, "eth0")], [], [route]),
        ("satisfied eth0(wired, 4+6)", [RouteBytes.link(2, "eth0")], [address, RouteBytes.address(2, six)], [route]),
        ("unsatisfied", [RouteBytes.link(2, "eth0")], [RouteBytes.address(2, local, scope: 253)], []),
        ("unsatisfied", [RouteBytes.link(2, "eth0", flags: 0x1)], [address], [route]),  // no carrier
        ("unsatisfied", [RouteBytes.link(2, "eth0", flags: 0x40)], [address], [route]),  // switched off
        ("unsatisfied", [], [address], [route]),  // of no interface
        // The lower metric is taken; between equal ones the first.
        (
            "satisfied wlan0(wifi, 4) wwan0(cellular, 4, spare)",
            [RouteBytes.link(3, "wwan0"), RouteBytes.link(4, "wlan0")], [],
            [RouteBytes.defaultRoute(through: [3], metric: 700), RouteBytes.defaultRoute(through: [4], metric: 600)]
        ),
        (
            "satisfied wwan0(cellular, 4) wlan0(wifi, 4, spare) expensive",
            [RouteBytes.link(3, "wwan0"), RouteBytes.link(4, "wlan0")], [],
            [RouteBytes.defaultRoute(through: [3]), RouteBytes.defaultRoute(through: [4])]
        ),
        // A family that has only one way takes it.
        (
            "satisfied wlan0(wifi, 4) wwan0(cellular, 6) expensive",
            [RouteBytes.link(4, "wwan0"), RouteBytes.link(3, "wlan0")], [],
            [
                RouteBytes.defaultRoute(through: [3], metric: 600),
                RouteBytes.defaultRoute(isIPv6: true, through: [4], metric: 1024),
            ]
        ),
        // A way through an interface that is down is none.
        (
            "satisfied wwan0(cellular, 4) expensive",
            [RouteBytes.link(3, "wlan0", flags: 0x1), RouteBytes.link(4, "wwan0")], [],
            [RouteBytes.defaultRoute(through: [3], metric: 1), RouteBytes.defaultRoute(through: [4], metric: 2)]
        ),
        // A tunnel uses the link below it.
        (
            "satisfied wwan0(cellular, 4) tun0(other, 4) expensive",
            [RouteBytes.link(3, "wwan0"), RouteBytes.link(9, "tun0", hardware: 65534)], [],
            [RouteBytes.defaultRoute(through: [9], metric: 50), RouteBytes.defaultRoute(through: [3], metric: 700)]
        ),
        (
            "satisfied eth0(wired, 4) wwan0(cellular, 4) expensive",
            [RouteBytes.link(2, "eth0"), RouteBytes.link(3, "wwan0")], [],
            [RouteBytes.defaultRoute(through: [2, 3])]
        ),
        (
            "satisfied eth0(wired, 4) eth1(wired, 4, spare)", [RouteBytes.link(2, "eth0"), RouteBytes.link(5, "eth1")],
            [RouteBytes.address(5, [10, 0, 0, 1])], [route]
        ),
    ]

    @Test("the description of a network is one line", arguments: pictures)
    func picture(_ line: String, _ links: [[UInt8]], _ addresses: [[UInt8]], _ routes: [[UInt8]]) {
        let kernel = ScriptedPaths(
            ScriptedPaths.Tables(links: Self.loopback + links, addresses: addresses, routes: routes))
        let path = Self.monitor(kernel).current
        #expect("\(path)" == line)
        #expect(path.isSatisfied == line.hasPrefix("satisfied"))
        #expect(path.usesCellular == path.isExpensive)
        #expect(path.supportsIPv4 == (line.contains("4)") || line.contains("4+") || line.contains("4,")))
        #expect(path.supportsIPv6 == line.contains("6)"))
        #expect(kernel.open == 0)
    }

    @Test("the current path is delivered first, then each different one (checklist 162)")
    func changes() async {
        let kernel = ScriptedPaths(Self.home)
        let monitor = Self.monitor(kernel)
        var paths = monitor.paths.makeAsyncIterator()
        #expect(kernel.opened == 0)
        #expect(await paths.next() == monitor.current)
        #expect(kernel.open == 1)
        let down = RouteBytes.link(2, "eth0", flags: 0)
        kernel.change(telling: [down]) { $0.links[1] = down }
        #expect(await paths.next()?.status == .unsatisfied)
        let up = RouteBytes.link(2, "eth0")
        kernel.change(telling: [up]) { $0.links[1] = up }
        #expect(await paths.next()?.status == .satisfied)
    }

    @Test("a slow observer gets the newest path only, and unchanged paths are not delivered")
    func coalescing() async {
        let kernel = ScriptedPaths(Self.home)
        var paths = Self.monitor(kernel).paths.makeAsyncIterator()
        _ = await paths.next()
        for number in 0..<200 as Range<UInt8> {
            let link = RouteBytes.link(2, "eth0", flags: number % 2 == 0 ? 0 : 0x41)
            let other = RouteBytes.address(2, [192, 0, 2, number])
            kernel.change(telling: [link, other]) {
                $0.links[1] = link
                $0.addresses.append(other)
            }
        }
        let end = RouteBytes.address(2, Self.six)
        kernel.change(telling: [end]) { $0.addresses.append(end) }
        #expect(await paths.next().map { "\($0)" } == "satisfied eth0(wired, 4+6)")
        #expect(kernel.questions <= 9)
    }

    @Test("a monitor ends with its task, and closes its socket", arguments: [true, false])
    func cancellation(_ isWaiting: Bool) async throws {
        let kernel = ScriptedPaths(Self.home)
        let monitor = Self.monitor(kernel)
        let told = Flag()
        let task = Task {
            var count = 0
            for await _ in monitor.paths {
                count += 1
                told.raise()
                if !isWaiting { withUnsafeCurrentTask { $0?.cancel() } }
            }
            return count
        }
        try await told.wait()
        if isWaiting { task.cancel() }
        #expect(await task.value == 1)
        #expect(kernel.open == 0 && kernel.opened == 1)
    }

    @Test("a task cancelled before the start gets no event, and opens no socket")
    func cancelledBefore() async {
        let kernel = ScriptedPaths(Self.home)
        let monitor = Self.monitor(kernel)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            var paths = monitor.paths.makeAsyncIterator()
            return await paths.next()
        }
        #expect(await task.value == nil)
        #expect(kernel.opened == 0)
    }

    @Test("leaving the loop closes the socket; each listener has his own")
    func ownSockets() async {
        let kernel = ScriptedPaths(Self.home)
        let monitor = Self.monitor(kernel)
        var first = monitor.paths.makeAsyncIterator()
        _ = await first.next()
        for await _ in monitor.paths {
            #expect(kernel.open == 2)
            break
        }
        #expect(kernel.open == 1)
        kernel.change(telling: [Self.address]) { $0 = ScriptedPaths.Tables() }
        kernel.lose()
        #expect(await first.next()?.status == .unsatisfied)
    }

    @Test("without permission the path is unknown and the sequence ends")
    func refused() async {
        let kernel = ScriptedPaths(Self.home)
        kernel.refuse(EPERM)
        let monitor = Self.monitor(kernel)
        #expect("\(monitor.current)" == "unknown")
        var told: [String] = []
        for await path in monitor.paths { told.append("\(path)") }
        #expect(told == ["unknown"])
    }

    @Test("hints are part of the path, and their change is a change")
    func hints() async {
        let monitor = Self.monitor(ScriptedPaths(Self.home))
        var paths = monitor.paths.makeAsyncIterator()
        _ = await paths.next()
        async let next = paths.next()
        monitor.hints = NetworkMonitor.Hints(isExpensive: true)
        #expect(await next.map { "\($0)" } == "satisfied eth0(wired, 4) expensive")
        monitor.hints.isConstrained = true
        #expect(await paths.next().map { "\($0)" } == "satisfied eth0(wired, 4) expensive constrained")
        monitor.hints = NetworkMonitor.Hints(isExpensive: false)
        monitor.hints = NetworkMonitor.Hints()
        #expect(await paths.next() == monitor.current)
        #expect("\(monitor.current)" == "satisfied eth0(wired, 4)")
    }

    @Test("this machine has a path, which an observer receives first")
    func reality() async {
        let current = NetworkMonitor.shared.current
        #expect(current.status != .unknown)
        for await path in NetworkMonitor.shared.paths {
            #expect(path == NetworkMonitor.shared.current)
            break
        }
    }
}
