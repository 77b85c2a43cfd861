// SPDX-License-Identifier: Apache-2.0

// Finds or starts the background agent according to the launch plan.

import Glibc
import URLLoadingIO

package enum AgentLauncher {
    /// Returns the facts of this process.
    package static func facts(_ environment: [String: String]? = nil) -> LaunchPlan.Facts {
        let user = LocalPeer.ownUser
        var path = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        let count = readlink("/proc/self/exe", &path, Int(PATH_MAX))
        // C's char is signed on x86-64 and unsigned on aarch64.
        let bytes = path.prefix(max(0, count)).map { UInt8(truncatingIfNeeded: $0) }
        let program = String(decoding: bytes, as: UTF8.self)
        return LaunchPlan.Facts(
            environment: environment ?? ProgramEnvironment.all, user: user,
            userName: ProgramEnvironment.userName ?? String(user), programFolder: program.folder,
            isSocket: { FileKind.isSocket($0) }, isExecutable: { access($0, X_OK) == 0 })
    }

    /// Connects to the agent, and starts one if the plan says so.
    /// - Throws: ``AgentFailure``.
    package static func open(_ facts: LaunchPlan.Facts) async throws(AgentFailure) -> AgentLink {
        let plan = LaunchPlan.make(facts)
        guard let socket = plan.socket else { throw AgentFailure(.noAgent, plan.description) }
        // An agent that is about to exit may accept a connection and close it: it is started again then.
        for attempt in 0..<3 {
            do throws(AgentFailure) { return try await AgentLink.open(socket) } catch {
                guard error.code == .unreachable, attempt < 2 else { throw error }
            }
            switch plan {
            case .spawned(let socket, let executable):
                let started = await BlockingThreads.files.call(.never) { spawn(executable, socket, facts) }
                if case .failure(let failure)? = started { throw failure }
            case .userService(let socket, let executable):
                let started = await BlockingThreads.files.call(.never) { startService(executable, socket, facts) }
                if case .failure? = started {
                    let spawned = LaunchPlan.spawned(
                        socket: facts.stateFolder + "/agent.sock", executable: executable)
                    return try await open(facts, spawned)
                }
            case .listening(let socket) where LocalListener.isAbandoned(socket):
                // Its agent was killed or its unit stopped: the next case of the plan applies.
                return try await open(facts.ignoring(socket))
            case .named, .listening, .impossible: break
            }
        }
        throw AgentFailure(.unreachable, plan.description)
    }

    private static func open(_ facts: LaunchPlan.Facts, _ plan: LaunchPlan) async throws(AgentFailure) -> AgentLink {
        guard case .spawned(let socket, let executable) = plan else {
            throw AgentFailure(.unreachable, plan.description)
        }
        let started = await BlockingThreads.files.call(.never) { spawn(executable, socket, facts) }
        if case .failure(let failure)? = started { throw failure }
        return try await AgentLink.open(socket)
    }

    /// Binds the socket and starts an agent that inherits it: connections wait in the socket's queue until the agent
    /// accepts them. Blocks.
    private static func spawn(_ executable: String, _ socket: String, _ facts: LaunchPlan.Facts) -> Result<
        Void, AgentFailure
    > {
        do throws(IOFailure) {
            try PrivateFolder.make(facts.stateFolder)
            // The lock prevents that programs started at the same moment bind the socket twice.
            let lock = try FileLock(facts.stateFolder + "/launch.lock", timeout: 10_000)
            defer { withExtendedLifetime(lock) {} }
            // An agent that is too busy to accept connections listens, too: its socket stays.
            if FileKind.isSocket(socket), !LocalListener.isAbandoned(socket) { return .success(()) }
            let listener = try LocalListener.descriptor(replacing: socket)
            var environment = facts.environment
            for name in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_USEC"] {
                environment[name] = nil
            }
            let program = Program(
                [executable, "--listener", "3", "--socket", socket], environment: environment, folder: "/",
                files: [nil, nil, log(facts.stateFolder), listener])
            try program.startDetached()
            return .success(())
        } catch { return .failure(AgentFailure(.unreachable, "\(executable): \(error.words)")) }
    }

    /// Opens the log of agents that no service manager starts; a long one is set aside before. `nil` without one.
    private static func log(_ folder: String) -> PassedFile? {
        let path = folder + "/agent.log"
        if let reader = try? FileReader(path: path), reader.size > 1 << 20 { PrivateFolder.rename(path, path + ".1") }
        let descriptor = Glibc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        return descriptor < 0 ? nil : PassedFile(descriptor)
    }

    /// Starts a transient unit. If the agent's units are installed and the socket is not enabled, the unit's name is
    /// taken, and the installed socket is started. Blocks.
    private static func startService(_ executable: String, _ socket: String, _ facts: LaunchPlan.Facts) -> Result<
        Void, AgentFailure
    > {
        var arguments = ["systemd-run", "--user", "--collect", "--quiet", "--unit=url-loading-agent"]
        arguments += ["--service-type=notify", "--property=NotifyAccess=main"]
        for name in ["XDG_STATE_HOME", "XDG_CACHE_HOME"] {
            if let value = facts.environment[name] { arguments.append("--setenv=\(name)=\(value)") }
        }
        arguments += [executable, "--socket", socket]
        do throws(IOFailure) {
            for command in [arguments, ["systemctl", "--user", "--quiet", "start", "url-loading-agent.socket"]] {
                let process = try Program(command, environment: facts.environment).start()
                let code = ProgramEnvironment.wait(for: process)
                if code == 0 { return .success(()) }
                // Where the status is lost, the socket tells: both commands end when the agent listens.
                if code < 0, FileKind.isSocket(socket), !LocalListener.isAbandoned(socket) { return .success(()) }
            }
            return .failure(AgentFailure(.unreachable, "the user's service manager starts no agent"))
        } catch { return .failure(AgentFailure(.unreachable, "systemd-run: \(error.words)")) }
    }
}
