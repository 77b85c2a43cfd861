// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestChildren
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// Checklist 137, security 81: an agent and the programs of another user. Root can run a program as another user.
@Suite(
    .timeLimit(.minutes(2)),
    .enabled(if: geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0, "only root runs programs as another user"))
struct OtherUserRows {
    private static let user = ["--reuid=65534", "--regid=65534", "--clear-groups"]

    enum User { case own, other }

    /// Runs a program as the agent's user or as another one. Returns what it prints.
    private func run(_ words: [String], as user: User, _ rig: AgentRig) async throws -> String {
        let output = rig.folder + "/\(UUID().uuidString)"
        let words = (user == .other ? Self.user : []) + words
        let child = try ChildProcess("/usr/bin/setpriv", words, files: .init(output: output))
        _ = await child.wait()
        return try FileReader.text(output)
    }

    /// An agent with one transfer, in a folder that all users may enter. The agent's own files keep the modes that the
    /// agent gave them.
    private func withTransfer(_ use: (AgentRig) async throws -> Void) async throws {
        try await SurvivalRows.with { rig, origin in
            let own = try await rig.attach()
            try await own.download(origin.url("/film")) { $0.earliestBegin = SystemTime.wall + 3_600_000_000_000 }
            chmod(rig.folder, 0o755)
            try await use(rig)
            #expect(try await own.transfers().count == 1)
            own.close()
        }
    }

    @Test("An agent disconnects a program of another user, even if it can reach the socket")
    func connecting() async throws {
        try await withTransfer { rig in
            // All users may use the socket, and run this copy of the program.
            chmod(rig.socket, 0o666)
            let program = rig.folder + "/program"
            // Copied by another process: a file that this one writes is open in the programs that other tests start
            // meanwhile, and is then no program (ETXTBSY).
            let copying = try ChildProcess("/bin/cp", [KillRows.program, program])
            #expect(await copying.wait() == 0)
            chmod(program, 0o755)
            let hello = [rig.socket, "org.example.sync", "hello", "-", "-"]
            #expect(try await run([program] + hello, as: .other, rig) == "disconnected\n")
            #expect(try await run([program] + hello, as: .own, rig) == "answered\n")
        }
    }

    @Test("Another user cannot connect to an agent, read its files or end it (security 81)")
    func reaching() async throws {
        try await withTransfer { rig in
            let script = """
                [ -e "$0"/spool ] && echo "sees the files"
                [ -w "$1" ] && echo "may connect"
                kill -0 "$2" 2>/dev/null && echo "may signal"
                echo done
                """
            let words = ["/bin/sh", "-c", script, rig.state, rig.socket, "\(rig.process)"]
            let (other, own) = (try await run(words, as: .other, rig), try await run(words, as: .own, rig))
            #expect(other == "done\n")
            #expect(own == "sees the files\nmay connect\nmay signal\ndone\n")
            #expect(rig.isRunning)
        }
    }
}
