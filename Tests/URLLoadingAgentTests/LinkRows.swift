// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestChildren
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Checklist 149: a network that goes down in the middle of a background download and comes back.
///
/// The agent and its server are in two network namespaces with a virtual link between them. A process with one thread
/// must make the first one, so the test runs itself again inside it.
@Suite(.timeLimit(.minutes(4))) struct LinkRows {
    static let isInside = ProcessInfo.processInfo.environment["URLLOADING_AGENT_NAMESPACE"] != nil
    private static let isPossible =
        run("unshare -rn ip link add v0 type veth peer name v1") && run("command -v nsenter")

    static func run(_ command: String) -> Bool { system("\(command) >/dev/null 2>&1") == 0 }

    @Test(
        "A download whose network goes down in mid-body and comes up gets the missing bytes only (checklist 149)",
        .enabled(
            if: LinkRows.isPossible && !LinkRows.isInside,
            "unproved: this machine makes no network namespaces with virtual links (unshare, nsenter, ip)"),
        arguments: ["farEnd", "ownEnd"])
    func inside(_ name: String) async throws {
        let rig = AgentRig()
        let output = rig.folder + "/said"
        let child = try ChildProcess(
            "/bin/sh",
            [
                "-c",
                "exec unshare -rn \"$0\" --testing-library swift-testing --filter LinkRowsInside/\(name) "
                    + ">\(output) 2>&1",
                try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"),
            ],
            environment: ["URLLOADING_AGENT_NAMESPACE": "1"])
        let status = await child.wait()
        let said = (try? FileReader.text(output)) ?? ""
        #expect(status == 0 && said.contains("link proved: \(name)"), "\(said)")
    }
}

@Suite(.enabled(if: LinkRows.isInside, "run by LinkRows"), .timeLimit(.minutes(4)))
struct LinkRowsInside {
    @Test("The server's end of the link goes down: the agent's network stays, without a carrier")
    func farEnd() async throws {
        try await interrupt(down: "ip link set v0 down", up: "ip link set v0 up")
        print("link proved: farEnd")
    }

    @Test("The agent's own end of the link goes down, and its routes with it")
    func ownEnd() async throws {
        try await interrupt(down: "AGENT ip link set v1 down", up: "AGENT ip link set v1 up")
        print("link proved: ownEnd")
    }

    /// - Parameters: commands; `AGENT` runs one in the namespace of the agent.
    private func interrupt(down: String, up: String) async throws {
        let rig = AgentRig()
        try await withHTTPTestServer(.init(address: .everyIPv4)) { origin in
            origin.route("/film", faults: [.init(.responseBody(after: 300_000), .stall)]) { Film.answer($0) }
            try rig.start(under: ["unshare", "-n"])
            let program = try await rig.attach { $0.idleTimeout = .seconds(3) }
            let agent = "nsenter -t \(rig.process) -n"
            func run(_ command: String) {
                let command = command.replacingOccurrences(of: "AGENT", with: agent)
                #expect(LinkRows.run(command), "\(command)")
            }
            for command in [
                "ip link set lo up", "ip link add v0 type veth peer name v1 netns \(rig.process)",
                "ip addr add 10.9.0.1/24 dev v0", "ip link set v0 up", "AGENT ip link set lo up",
                "AGENT ip addr add 10.9.0.2/24 dev v1", "AGENT ip link set v1 up",
            ] { run(command) }

            let place = rig.folder + "/film.bin"
            let url = try #require(URL(string: "http://10.9.0.1:\(origin.port)/film"))
            try await program.download(url, to: place)
            _ = try await program.wait { $0.received == 300_000 }
            run(down)
            // More than one if the machine was so busy that the idle timeout ended an attempt before its response came:
            // without a byte on the disk, the next attempt has no range to ask for.
            let sent = origin.requests.count
            origin.route("/film") { Film.answer($0) }
            let waiting = try await program.wait { $0.state == .waiting }
            #expect(waiting.received == 300_000 && origin.requests.count == sent, "\(rig.logText)")
            run(up)
            let done = try await program.wait { $0.state == .finished }
            #expect(Film.of(place) == Film.content, "\(done)")
            #expect(origin.requests.dropFirst(sent).map { $0.headers[.range] } == ["bytes=300000-"])
            await rig.kill(SIGTERM)
            origin.releaseStalls()
        }
    }
}
