// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingTestSupport

@testable import URLLoading

/// The state of the file after a process has ended.
@Suite(.timeLimit(.minutes(4)))
struct CookieExitTests {
    @Test("cookies are in the file when the process exits, without an explicit flush")
    func exits() async throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/state"
        defer { withExtendedLifetime(folder) {} }
        await #expect(processExitsWith: .success) { [path = path as String] in
            let (cookies, hosts) = (
                CookieStore(directory: URL(filePath: path)), HSTSStore(directory: URL(filePath: path))
            )
            guard let cookie = Cookie(name: "a", value: "1", domain: "example.org", expires: .now + 1000),
                let host = HSTSHost("example.org", expires: .now + 1000)
            else { exit(3) }
            cookies.set(cookie)
            hosts.set(host)
            withExtendedLifetime((cookies, hosts)) { exit(0) }
        }
        #expect(CookieStore(directory: URL(filePath: path)).all.map(\.name) == ["a"])
        #expect(HSTSStore(directory: URL(filePath: path)).all.map(\.name) == ["example.org"])
    }

    @Test("a killed process loses only what it had not written")
    func killed() async throws {
        for round in 0..<5 {
            let folder = try TemporaryFolder()
            let path = "\(folder.path)/state"
            defer { withExtendedLifetime(folder) {} }
            await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, round = round as Int] in
                let store = CookieStore(directory: URL(filePath: path))
                for index in 0..<200 {
                    guard
                        let cookie = Cookie(
                            name: "n\(index)", value: "\(index)", domain: "h\(index).example", expires: .now + 1000)
                    else { exit(3) }
                    store.set(cookie)
                    if index == 100 { await store.flush() }
                    if index == 101 + round * 20 {
                        // During a write, if possible.
                        Task.detached { await store.flush() }
                        for _ in 0..<round { await Task.yield() }
                        kill(getpid(), SIGKILL)
                    }
                }
            }
            let store = CookieStore(directory: URL(filePath: path))
            let found = store.all
            #expect(store.problem == nil && found.count >= 101)
            #expect(found.allSatisfy { "n" + $0.value == $0.name })
        }
    }
}
