import FoundationEssentials
import Testing
import URLLoading
@testable import urlload

/// Who asks, as curl takes it.
@Suite struct LoginOptionsTests {
    private func parse(_ words: String...) throws -> LoginOptions { try ArgumentParser.parse(words + ["http://a.test/x"]).login }

    @Test func users() throws {
        let login = try parse("-u", "ada:p:w")
        #expect(login.user == "ada" && login.password == "p:w" && !login.needsPassword)
        #expect(try parse("-uada").needsPassword)
        #expect(try parse("-u", "ada:").password == "")
        let url = try #require(URL(string: "http://A.test/x"))
        let store = try #require(login.settings([url]).credentials)
        #expect(store.all.count == 1)
        let space = ProtectionSpace(host: "a.test", port: 80, scheme: "http", realm: "r", method: .digest)
        #expect(store.credential(for: space)?.password == "p:w")
        let other = ProtectionSpace(host: "a.test", port: 81, scheme: "http", realm: "r", method: .digest)
        #expect(store.credential(for: other) == nil)
    }

    @Test func ways() throws {
        #expect(try parse().methods == nil)
        #expect(try parse("--digest").methods == [.digest])
        #expect(try parse("--digest", "--basic").methods == [.digest, .basic])
        #expect(try parse("--ntlm", "-u", "D\\ada:pw").methods == [.ntlm])
        #expect(try parse("--digest", "--anyauth").methods == nil)
        #expect(try parse("-n").netrc == .standard)
        #expect(try parse("--netrc-file", "/x").netrc == .file(URL(filePath: "/x")))
        #expect(try parse("--oauth2-bearer", "abc").token == "abc" && parse("--bearer=t").token == "t")
        let error = #expect(throws: UsageError.self) { try parse("--bearer", "SECRET\n") }
        #expect(error?.words.contains("SECRET") == false)
    }
}
