// What the networks on the way are told of a connection's packets.

import URLLoadingCSystem

package struct SocketMark: Sendable, Hashable {
    /// DSCP (RFC 2474), 0 to 63.
    package let codePoint: UInt8
    /// Of packets that wait at this end, by Linux's order (SO_PRIORITY): 0 to 6, what anybody may ask for.
    package let priority: Int32

    package init(codePoint: UInt8, priority: Int32) { (self.codePoint, self.priority) = (codePoint, priority) }

    /// Before it connects, so that the first packet has it, too. A wish: one that is not granted ends nothing.
    func apply(to descriptor: Int32, for peer: SocketAddress) {
        guard peer.family != .unix else { return }
        _ = csys_set_traffic_class(descriptor, peer.systemFamily, Int32(codePoint), priority)
    }
}
