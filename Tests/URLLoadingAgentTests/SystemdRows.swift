// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestChildren

/// Checklist 137, security 81: agents below a real systemd, in namespaces of its own (Tests/Systemd).
@Suite(.timeLimit(.minutes(15)), .serialized) struct SystemdRows {
    /// It needs root, systemd and python, and takes half a minute: it belongs to the long run.
    private static let isPossible =
        ProcessInfo.processInfo.environment["URLLOADING_LONG"] != nil && geteuid() == 0
        && ["/lib/systemd/systemd", "/usr/bin/unshare", "/usr/bin/python3"].allSatisfy { (path: String) in
            access(path, X_OK) == 0
        }

    @Test(
        "Agents of systemd outlive their program's service; a spawned one ends with it and resumes (checklist 137)",
        .enabled(if: SystemdRows.isPossible))
    func services() async throws {
        let rig = AgentRig()
        let manager = FileManager.default
        let here = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let sources = here.deletingLastPathComponent().appending(path: "Sources/url-loading-agent")
        for (folder, names) in [
            (here.appending(path: "Systemd"), ["machine.sh", "script.sh", "origin.py", "clients.py"]),
            (
                sources,
                [
                    "url-loading-agent.service", "url-loading-agent.socket", "url-loading-agent@.service",
                    "url-loading-agent@.socket",
                ]
            ),
        ] {
            for name in names {
                try manager.copyItem(
                    at: folder.appending(path: name), to: URL(filePath: "\(rig.folder)/\(name)"))
            }
        }
        try manager.copyItem(atPath: AgentRig.executable, toPath: rig.folder + "/url-loading-agent")
        try manager.copyItem(atPath: KillRows.program, toPath: rig.folder + "/program")
        chmod(rig.folder, 0o755)
        let machine = try ChildProcess(
            "/usr/bin/unshare",
            [
                "-m", "-p", "-f", "-C", "-u", "-i", "-n", "--kill-child=SIGKILL", "/bin/sh",
                rig.folder + "/machine.sh", rig.folder, "script.sh",
            ], files: .init(output: rig.folder + "/log", errors: rig.folder + "/errors"))
        while access(rig.folder + "/status", F_OK) != 0, machine.isRunning {
            try await Task.sleep(for: .milliseconds(50))
        }
        let said = (try? FileReader.text(rig.folder + "/out")) ?? ""
        let requests = (try? FileReader.text(rig.folder + "/requests")) ?? ""
        machine.send(SIGKILL)
        _ = await machine.wait()
        for line in [
            "account agent active", "account whole", "other user refused", "clients answered refused 0",
            "forked agent runs", "forked agent ended", "forked whole", "transient agent active", "transient whole",
            "installed agent active", "installed whole", "users whole", "done",
        ] { #expect(said.split(separator: "\n").contains { $0 == line }, "\(line) is not in:\n\(said)") }
        // The spawned agent's successor asked for the rest only.
        #expect(requests.contains("bytes="))
    }
}
