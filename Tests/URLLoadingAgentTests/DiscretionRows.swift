// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingAgent

/// Checklist 28, 148: transfers that leave their moment to the agent.
@Suite(.timeLimit(.minutes(2))) struct DiscretionRows {
    /// Runs an agent in this process, on a machine that is on battery until the test says otherwise.
    private func onBattery(
        _ use: (AgentRig, HTTPTestServer, _ charge: @Sendable () async -> Void) async throws -> Void
    ) async throws {
        let rig = AgentRig()
        let machine = Lock(MachineState(isOnBattery: true))
        try await withHTTPTestServer { origin in
            origin.route("/film") { Film.answer($0) }
            let service = try TransferService(
                try SQLiteJournal(folder: rig.state), folder: rig.state, machine: { machine.withLock { $0 } }
            ) { _ in }
            let listener = try LocalListener(path: rig.socket)
            let token = StopToken()
            let server = AgentServer(service, survival: "untilReboot", manner: "test") { _ in }
            let serving = Task { await server.serve(listener, token) }
            await service.start()
            try await use(rig, origin) {
                machine.withLock { $0.isOnBattery = false }
                await service.schedule()
            }
            token.stop(.cancelled)
            await serving.value
            await service.stop()
        }
    }

    @Test("A discretionary transfer waits until the machine is at leisure, while others run (checklist 28)")
    func leisure() async throws {
        try await onBattery { rig, origin, charge in
            let session = BackgroundSessionRows.session(rig)
            for label in ["waits", "goes"] {
                var options = BackgroundOptions(label: label)
                options.isDiscretionary = label == "waits"
                try await session.background.download(Request(url: origin.url("/film")), options: options)
            }
            let order = Lock<[String]>([])
            try await session.background.handleEvents { event in
                order.withLock { $0.append(event.transfer.label) }
                if event.transfer.label == "waits" { return session.finishTasksAndInvalidate() }
                let left = try await session.background.transfers.filter { $0.label == "waits" }
                #expect(left.map(\.state) == [.queued])
                await charge()
            }
            #expect(order.withLock { $0 } == ["goes", "waits"])
            await session.invalidated()
        }
    }

    @Test(
        "What a program begins that was started for events it has not handled is discretionary (checklist 148)"
    )
    func begunInBackground() async throws {
        try await onBattery { rig, origin, charge in
            let place = rig.folder + "/again"
            let url = origin.url("/film")
            let program = try await rig.attach {
                $0.waking = WakingOrder(
                    arguments: [
                        KillRows.program, rig.socket, "org.example.sync", "relay", url.absoluteString, place,
                    ])
            }
            try await program.download(url) { $0.label = "first" }
            program.close()
            // The program that was started begins one transfer in its handler, and one after it has handled all events.
            try await ChallengeRows.reach(rig) { records in
                records.contains { $0.label == "within" } && access(place + ".after", F_OK) == 0
            }
            try await ChallengeRows.reach(rig) { $0.contains { $0.label == "within" && $0.state == .queued } }
            #expect(access(place + ".within", F_OK) != 0 && Film.of(place + ".after") == Film.content)
            await charge()
            try await ChallengeRows.reach(rig) { $0.isEmpty }
            #expect(Film.of(place + ".within") == Film.content)
        }
    }

    @Test("Battery, metered networks and pressure are read from the system; what it does not report is good")
    func machine() throws {
        let rig = AgentRig()
        let root = rig.folder
        let free = NetworkPath(.satisfied)
        #expect(MachineState.read(root: root, path: free) == MachineState())
        for folder in [
            "/sys", "/sys/class", "/sys/class/power_supply", "/sys/class/power_supply/BAT0", "/proc",
            "/proc/pressure",
        ] { mkdir(root + folder, 0o700) }
        func write(_ text: String, _ path: String) throws { try Data(text.utf8).write(to: URL(filePath: root + path)) }
        try write("Discharging\n", "/sys/class/power_supply/BAT0/status")
        try write(
            "some avg10=90.00 avg60=61.25 avg300=1.00 total=9\nfull avg10=0.00 avg60=70.00 avg300=0.00 total=0\n",
            "/proc/pressure/cpu")
        let busy = MachineState.read(root: root, path: NetworkPath(.satisfied, isExpensive: true))
        #expect(busy == MachineState(isOnBattery: true, isMetered: true, pressure: 61.25) && !busy.allowsDiscretionary)
        try write("Charging\n", "/sys/class/power_supply/BAT0/status")
        try write("some avg10=90.00 avg60=1.00 avg300=1.00 total=9\n", "/proc/pressure/cpu")
        let calm = MachineState.read(root: root, path: free)
        #expect(calm == MachineState(pressure: 1) && calm.allowsDiscretionary)
        #expect(!MachineState.read(root: root, path: NetworkPath(.satisfied, isConstrained: true)).allowsDiscretionary)
    }
}
