// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoadingIO

/// The network state after a series of kernel messages.
@Suite(.timeLimit(.minutes(4)))
struct PathMonitorTests {
    private static let home = ScriptedPaths.Tables(
        links: [RouteBytes.link(1, "lo", flags: 0x49, hardware: 772), RouteBytes.link(2, "eth0")],
        addresses: [RouteBytes.address(1, [127, 0, 0, 1], scope: 254), RouteBytes.address(2, [192, 0, 2, 2])],
        routes: [RouteBytes.defaultRoute(through: [2])])

    @Test("A query reads everything once, and closes its socket")
    func read() throws {
        let kernel = ScriptedPaths(Self.home)
        let state = try PathMonitor.read(kernel)
        #expect(state.links.keys.sorted() == [1, 2])
        #expect(state.addresses == [PathAddress(index: 2, octets: [192, 0, 2, 2])])
        #expect(state.routes == [PathRoute(isIPv6: false, indices: [2], metric: 0)])
        #expect(kernel.questions == 3 && kernel.open == 0)
    }

    @Test("The kernel of this machine answers a query")
    func reality() throws {
        let state = try PathMonitor.read(SystemPaths())
        #expect(state.links.values.contains { $0.isLoopback && $0.name == "lo" })
    }

    /// Changes the scripted kernel before the monitor waits, or while it does.
    private func heard(
        _ kernel: ScriptedPaths, whileWaiting waits: Bool = true, _ happening: () -> Void
    ) async throws -> PathState {
        let monitor = try PathMonitor(kernel)
        _ = try monitor.begin()
        if !waits { happening() }
        async let change = monitor.change(StopToken())
        if waits {
            try await SocketTests.settle()
            happening()
        }
        return try await change
    }

    @Test(
        "After a change of a link all state is read again, because the kernel does not report the link's routes",
        arguments: [false, true])
    func linkDown(_ waits: Bool) async throws {
        let kernel = ScriptedPaths(Self.home)
        let down = RouteBytes.link(2, "eth0", flags: 0)
        let state = try await heard(kernel, whileWaiting: waits) {
            kernel.change(telling: [down]) {
                $0.links[1] = down
                $0.routes = []
            }
        }
        #expect(state.links[2]?.isRunning == false && state.routes.isEmpty)
    }

    @Test(
        "Messages without a change cause no query",
        arguments: [
            [RouteBytes.link(2, "eth0")], [RouteBytes.address(2, [192, 0, 2, 2])],
            [RouteBytes.link(7, "gone", isGone: true)],
            [RouteBytes.address(3, [192, 0, 2, 3], isGone: true)],
            [RouteBytes.defaultRoute(through: [2], but: .length(24))],
            [RouteBytes.done],
        ])
    func noNews(_ messages: [[UInt8]]) async throws {
        let kernel = ScriptedPaths(Self.home)
        let end = RouteBytes.address(2, [192, 0, 2, 9])
        let state = try await heard(kernel) {
            for _ in 0..<50 { kernel.change(telling: messages) }
            kernel.change(telling: [end]) { $0.addresses.append(end) }
        }
        #expect(state.addresses.count == 2)
        #expect(kernel.questions == 6)
    }

    @Test("Lost or unreadable messages cause a new query", arguments: ["lost", "damaged", "cut"])
    func lost(_ kind: String) async throws {
        let kernel = ScriptedPaths(Self.home)
        let state = try await heard(kernel) {
            kernel.change { $0.routes = [] }
            switch kind {
            case "lost": kernel.lose()
            case "damaged": kernel.change(telling: [[UInt8](repeating: 0xFF, count: 64)])
            default: kernel.change(telling: [Array(RouteBytes.link(2, "eth0").dropLast(9))])
            }
        }
        #expect(state.routes.isEmpty)
    }

    @Test("State that changes during a query is read again")
    func changeWhileReading() throws {
        let kernel = ScriptedPaths(Self.home)
        let monitor = try PathMonitor(kernel)
        kernel.meanwhile { kernel in
            let new = RouteBytes.link(3, "wlan0")
            kernel.change(telling: [new])
            kernel.meanwhile { $0.change { $0.links.append(new) } }
        }
        let state = try monitor.begin()
        #expect(state.links.count == 3)
        #expect(kernel.questions == 6)
    }

    @Test("Answers to the queries of other processes are ignored")
    func foreignAnswers() throws {
        let kernel = ScriptedPaths(Self.home)
        let monitor = try PathMonitor(kernel)
        kernel.meanwhile {
            $0.change(telling: [
                RouteBytes.answering(RouteBytes.done, 1, 99), RouteBytes.answering(RouteBytes.failure(1), 1, 99),
            ])
        }
        #expect(try monitor.begin().links.count == 2)
    }

    @Test("A network that changes constantly causes a bounded number of queries")
    func rereadDelays() async throws {
        let kernel = ScriptedPaths(Self.home)
        @Sendable func disturb(_ kernel: ScriptedPaths) {
            kernel.change(telling: [RouteBytes.defaultRoute(through: [2], metric: 7)])
            kernel.meanwhile(disturb)
        }
        kernel.meanwhile(disturb)
        let monitor = try PathMonitor(kernel)
        #expect(try monitor.begin().links.count == 2)
        #expect(kernel.questions == 12)
        let token = StopToken()
        async let change = monitor.change(token)
        try await kernel.wait { $0.questions >= 24 }
        token.stop(.cancelled)
        do {
            _ = try await change
            Issue.record("no change was made")
        } catch {}
    }

    @Test("A stop ends the wait for changes")
    func stop() async throws {
        let monitor = try PathMonitor(SystemPaths())
        _ = try monitor.begin()
        let token = StopToken()
        async let change = monitor.change(token)
        try await Task.sleep(for: .milliseconds(2))
        token.stop(.cancelled)
        do {
            _ = try await change
            Issue.record("no change was made")
        } catch {}
    }

    @Test("A failed system call is reported with its reason")
    func refusal() throws {
        let kernel = ScriptedPaths()
        kernel.refuse(EPERM)
        #expect(throws: IOFailure.self) { try PathMonitor.read(kernel) }
        #expect(kernel.open == 0)
    }

    @Test(
        "The kind of an interface follows from its properties",
        arguments: [
            (PathLink(index: 1, name: "lo", hardware: 772, flags: 0x49), nil, false, LinkKind.loopback),
            (PathLink(index: 2, name: "eth0", hardware: 1, flags: 0x41), nil, false, .wired),
            (PathLink(index: 2, name: "wlp2s0", hardware: 1, flags: 0x41), nil, true, .wifi),
            (PathLink(index: 2, name: "wlp2s0", hardware: 1, flags: 0x41), "wlan", false, .wifi),
            (PathLink(index: 2, name: "wwp0s20", hardware: 1, flags: 0x41), "wwan", false, .cellular),
            (PathLink(index: 2, name: "modem", hardware: 519, flags: 0x41), nil, false, .cellular),
            (PathLink(index: 2, name: "wwan0", hardware: 1, flags: 0x41), nil, false, .cellular),
            (PathLink(index: 2, name: "rmnet_data0", hardware: 530, flags: 0x41), nil, false, .cellular),
            (PathLink(index: 2, name: "ppp0", hardware: 512, flags: 0x41), nil, false, .cellular),
            (PathLink(index: 2, name: "br0", hardware: 1, flags: 0x41), "bridge", false, .wired),
            (PathLink(index: 2, name: "tun0", hardware: 65534, flags: 0x41), nil, false, .other),
            (PathLink(index: 2, name: "", hardware: 0, flags: 0), nil, false, .other),
        ] as [(PathLink, String?, Bool, LinkKind)])
    func kinds(_ link: PathLink, _ type: String?, _ isWireless: Bool, _ kind: LinkKind) {
        #expect(LinkKind.make(link, LinkKind.Facts(isWireless: isWireless, deviceType: type)) == kind)
    }

    @Test("Properties are read from the directory of each interface only")
    func facts() throws {
        let root = "/tmp/url-loading-\(getpid())-\(UInt32.random(in: 0 ..< .max))"
        for directory in ["", "/wifi", "/wifi/wireless", "/modem", "/plain"] {
            #expect(mkdir(root + directory, 0o700) == 0)
        }
        let file = try #require(fopen("\(root)/modem/uevent", "w"))
        fputs("INTERFACE=modem\nDEVTYPE=wwan\nIFINDEX=3\n", file)
        fclose(file)
        #expect(LinkKind.Facts(of: "wifi", root: root) == LinkKind.Facts(isWireless: true))
        #expect(LinkKind.Facts(of: "modem", root: root) == LinkKind.Facts(deviceType: "wwan"))
        #expect(LinkKind.Facts(of: "plain", root: root) == LinkKind.Facts())
        for name in ["", ".", "..", "../wifi", "wifi/.", "a\0b", "missing"] {
            #expect(LinkKind.Facts(of: name, root: root) == LinkKind.Facts())
        }
        unlink("\(root)/modem/uevent")
        for directory in ["/wifi/wireless", "/wifi", "/modem", "/plain", ""] { #expect(rmdir(root + directory) == 0) }
    }
}
