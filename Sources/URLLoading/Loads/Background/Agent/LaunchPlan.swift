// SPDX-License-Identifier: Apache-2.0

// Decides where the background agent is found, or how it is started. Pure: all facts are passed in.

/// How a background agent is reached: the first case that applies.
package enum LaunchPlan: Sendable, Equatable, CustomStringConvertible {
    /// `URLLOADING_AGENT_SOCKET` names the socket; the program starts no agent.
    case named(socket: String)
    /// A service manager, or an agent, listens on the socket, unless it was abandoned.
    case listening(socket: String)
    /// The user's service manager starts the agent.
    case userService(socket: String, executable: String)
    /// The program starts the agent as a process of its own (setsid(2)) in the program's cgroup: stopping the program's
    /// service ends it.
    case spawned(socket: String, executable: String)
    case impossible(String)

    /// The facts that determine the plan.
    package struct Facts: Sendable {
        package var environment: [String: String]
        package var user: UInt32
        package var userName: String
        /// The folder of the executable.
        package var programFolder: String
        /// Returns whether a path is a socket.
        package var isSocket: @Sendable (String) -> Bool
        /// Returns whether a path is executable.
        package var isExecutable: @Sendable (String) -> Bool

        /// `XDG_RUNTIME_DIR` of the environment, or `/run/user/UID`.
        var runtimeFolder: String { Self.absolute(environment["XDG_RUNTIME_DIR"]) ?? "/run/user/\(user)" }

        /// The folder of the agent's journal and files.
        package var stateFolder: String {
            (Self.absolute(environment["XDG_STATE_HOME"]) ?? (environment["HOME"] ?? "") + "/.local/state")
                + "/url-loading"
        }

        /// Returns the facts without a socket on which no process listens.
        func ignoring(_ socket: String) -> Facts {
            var facts = self
            facts.isSocket = { [isSocket] in $0 != socket && isSocket($0) }
            return facts
        }

        static func absolute(_ path: String?) -> String? { path.flatMap { $0.hasPrefix("/") ? $0 : nil } }

        /// The path of the agent's executable: from the environment, beside the program, or in PATH.
        var executable: String? {
            if let named = environment["URLLOADING_AGENT"] { return isExecutable(named) ? named : nil }
            let folders = [programFolder] + (environment["PATH"] ?? "").split(separator: ":").map(String.init)
            return folders.filter { $0.hasPrefix("/") }.map { $0 + "/url-loading-agent" }.first(where: isExecutable)
        }
    }

    package static func make(_ facts: Facts) -> LaunchPlan {
        if let socket = facts.environment["URLLOADING_AGENT_SOCKET"], !socket.isEmpty { return .named(socket: socket) }
        let own = facts.runtimeFolder + "/url-loading/agent.sock"
        let spawned = facts.stateFolder + "/agent.sock"
        let systemAccount = "/run/url-loading/\(facts.userName)/agent.sock"
        for socket in [own, systemAccount] where facts.isSocket(socket) { return .listening(socket: socket) }
        guard let executable = facts.executable else {
            return .impossible(
                "no url-loading-agent beside the program or in PATH; install it, or name it in URLLOADING_AGENT")
        }
        // Only one agent may use a journal, so an agent that was spawned before is used further.
        if !facts.isSocket(spawned), facts.isSocket(facts.runtimeFolder + "/systemd/private") {
            return .userService(socket: own, executable: executable)
        }
        return .spawned(socket: spawned, executable: executable)
    }

    package var socket: String? {
        switch self {
        case .named(let socket), .listening(let socket), .userService(let socket, _), .spawned(let socket, _): socket
        case .impossible: nil
        }
    }

    package var description: String {
        switch self {
        case .named(let socket): "URLLOADING_AGENT_SOCKET names \(socket)"
        case .listening(let socket): "an agent listens at \(socket)"
        case .userService(let socket, let executable):
            "the user's service manager starts \(executable), which listens at \(socket)"
        case .spawned(let socket, let executable):
            "this program starts \(executable), which listens at \(socket) and ends with the program's service"
        case .impossible(let reason): reason
        }
    }
}
