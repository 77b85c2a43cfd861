// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading

@testable import urlload

/// Options for credentials, with curl's grammar.
@Suite struct LoginOptionsTests {
    private func parse(_ words: String...) throws -> LoginOptions {
        try ArgumentParser.parse(words + ["http://a.test/x"]).login
    }

    @Test("-u gives user and password to the servers of the URLs") func users() throws {
        let login = try parse("-u", "ada:p:w")
        #expect(login.user == "ada" && login.password == "p:w" && !login.needsPassword)
        #expect(try parse("-uada").needsPassword)
        #expect(try parse("-u", "ada:").password == "")
        let url = try #require(URL(string: "http://A.test/x"))
        let store = try #require(login.settings([url]).credentialStore)
        #expect(store.all.count == 1)
        let space = ProtectionSpace(host: "a.test", port: 80, scheme: "http", realm: "r", method: .digest)
        #expect(store.credential(for: space)?.password == "p:w")
        let other = ProtectionSpace(host: "a.test", port: 81, scheme: "http", realm: "r", method: .digest)
        #expect(store.credential(for: other) == nil)
    }

    @Test("Options select authentication schemes, netrc and tokens") func ways() throws {
        #expect(try parse().methods == nil)
        #expect(try parse("--digest").methods == [.digest])
        #expect(try parse("--digest", "--basic").methods == [.digest, .basic])
        #expect(try parse("--ntlm", "-u", "D\\ada:pw").methods == [.ntlm])
        #expect(try parse("--digest", "--anyauth").methods == nil)
        #expect(try parse("-n").netrc == .standard)
        #expect(try parse("--netrc-file", "/dev/null").netrc == .file(URL(filePath: "/dev/null")))
        // A file given on the command line must exist.
        #expect(throws: UsageError.self) { try parse("--netrc-file", "/nowhere/netrc") }
        #expect(try parse("--oauth2-bearer", "abc").token == "abc" && parse("--bearer=t").token == "t")
        for bad in ["a!b", "a b", ""] { #expect(throws: UsageError.self) { try parse("--bearer", bad) } }
        let error = #expect(throws: UsageError.self) { try parse("--bearer", "SECRET\n") }
        #expect(error?.words.contains("SECRET") == false)
    }

    /// Schemes for servers do not restrict those for proxies, as in curl.
    @Test("Options select authentication schemes for proxies") func proxies() throws {
        #expect(try parse("--proxy-user", "a:b").settings([]).proxyMethods == nil)
        let digest = try parse("--digest").settings([])
        #expect(digest.methods == [.digest] && digest.proxyMethods == [.negotiate, .digest, .ntlm, .basic])
        let proxy = try parse("--proxy-digest", "--proxy-ntlm").settings([])
        #expect(proxy.methods == nil && proxy.proxyMethods == [.digest, .ntlm])
        let any = try parse("--proxy-digest", "--proxy-anyauth").settings([])
        #expect(any.proxyMethods == nil && any.waitsForProxyChallenge)
        #expect(try !parse("--proxy-user", "a:b").settings([]).waitsForProxyChallenge)
    }
}
