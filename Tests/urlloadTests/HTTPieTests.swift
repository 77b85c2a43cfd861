// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoading

@testable import urlload

struct HTTPieTests {
    private func made(_ words: String...) throws -> Options {
        var options = try ArgumentParser.parse(["--ignore-stdin"] + words, table: .httpie)
        try HTTPieCommand.prepare(&options, isTerminal: false)
        return options
    }

    @Test(
        "An item is split at the first and longest separator",
        arguments: [
            ("a=b", "a", .text, "b"), ("a:=1", "a", .json, "1"), ("a==b", "a", .query, "b"), ("a:b", "a", .field, "b"),
            ("a@f", "a", .file, "f"), ("a=@f", "a", .textFile, "f"), ("a:=@f", "a", .jsonFile, "f"),
            ("a:@f", "a", .fieldFile, "f"), ("a\\:b=c", "a:b", .text, "c"), ("u=http://x", "u", .text, "http://x"),
        ] as [(String, String, HTTPieItem.Mark, String)])
    func items(_ word: String, _ name: String, _ mark: HTTPieItem.Mark, _ value: String) throws {
        let item = try HTTPieItem(word)
        #expect(item.name == name && item.mark == mark && item.value == value)
    }

    @Test("A method stands before the URL, or is chosen by the body")
    func methods() throws {
        #expect(try made("u").request.method == nil && made("delete", "u").request.method == .delete)
        #expect(try made("u", "a=1").urls == ["u"])
        #expect(try made(":8080/x").urls == ["http://localhost:8080/x"] && made(":/x").urls == ["http://localhost/x"])
        #expect(throws: UsageError.self) { try made("u.test", "nothing") }
    }

    @Test("@FILE without a name is the body, with the media type of its name")
    func bodyOfFile() throws {
        for (word, type) in [
            ("@a.txt", "text/plain"), ("@doc.json", "application/json"), ("@no-suffix", "application/json"),
            ("@a.txt;type=text/csv", "text/csv"),
        ] {
            let request = try made("u.test", word).request
            let path = String(word.dropFirst().prefix { $0 != ";" })
            #expect(request.payloads == [.file(path)])
            #expect(request.fields["Content-Type"] == type && request.fields["Accept"] == "application/json, */*;q=0.5")
        }
        #expect(try made("u.test", "@a.txt", "Content-Type:text/x").request.fields["Content-Type"] == "text/x")
        #expect(try made("-f", "u.test", "@a.txt").request.formFields.count == 1)
        for words in [["@a.txt", "@b.txt"], ["@a.txt", "a=1"], ["f@a.txt"]] {
            #expect(throws: UsageError.self) {
                var options = try ArgumentParser.parse(["--ignore-stdin", "u.test"] + words, table: .httpie)
                try HTTPieCommand.prepare(&options, isTerminal: false)
            }
        }
    }

    @Test("The cookies of a session are in a file of its server and name, or in the file that a path names")
    func sessions() throws {
        let folder = try #require(ConfigFile.folder)
        for (session, url, path) in [
            ("ada", "example.org/x", "\(folder)/sessions/example.org/ada"),
            ("ada", "https://EXAMPLE.org:8443", "\(folder)/sessions/example.org_8443/ada"),
            ("./ada.txt", "example.org", "./ada.txt"),
        ] {
            let memory = try made("--session", session, url).memory
            #expect(memory.cookieInputs == [path] && memory.cookieOutput == path && memory.createsCookieFolder)
        }
        for name in ["..", "a b", ""] { #expect(throws: UsageError.self) { try made("--session", name, "u") } }
        #expect(throws: UsageError.self) { try made("--session", "ada", "http://../x") }
    }

    @Test("Members of an object keep their order and nest by their names")
    func json() throws {
        let options = try made("u", "name=Ada", "born:=1815", "a[b]=1", "a[c][]=2", "a[c][]:=[3]")
        #expect(
            options.request.payloads == [.text(#"{"name": "Ada", "born": 1815, "a": {"b": "1", "c": ["2", [3]]}}"#)])
        #expect(options.request.fields["Content-Type"] == "application/json")
        #expect(throws: UsageError("token: the text after := is not JSON")) { try made("u", "token:=hush") }
        #expect(throws: UsageError.self) { try made("u", "a=1", "a[b]=2") }
    }

    @Test("JSON is indented and otherwise unchanged")
    func pretty() {
        let plain = Pretty(hasColors: false, isFormatted: true)
        let text = #"{"b":[1,2.50e3,"x\"y"],"a":{},"c":[]}"#
        #expect(
            JSONPrinter.make(Array(text.utf8), plain) == """
                {
                    "b": [
                        1,
                        2.50e3,
                        "x\\"y"
                    ],
                    "a": {},
                    "c": []
                }

                """)
        for wrong in ["{", "{a:1}", "[1,]", "nul", "\"x", "1 2", ""] {
            #expect(JSONPrinter.make(Array(wrong.utf8), plain) == nil, "\(wrong)")
        }
        // An element of two bytes becomes a line of two thousand.
        let (opening, closing) = (String(repeating: "[", count: 511), String(repeating: "]", count: 511))
        let deep = opening + String(repeating: "1,", count: 40_000) + "1" + closing
        #expect(JSONPrinter.make(Array(deep.utf8), plain) == nil)
        #expect(JSONPrinter.make(Array((opening + closing).utf8), plain) != nil)
        let colored = JSONPrinter.make(Array(#"{"a":true}"#.utf8), Pretty(hasColors: true, isFormatted: false))
        #expect(colored == "{\u{1B}[34m\"a\"\u{1B}[0m:\u{1B}[35mtrue\u{1B}[0m}\n")
    }

    @Test("XML is indented where no text stands beside elements")
    func markup() {
        let plain = Pretty(hasColors: false, isFormatted: true)
        let text = "<?xml version=\"1.0\"?><a><b>t</b><c/><p>x<i>y</i></p><d></d></a>"
        #expect(
            MarkupPrinter.make(Array(text.utf8), plain, indents: true) == """
                <?xml version="1.0"?>
                <a>
                  <b>t</b>
                  <c/>
                  <p>x<i>y</i></p>
                  <d></d>
                </a>

                """)
        #expect(MarkupPrinter.make(Array("<a><b></a>".utf8), plain, indents: true) == nil)
        let levels = String(repeating: "<a>", count: 512) + String(repeating: "</a>", count: 512)
        #expect(MarkupPrinter.make(Array(levels.utf8), plain, indents: true) != nil)
        #expect(MarkupPrinter.make(Array("<a>\(levels)</a>".utf8), plain, indents: true) == nil)
    }
}
