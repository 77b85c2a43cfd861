// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingIO

enum Loopback {
    /// Whether this machine has `::1`.
    static let hasIPv6: Bool = {
        guard let listener = try? SocketListener(.ipv6([UInt8](repeating: 0, count: 15) + [1], port: 0)) else {
            return false
        }
        listener.close()
        return true
    }()
    static let lacksIPv6: Comment = "this machine has no IPv6"
}
