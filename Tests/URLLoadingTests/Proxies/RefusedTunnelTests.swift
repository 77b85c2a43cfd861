// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoading

/// The routes that may continue through a proxy that has refused a tunnel.
@Suite struct RefusedTunnelTests {
    private func proxy(_ text: String) throws -> Proxy { try Proxy(text) }

    @Test("a route continues if its refusing proxy has the same address and the preceding proxies the same logins")
    func places() throws {
        let refuser = try proxy("http://two.example:8080")
        let first = try proxy("http://ada:1@one.example:3128")
        func isReached(_ proxyChain: ProxyChain) -> Bool { proxyChain.reaches(refuser, behind: [first]) }
        #expect(isReached([first, refuser]) && isReached([first, refuser, first]))
        #expect(isReached([first, try proxy("http://ben:2@two.example:8080")]))
        for other in [
            "http://two.example:8081", "http://other.example:8080", "https://two.example:8080",
            "socks5://two.example:8080",
        ] {
            #expect(!isReached([first, try proxy(other)]), "\(other)")
        }
        #expect(!isReached([first]) && !isReached([refuser]) && !isReached([refuser, first]) && !isReached(.direct))
        #expect(!isReached([try proxy("http://ben:2@one.example:3128"), refuser]))
    }
}
