/// What transfers of a background session outlive on this system, at least.
///
/// The end of the program, normal or not, is outlived in any case.
public enum BackgroundSurvival: Sendable, Hashable, CustomStringConvertible {
    /// Until the service manager stops this unit, which the agent shares with the program. The next start of the program
    /// goes on with the transfers.
    case untilStop(unit: String)
    /// Until the user's last session ends, for the user does not linger (`loginctl enable-linger`). The next use goes on.
    case untilLogout
    /// Until the system is started again, and from then on when a program of the user's is started.
    case untilReboot
    /// The transfers go on by themselves after the system was started again.
    case reboot

    /// As the agent says it.
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
