// SPDX-License-Identifier: Apache-2.0

import URLLoading
import URLLoadingIO

/// What of the machine decides whether transfers run that leave their moment to the agent.
struct MachineState: Sendable, Equatable {
    var isOnBattery = false
    /// Whether the network path is expensive or constrained.
    var isMetered = false
    /// The share of the last minute in which tasks waited for the processor or for a disk, in percent.
    var pressure = 0.0

    /// The pressure above which the machine counts as busy.
    static let maximumPressure = 50.0
    /// The nanoseconds after which a transfer no longer waits for a good moment: a day.
    static let maximumDelay: Int64 = 86_400_000_000_000

    var allowsDiscretionary: Bool { !isOnBattery && !isMetered && pressure <= Self.maximumPressure }

    /// Reads the state of this machine. What the system does not report counts as good.
    /// - Parameter root: the folder that has `proc` and `sys`.
    static func read(root: String = "", path: NetworkPath = NetworkMonitor.shared.current) -> MachineState {
        var state = MachineState()
        state.isMetered = path.isExpensive || path.isConstrained
        let supplies = root + "/sys/class/power_supply"
        state.isOnBattery = PrivateFolder.names(supplies, atMost: 64).contains { name in
            let status = (try? FileReader.text("\(supplies)/\(name)/status")) ?? ""
            return status.hasPrefix("Discharging")
        }
        for resource in ["cpu", "io"] {
            let text = (try? FileReader.text("\(root)/proc/pressure/\(resource)")) ?? ""
            state.pressure = max(state.pressure, pressure(text) ?? 0)
        }
        return state
    }

    /// Returns the average of the last minute from the text of `/proc/pressure/cpu`.
    static func pressure(_ text: String) -> Double? {
        let words = text.split(separator: "\n").first { $0.hasPrefix("some ") }?.split(separator: " ") ?? []
        return words.first { $0.hasPrefix("avg60=") }.flatMap { Double($0.dropFirst(6)) }
    }
}
