import URLLoadingIO

/// What a load is for, as far as the networks on its way need to know: its packets are marked with it (DSCP, RFC 2474).
///
/// ```swift
/// configuration.trafficClass = .background    // backups give way to everything else
/// request.trafficClass = .responsive          // somebody waits for this one
/// ```
/// Home and company networks, and Wi-Fi above all (RFC 8325), order their queues by it; at the border of a network it is
/// often removed, and nothing is promised. It changes nothing in how loads of one session are ordered: that is their
/// task's priority.
///
/// Connections belong to their class: a load uses none of another, for a mark in the middle of a connection puts its
/// packets out of order (RFC 7657 §5.4). So ``Configuration/maximumConnectionsPerHost`` counts for each class. A proxy
/// marks what it sends on as it likes.
public struct TrafficClass: Sendable, Hashable, CustomStringConvertible {
    /// The code point of the packets, 0 to 63.
    public let dscp: UInt8

    /// A class of one's own network.
    /// - Parameter dscp: 0 to 63; what is above is 63.
    public init(dscp: UInt8) { self.dscp = min(dscp, 63) }

    /// What has no other: the default (DF, 0).
    public static let `default` = TrafficClass(dscp: 0)
    /// What may take as long as it takes, and uses what nobody else wants (LE, 1; RFC 8622).
    public static let background = TrafficClass(dscp: 1)
    /// Data somebody waits for (low-latency data, AF21, 18; RFC 4594 §4.7).
    public static let responsive = TrafficClass(dscp: 18)
    /// Sound and pictures that are played while they come (multimedia streaming, AF31, 26; RFC 4594 §4.5).
    public static let streaming = TrafficClass(dscp: 26)
    /// Sound and pictures that answer to somebody: remote desktops, games (real-time interactive, CS4, 32; RFC 4594 §4.4).
    public static let interactive = TrafficClass(dscp: 32)
    /// Sound and pictures of a conversation (multimedia conferencing, AF41, 34; RFC 4594 §4.3).
    public static let video = TrafficClass(dscp: 34)
    /// What sets up calls (signaling, CS5, 40; RFC 4594 §4.2).
    public static let signaling = TrafficClass(dscp: 40)
    /// The sound of a call (telephony, EF, 46; RFC 4594 §4.1).
    public static let voice = TrafficClass(dscp: 46)

    /// The code point: `DSCP 46`.
    public var description: String { "DSCP \(dscp)" }

    /// `nil` for what need not be marked.
    var mark: SocketMark? {
        self == .default ? nil : SocketMark(codePoint: dscp, priority: priority)
    }

    /// Linux's order of what waits to be sent: 1 gives way to all, 4 is for streams, 6 for what is heard or answered.
    private var priority: Int32 {
        switch self {
        case .background: 1
        case .interactive, .signaling, .voice: 6
        case .responsive, .streaming, .video: 4
        default: 0
        }
    }
}
