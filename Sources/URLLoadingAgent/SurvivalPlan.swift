// SPDX-License-Identifier: Apache-2.0

import Glibc
import URLLoading
import URLLoadingIO

/// Determines how long this agent's transfers survive. Pure; the control group shows the unit of the process.
enum SurvivalPlan {
    /// - Parameters:
    ///   - group: the content of `/proc/self/cgroup`.
    ///   - lingers: whether the user's service manager runs without a login.
    ///   - isEnabled: whether a unit starts the agent with the system, or with the user's manager.
    static func make(group: String, lingers: Bool, isEnabled: Bool) -> BackgroundSurvival {
        let path = group.split(separator: "\n").first { $0.hasPrefix("0::") || $0.contains("name=systemd") }
        let units = path.map { $0.split(separator: "/").dropFirst().map(String.init) } ?? []
        guard let unit = units.last(where: { $0.hasSuffix(".service") || $0.hasSuffix(".scope") }) else {
            return .untilReboot
        }
        let isUserService = units.contains { $0.hasPrefix("user@") && $0.hasSuffix(".service") }
        let isAgents = unit.hasPrefix("url-loading-agent")
        if unit.hasPrefix("session-"), unit.hasSuffix(".scope") { return .untilLogout }
        if !isAgents, unit.hasSuffix(".service"), !unit.hasPrefix("user@") { return .untilStop(unit: unit) }
        if isUserService, !lingers { return .untilLogout }
        return isEnabled ? .reboot : .untilReboot
    }

    /// The survival of this process's transfers.
    static func current(_ environment: [String: String], isManaged: Bool) -> BackgroundSurvival {
        let group = (try? FileReader.text("/proc/self/cgroup")) ?? ""
        let name = ProgramEnvironment.userName ?? ""
        let lingers = access("/var/lib/systemd/linger/\(name)", F_OK) == 0
        return make(group: group, lingers: lingers, isEnabled: isManaged)
    }
}
