// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

extension URL {
    /// The http or https URL of the handshake: ws is http, wss is https. `nil` for other schemes.
    var openingWebSocket: URL? {
        switch scheme?.lowercased() {
        case "ws", "wss": URL(string: "http" + absoluteString.dropFirst(2))
        case "http", "https": self
        default: nil
        }
    }
}
