// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

/// The purpose of a load as far as networks may know it: a DSCP mark on its packets (RFC 2474).
///
/// ```swift
/// configuration.networks.trafficClass = .background    // backups yield to everything else
/// request.trafficClass = .responsive          // the user waits for this one
/// ```
/// Home and company networks, and Wi-Fi above all (RFC 8325), order their queues by the mark; at the border of a
/// network it is often removed, so it guarantees nothing. It does not affect the order of loads in a session, which
/// follows the priority of their tasks.
///
/// Connections belong to a class: a load does not use connections of other classes, because a change of the mark within
/// a connection reorders its packets (RFC 7657 §5.4). So ``Configuration/Connections/maximumPerHost`` counts for each
/// class. A proxy chooses the marks of the packets it forwards.
public struct TrafficClass: Sendable, Hashable, CustomStringConvertible {
    /// The code point of the packets, 0 to 63.
    public let dscp: UInt8

    /// Creates a class with a code point of the local network.
    /// - Parameter dscp: 0 to 63; greater values count as 63.
    public init(dscp: UInt8) { self.dscp = min(dscp, 63) }

    /// The default class, without a mark (DF, 0).
    public static let `default` = TrafficClass(dscp: 0)
    /// Transfers without urgency, which use only spare capacity (LE, 1; RFC 8622).
    public static let background = TrafficClass(dscp: 1)
    /// Data that a user waits for (low-latency data, AF21, 18; RFC 4594 §4.7).
    public static let responsive = TrafficClass(dscp: 18)
    /// Audio and video that are played while they arrive (multimedia streaming, AF31, 26; RFC 4594 §4.5).
    public static let streaming = TrafficClass(dscp: 26)
    /// Audio and video that react to a user: remote desktops, games (real-time interactive, CS4, 32; RFC 4594 §4.4).
    public static let interactive = TrafficClass(dscp: 32)
    /// Audio and video of a conversation (multimedia conferencing, AF41, 34; RFC 4594 §4.3).
    public static let video = TrafficClass(dscp: 34)
    /// Call setup (signaling, CS5, 40; RFC 4594 §4.2).
    public static let signaling = TrafficClass(dscp: 40)
    /// The audio of a call (telephony, EF, 46; RFC 4594 §4.1).
    public static let voice = TrafficClass(dscp: 46)

    /// The code point: `DSCP 46`.
    public var description: String { "DSCP \(dscp)" }

    /// The socket's mark; `nil` for the default class.
    var mark: SocketMark? {
        self == .default ? nil : SocketMark(codePoint: dscp, priority: priority)
    }

    /// Linux's socket priority: 1 yields to all others, 4 is for streaming, 6 for interactive traffic.
    private var priority: Int32 {
        switch self {
        case .background: 1
        case .interactive, .signaling, .voice: 6
        case .responsive, .streaming, .video: 4
        default: 0
        }
    }
}
