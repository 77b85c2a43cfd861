// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct NetworkNamespaceTests {
    /// Each test of `NetworkNamespaceChild` has its own namespace.
    @Test(
        "links of a namespace go down and up; loads wait for them, and are retried (checklist 162)",
        .enabled(if: Namespaces.areAllowed && !Namespaces.isInside, Namespaces.areMissing),
        arguments: ["upAndDown", "connectivity", "retries"])
    func inside(_ name: String) async throws { try await Namespaces.prove(name, of: "NetworkNamespaceChild") }
}

@Suite(.enabled(if: Namespaces.isInside, "run by NetworkNamespaceTests"), .timeLimit(.minutes(4)))
struct NetworkNamespaceChild {
    /// The paths until one is as it should be: some changes are several for the kernel.
    private func next(_ paths: inout NetworkPaths.Iterator, _ line: String) async {
        var last = ""
        while last != line {
            guard let path = await paths.next() else {
                Issue.record("the sequence ended before \(line)")
                return
            }
            last = "\(path)"
        }
    }

    private func ip(_ commands: String...) {
        for command in commands { #expect(Namespaces.run("ip \(command)"), "\(command)") }
    }

    @Test("links that go up and down are noticed") func upAndDown() async throws {
        let monitor = NetworkMonitor.shared
        #expect("\(monitor.current)" == "unsatisfied")
        var paths = monitor.paths.makeAsyncIterator()
        #expect(await paths.next()?.status == .unsatisfied)
        let four = "satisfied v0(wired, 4)"
        let both = "satisfied v0(wired, 4+6)"

        ip(
            "link set lo up", "link add v0 type veth peer name v1", "addr add 10.9.0.1/24 dev v0", "link set v0 up",
            "link set v1 up")
        await next(&paths, four)
        #expect("\(monitor.current)" == four)
        // The other end of the cable.
        ip("link set v1 down")
        await next(&paths, "unsatisfied")
        ip("link set v1 up")
        await next(&paths, four)
        // The kernel takes this route with the link, without a word.
        ip(
            "route add default via 10.9.0.2", "link add w0 type veth peer name w1", "addr add 10.8.0.1/24 dev w0",
            "link set w0 up", "link set w1 up")
        await next(&paths, "satisfied v0(wired, 4) w0(wired, 4, spare)")
        ip("link set v0 down", "link set v0 up")
        await next(&paths, "satisfied v0(wired, 4) w0(wired, 4)")
        ip("link del w0")
        await next(&paths, four)
        ip("addr add 2001:db8::1/64 dev v0 nodad")
        await next(&paths, both)

        // More events than the kernel buffers for a slow reader.
        let addresses = (0..<2000).map { "addr add 10.7.\($0 / 250).\($0 % 250 + 1)/32 dev v0" }
        let file = "/tmp/url-loading-\(getpid())-batch"
        try (addresses + ["addr flush dev v0"]).joined(separator: "\n").write(
            toFile: file, atomically: false, encoding: .utf8)
        ip("-batch \(file)")
        unlink(file)
        await next(&paths, "unsatisfied")
        ip("addr add 10.9.0.1/24 dev v0")
        await next(&paths, four)

        let waiting = Task { [paths] in
            var paths = paths
            return await paths.next()
        }
        try await Task.sleep(for: .milliseconds(2))
        waiting.cancel()
        #expect(await waiting.value == nil)
        print("namespace proved: upAndDown")
    }

    // MARK: Loads

    private static let up = ["addr add 10.9.0.1/24 dev v0", "link set v0 up", "link set v1 up"]

    /// A server behind a link of the namespace, and a session that records events.
    private func withOrigin(
        _ change: (inout Configuration) -> Void,
        _ use: (HTTPTestServer, Session, EventRecorder, URL) async throws -> Void
    ) async throws {
        ip("link set lo up", "link add v0 type veth peer name v1")
        try await withHTTPTestServer(.init(address: .everyIPv4)) { origin in
            origin.route("/") { _ in .ok("hello") }
            let recorder = EventRecorder()
            var configuration = Configuration.ephemeral
            configuration.observers = [recorder]
            configuration.connections.idleLifetime = .zero
            change(&configuration)
            let session = Session(configuration)
            try await use(origin, session, recorder, url("http://10.9.0.1:\(origin.port)/"))
            #expect(recorder.loads.allSatisfy { $0.isLegal && $0.isComplete }, "\(recorder)")
            await expectEmpty(session)
        }
    }

    @Test("a load waits for connectivity") func connectivity() async throws {
        try await withOrigin({ $0.networks.waitsForConnectivity = true }) { origin, session, recorder, target in
            for round in 1...3 {
                let monitor = NetworkMonitor.shared
                #expect(monitor.current.status == .unsatisfied)
                // A load without patience fails where the other waits.
                var impatient = Request(url: target)
                impatient.waitsForConnectivity = false
                // A link that lost its carrier keeps its address, and a machine reaches its own addresses: the first
                // time alone there is none.
                if round == 1 { await expectFailure(.unreachable) { try await session.data(for: impatient) } }
                async let text = session.text(target)
                try await recorder.wait(for: .waitingForConnectivity, count: round)
                #expect(origin.counts.accepted == round - 1)
                for command in round == 1 ? Self.up : ["link set v1 up"] { ip(command) }
                #expect(try await text == "hello")
                #expect("\(monitor.current)" == "satisfied v0(wired, 4)")
                ip("link set v1 down")
                _ = await monitor.paths.first { !$0.isSatisfied }
            }
        }
        print("namespace proved: connectivity")
    }

    @Test("a load is retried when the network changes") func retries() async throws {
        var policy = RetryPolicy()
        // No load waits that long: the network lets the load continue.
        policy.backoff = .constant(.seconds(3600))
        try await withOrigin({ $0.retries.policy = policy }) { origin, session, recorder, target in
            async let text = session.text(target)
            let event = try await recorder.wait(for: .retrying)
            guard case .retrying(let retry) = event, case .failed(let error) = retry.cause else {
                throw Unexpectedly("\(event)")
            }
            #expect(error.reason == .unreachable && retry.delay == .seconds(3600))
            for command in Self.up { ip(command) }
            #expect(try await text == "hello")
            #expect(origin.counts.accepted == 1)
        }
        print("namespace proved: retries")
    }
}
