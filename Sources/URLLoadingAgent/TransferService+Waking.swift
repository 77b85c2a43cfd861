// SPDX-License-Identifier: Apache-2.0

// Starts programs that have undelivered events or unanswered challenges.

import FoundationEssentials
import URLLoading
import URLLoadingIO

extension TransferService {
    /// Starts the program of an identifier, if it has events or challenges, is not connected, and has configured how to
    /// start it.
    /// - Returns: the nanoseconds until the next check; `nil` if none is needed.
    @discardableResult
    func wakeProgram(_ name: String) -> Int64? {
        guard !isStopping, let owner = owners[name], owner.client == nil, let waking = owner.settings.waking,
            events.values.contains(where: { $0.identifier == name }) || hasParked(name)
        else { return nil }
        let now = SystemTime.boot
        guard owners[name]?.wakes.hasEvents(now: now) == true else { return owner.wakes.next.map { max(1, $0 - now) } }
        log("starts the program of \(name)")
        BlockingThreads.files.run {
            let failure = ProgramWaking.start(waking, identifier: name)
            Task { await self.woken(name, failure) }
        }
        return owners[name]?.wakes.next.map { max(1, $0 - now) }
    }

    private func woken(_ name: String, _ failure: String?) {
        owners[name]?.wakes.ended()
        if let failure { log("the program of \(name) cannot be started: \(failure)") }
        schedule()
    }
}

enum ProgramWaking {
    /// Starts a program outside of the agent's unit. Blocks.
    /// - Returns: a description of the failure; `nil` on success.
    static func start(_ order: WakingOrder, identifier: String) -> String? {
        var environment = ProgramEnvironment.all.merging(order.environment) { $1 }
        for name in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] {
            environment[name] = nil
        }
        environment[WakingOrder.variable] = identifier
        if let unit = order.unit {
            return run(["systemctl", "--user", "start", "--no-block", unit], environment)
        }
        guard !order.arguments.isEmpty else { return "no program is named" }
        // If the agent runs in a unit, a plain child process would end with the unit.
        if ProgramEnvironment.all["INVOCATION_ID"] != nil {
            var arguments = ["systemd-run", "--user", "--collect", "--quiet"]
            arguments += order.folder.map { ["--working-directory=\($0)"] } ?? []
            arguments += order.environment.merging([WakingOrder.variable: identifier]) { $1 }.map {
                "--setenv=\($0)=\($1)"
            }
            if run(arguments + ["--"] + order.arguments, environment) == nil { return nil }
        }
        do throws(IOFailure) {
            try Program(order.arguments, environment: environment, folder: order.folder).startDetached()
            return nil
        } catch { return "\(error.code)" }
    }

    private static func run(_ arguments: [String], _ environment: [String: String]) -> String? {
        do throws(IOFailure) {
            let code = ProgramEnvironment.wait(for: try Program(arguments, environment: environment).start())
            return code == 0 ? nil : "\(arguments[0]) ended with \(code)"
        } catch { return "\(arguments[0]): \(error.code)" }
    }
}
