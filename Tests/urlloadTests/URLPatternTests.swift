// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import urlload

struct URLPatternTests {
    @Test(
        "Ranges and sets are expanded to several URLs",
        arguments: [
            ("a[1-3]", ["a1", "a2", "a3"]), ("a[08-10]", ["a08", "a09", "a10"]), ("[0-10:5]", ["0", "5", "10"]),
            ("x[a-c]y", ["xay", "xby", "xcy"]), ("{one,two}", ["one", "two"]),
            ("{a,b}[1-2]", ["a1", "a2", "b1", "b2"]),
            ("http://[::1]:80/[1-2]", ["http://[::1]:80/1", "http://[::1]:80/2"]), ("a\\[1\\]", ["a[1]"]),
            ("{a,}b", ["ab", "b"]),
            ("plain", ["plain"]),
        ])
    func expansion(_ text: String, _ urls: [String]) throws {
        #expect(try URLPattern.matches(text).map(\.url) == urls)
    }

    @Test(
        "Invalid patterns are errors",
        arguments: ["a[1-", "a{b", "a]", "a}", "[9-1]", "[a-9]", "[1]", "{}", "[1-9999999]"])
    func mistakes(_ text: String) {
        #expect(throws: URLPattern.Mistake.self) { try URLPattern.matches(text) }
    }

    @Test(
        "Mistakes do not tell passwords",
        arguments: ["https://ada:p[hush@h/", "https://ada:hush@h/[", "https://ada:hu}sh@h/", "https://ada:p[hush]@h/"])
    func secrets(_ text: String) throws {
        let mistake = try #require(throws: URLPattern.Mistake.self) { try URLPattern.matches(text) }
        #expect(mistake.words.contains(": ") && mistake.words.contains("-g"), "\(mistake.words)")
        #expect(!mistake.words.contains("hu"), "\(mistake.words)")
    }

    @Test("Output names contain the values of the patterns")
    func names() throws {
        let match = try URLPattern.matches("{x,y}[01-02]")[3]
        #expect(URLPattern.name("f_#1_#2_#3.txt", match.parts) == "f_y_02_#3.txt")
    }

    @Test("Each URL has its own output; one -O applies to all")
    func outputs() throws {
        func destinations(_ words: String...) throws -> [Options.Destination] {
            try Job.all(try ArgumentParser.parse(words)).map(\.options.output.destination)
        }
        #expect(try destinations("-o", "a", "http://h/x", "-o", "b", "http://h/y") == [.file("a"), .file("b")])
        #expect(try destinations("-o", "a", "http://h/x", "http://h/y") == [.file("a"), .standardOutput])
        #expect(try destinations("-O", "http://h/x", "http://h/y") == [.file("x"), .file("y")])
        #expect(try destinations("-o", "#1.txt", "http://h/{p,q}") == [.file("p.txt"), .file("q.txt")])
        #expect(try destinations("--output-dir", "d", "-O", "http://h/x") == [.file("d/x")])
        #expect(try destinations("-O", "-g", "http://h/x", "http://h/d/x") == [.file("x"), .file("x.1")])
        let same = ["--no-clobber", "-o", "no such", "http://h/x", "-o", "no such", "http://h/y"]
        #expect(
            try Job.all(try ArgumentParser.parse(same)).map(\.options.output.destination) == [
                .file("no such"), .file("no such.1"),
            ])
    }
}
