// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import urlload

@Suite struct BackgroundUseTests {
    @Test("Each option of the command line has its treatment in the background")
    func complete() {
        let names = OptionTable.curl.rules.map(\.long)
        #expect(Set(names).subtracting(BackgroundUse.all.keys).sorted() == [])
        #expect(Set(BackgroundUse.all.keys).subtracting(names).sorted() == [])
    }

    @Test(
        "An option that the agent cannot apply is refused by its name",
        arguments: [
            (["-C", "-", "-o", "a"], "--continue-at"), (["-R"], "--remote-time"),
            (["-z", "2025-01-01"], "--time-cond"),
            (["--limit-rate", "1k"], "--limit-rate"), (["--retry", "3"], "--retry"), (["-d", "a=b"], "--data"),
            (["-x", "http://127.0.0.1:3128"], "--proxy"), (["-v"], "--verbose"),
            (["-J", "-O"], "--remote-header-name"),
            (["--no-location"], "--no-location"), (["-I"], "--head"), (["-w", "%{http_code}"], "--write-out"),
            (["--compressed"], "--compressed"), (["-b", "a=1"], "--cookie"), (["-4"], "--ipv4"),
        ] as [([String], String)])
    func refused(_ words: [String], _ name: String) throws {
        let options = try ArgumentParser.parse(words + ["http://example.org/a"])
        let problem = try #require(BackgroundUse.problem(options))
        #expect(problem.hasPrefix("\(name) cannot be used in the background: "), "\(problem)")
    }

    @Test(
        "An option that is carried, or undone, is accepted",
        arguments: [
            ["-f"], ["--fail-with-body"], ["-fsS", "--create-dirs", "-o", "a/b"], ["-G", "-d", "a=b"], ["-H", "A: b"],
            ["-X", "POST"], ["-u", "a:b", "--digest"], ["-m", "3"], ["-k"], ["-n"], ["-T", "a"],
            ["--cacert", "a.pem"],
        ])
    func accepted(_ words: [String]) throws {
        #expect(BackgroundUse.problem(try ArgumentParser.parse(words + ["http://example.org/a"])) == nil)
    }
}
