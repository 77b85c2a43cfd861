// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import urlload

/// Addresses as people type them.
@Suite struct AddressCleaningTests {
    @Test(
        "white space around an address and dot segments in its path are removed",
        arguments: [
            (" http://a/b ", "http://a/b"), ("\thttp://a\n", "http://a"), ("a/./b/../c", "a/c"),
            ("http://a/../../b", "http://a/b"), ("http://a/b/..", "http://a/"), ("http://a/b/.", "http://a/b/"),
            ("http://a?x=/../y", "http://a?x=/../y"), ("http://a/b/../c?x=/../y#/../z", "http://a/c?x=/../y#/../z"),
            ("http://a/.b/..c/...", "http://a/.b/..c/..."), ("http://a/%2e%2e/b", "http://a/%2e%2e/b"),
            ("data:,/../a", "data:,/../a"), ("http://a", "http://a"), ("file:///a/../b", "file:///b"), ("", ""),
        ])
    func cleaned(_ text: String, _ expected: String) {
        #expect(AddressText.cleaned(text, keepsPath: false) == expected)
    }

    @Test("--path-as-is keeps the path") func keptPath() throws {
        #expect(AddressText.cleaned(" http://a/b/../c ", keepsPath: true) == "http://a/b/../c")
        let jobs = try Job.all(ArgumentParser.parse(["--path-as-is", "http://a/b/../c"]))
        #expect(jobs[0].url == "http://a/b/../c")
        let cleaned = try Job.all(ArgumentParser.parse(["http://a/b/../c"]))
        #expect(cleaned[0].url == "http://a/c")
    }
}
