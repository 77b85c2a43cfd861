// SPDX-License-Identifier: Apache-2.0

// Starts programs that have undelivered events or unanswered challenges.

import URLLoading
import URLLoadingIO

extension TransferService {
    /// Starts the program of an identifier, if it has events or challenges, is not connected, and has configured how to
    /// start it. Agents that share a journal start no programs.
    /// - Returns: the nanoseconds until the next check; `nil` if none is needed.
    @discardableResult
    func wakeProgram(_ name: String) -> Int64? {
        guard phase == .serving, !isShared, let owner = owners[name], owner.client == nil,
            let waking = owner.settings.waking,
            owner.undelivered > 0 || hasParked(name)
        else { return nil }
        let now = SystemTime.boot
        guard owners[name]?.wakes.hasEvents(now: now) == true else { return owner.wakes.next.map { max(1, $0 - now) } }
        log("starts the program of \(name)")
        // Not on the threads of files: the user's service manager may take long to answer.
        ProgramWaking.waits.run {
            let started = ProgramWaking.start(waking, identifier: name)
            if case .success(let child?) = started { _ = ProgramEnvironment.wait(for: child) }
            Task { await self.woken(name, started) }
        }
        return owners[name]?.wakes.next.map { max(1, $0 - now) }
    }

    private func woken(_ name: String, _ result: Result<Int32?, ProgramWaking.Failure>) {
        owners[name]?.wakes.ended()
        if case .failure(let failure) = result { log("the program of \(name) cannot be started: \(failure.words)") }
        schedule()
    }
}

enum ProgramWaking {
    /// The threads that start programs, and wait for their ends.
    static let waits = BlockingThreads(limit: 64)

    struct Failure: Error { let words: String }

    /// Starts a program outside of the agent's unit. Blocks.
    /// - Returns: the child to wait for; `nil` if a service manager runs the program.
    static func start(_ order: WakingOrder, identifier: String) -> Result<Int32?, Failure> {
        var environment = ProgramEnvironment.all.merging(order.environment) { $1 }
        for name in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] {
            environment[name] = nil
        }
        environment[WakingOrder.variable] = identifier
        if let unit = order.unit {
            if let failure = run(["systemctl", "--user", "start", "--no-block", unit], environment) {
                return .failure(failure)
            }
            return .success(nil)
        }
        guard !order.arguments.isEmpty else { return .failure(Failure(words: "no program is named")) }
        // If the agent runs in a unit, a plain child process would end with the unit.
        if ProgramEnvironment.all["INVOCATION_ID"] != nil {
            // One unit for each identifier: the service manager does not start it twice.
            let unit = "url-loading-program-\(DigestHash.sha256.hex(Array(identifier.utf8))?.prefix(16) ?? "")"
            var arguments = ["systemd-run", "--user", "--collect", "--quiet", "--unit=\(unit)"]
            arguments += order.folder.map { ["--working-directory=\($0)"] } ?? []
            arguments += order.environment.merging([WakingOrder.variable: identifier]) { $1 }.map {
                "--setenv=\($0)=\($1)"
            }
            if run(arguments + ["--"] + order.arguments, environment) == nil
                || run(["systemctl", "--user", "is-active", "--quiet", unit], environment) == nil
            {
                return .success(nil)
            }
        }
        do throws(IOFailure) {
            let program = Program(order.arguments, environment: environment, folder: order.folder, leadsSession: true)
            return .success(try program.start())
        } catch { return .failure(Failure(words: error.words)) }
    }

    private static func run(_ arguments: [String], _ environment: [String: String]) -> Failure? {
        do throws(IOFailure) {
            let code = ProgramEnvironment.wait(for: try Program(arguments, environment: environment).start())
            // A lost status, of an agent that inherited that the ends of its children are ignored, is no failure.
            return code <= 0 ? nil : Failure(words: "\(arguments[0]) ended with \(code)")
        } catch { return Failure(words: "\(arguments[0]): \(error.words)") }
    }
}
