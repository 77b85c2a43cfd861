// SPDX-License-Identifier: Apache-2.0

import URLLoadingCSystem

package enum LocalDatagram {
    /// Sends one datagram to a local socket. Its arrival is not confirmed.
    package static func send(_ text: String, to address: SocketAddress) {
        _ = address.withSystemAddress { csys_send_datagram($0, $1, text) }
    }
}
