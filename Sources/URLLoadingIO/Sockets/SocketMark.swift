// SPDX-License-Identifier: Apache-2.0

// Marks a connection's packets with a traffic class.

import URLLoadingCSystem

package struct SocketMark: Sendable, Hashable {
    /// The DSCP (RFC 2474), 0 to 63.
    package let codePoint: UInt8
    /// The priority of queued outgoing packets (SO_PRIORITY): 0 to 6, the range open to unprivileged processes.
    package let priority: Int32

    package init(codePoint: UInt8, priority: Int32) { (self.codePoint, self.priority) = (codePoint, priority) }

    /// Applied before connecting, so that the first packet carries the mark too. Best effort: a refused mark is
    /// ignored.
    func apply(to descriptor: Int32, for peer: SocketAddress) {
        guard peer.family != .unix else { return }
        _ = csys_set_traffic_class(descriptor, peer.systemFamily, Int32(codePoint), priority)
    }
}
