// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport

/// Problems of credential files are reported (security 81).
@Suite struct CredentialProblemTests {
    private func withFolder(_ use: (URL) throws -> Void) throws {
        let folder = try makeTemporaryFolder("problem")
        defer { try? FileManager.default.removeItem(at: folder) }
        try use(folder)
    }

    @Test("a store says that its folder is not this user's alone")
    func store() throws {
        try withFolder { folder in
            chmod(folder.path(), 0o700)
            let store = CredentialStore(file: folder.appending(path: "credentials.json"))
            let space = ProtectionSpace(host: "a.test", port: 80, scheme: "http", method: .basic)
            let ada = Credential(user: "ada", password: "s3cret", persistence: .permanent)
            #expect(store.set(ada, for: space) && store.problem == nil)
            chmod(folder.path(), 0o777)
            #expect(!store.set(ada, for: space))
            #expect(store.problem?.contains("credentials.json") == true && store.problem?.contains("s3cret") == false)
        }
    }

    @Test(
        "a netrc file that others may read says so",
        arguments: [(0o600, false), (0o400, false), (0o640, true), (0o604, true), (0o622, true)])
    func netrc(_ mode: Int, _ isOpen: Bool) throws {
        try withFolder { folder in
            let file = folder.appending(path: "netrc")
            let netrc = Netrc.file(file)
            #expect(netrc.problem == nil)
            try Data("machine a.test login ada password s3cret".utf8).write(to: file)
            chmod(file.path(), mode_t(mode))
            #expect((netrc.problem != nil) == isOpen)
            #expect(netrc.problem?.contains("s3cret") != true)
        }
    }
}
