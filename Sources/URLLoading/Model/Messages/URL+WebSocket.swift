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

    /// Returns this URL of a handshake as the program writes it: with ws or wss if `given`, the URL of its request, has
    /// such a scheme.
    func ofWebSocket(like given: URL) -> URL {
        guard ["ws", "wss"].contains(given.scheme?.lowercased()) else { return self }
        if self == given.openingWebSocket { return given }
        guard ["http", "https"].contains(scheme?.lowercased()) else { return self }
        return URL(string: "ws" + absoluteString.dropFirst(4)) ?? self
    }
}
