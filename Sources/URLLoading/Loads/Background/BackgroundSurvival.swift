// SPDX-License-Identifier: Apache-2.0

/// The events that transfers of a background session survive on this system, at least.
///
/// Transfers always survive the end of the program, normal or not.
public enum BackgroundSurvival: Sendable, Hashable, CustomStringConvertible {
    /// Survives until the service manager stops this unit, which contains the agent and the program. The next start of
    /// the program continues the transfers.
    case untilStop(unit: String)
    /// Survives until the user's last session ends, because lingering is disabled (`loginctl enable-linger`). The next
    /// use of a background session continues the transfers.
    case untilLogout
    /// Survives until a reboot. After it, the next start of a program of the user's continues the transfers.
    case untilReboot
    /// Survives a reboot: the transfers then continue without a program.
    case reboot

    /// The text in the agent's messages.
    package var text: String {
        switch self {
        case .untilStop(let unit): "untilStop \(unit)"
        case .untilLogout: "untilLogout"
        case .untilReboot: "untilReboot"
        case .reboot: "reboot"
        }
    }

    package init?(text: String) {
        let words = text.split(separator: " ", maxSplits: 1)
        switch words.first {
        case "untilStop" where words.count == 2: self = .untilStop(unit: String(words[1]))
        case "untilLogout": self = .untilLogout
        case "untilReboot": self = .untilReboot
        case "reboot": self = .reboot
        default: return nil
        }
    }

    public var description: String { text }
}
