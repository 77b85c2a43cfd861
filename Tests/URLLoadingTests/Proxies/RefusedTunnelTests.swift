import Testing

@testable import URLLoading

/// Which way may go on where a proxy has refused one.
@Suite struct RefusedTunnelTests {
    private func proxy(_ text: String) throws -> Proxy { try Proxy(text) }

    @Test("the refuser is told by its place, who asks may be another; those before it are the same with their logins")
    func places() throws {
        let refuser = try proxy("http://two.example:8080")
        let first = try proxy("http://ada:1@one.example:3128")
        func goesOn(_ way: ProxyChain) -> Bool { way.reaches(refuser, behind: [first]) }
        #expect(goesOn([first, refuser]) && goesOn([first, refuser, first]))
        #expect(goesOn([first, try proxy("http://ben:2@two.example:8080")]))
        for other in [
            "http://two.example:8081", "http://other.example:8080", "https://two.example:8080",
            "socks5://two.example:8080",
        ] {
            #expect(!goesOn([first, try proxy(other)]), "\(other)")
        }
        #expect(!goesOn([first]) && !goesOn([refuser]) && !goesOn([refuser, first]) && !goesOn(.direct))
        #expect(!goesOn([try proxy("http://ben:2@one.example:3128"), refuser]))
    }
}
