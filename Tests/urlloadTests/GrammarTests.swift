// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading

@testable import urlload

struct GrammarTests {
    private func parse(_ words: String...) throws -> Options { try ArgumentParser.parse(words) }

    @Test("-C takes a value only if it is - or digits")
    func resuming() throws {
        #expect(try parse("-C", "-", "-o", "f", "u").output.resuming == .always)
        #expect(try parse("-C", "500", "-o", "f", "u").output.resuming == .from(500))
        #expect(try parse("-C", "-o", "f", "u").output.resuming == .ifChecked)
        #expect(try parse("-sC", "-O", "u").output.resuming == .ifChecked)
        #expect(try parse("-C-", "-O", "u").output.resuming == .always)
        #expect(try parse("-CO", "u").outputs == [.namedAfterURL])
        #expect(try parse("--continue-at", "-", "-O", "u").output.resuming == .always)
    }

    @Test("--next begins a group with its own options; --silent applies to all groups")
    func groups() throws {
        let groups = try ArgumentParser.parseAll(["-d", "a", "u", "--next", "-s", "-I", "v", "-:", "w"])
        #expect(groups.map(\.urls) == [["u"], ["v"], ["w"]])
        #expect(groups.map(\.request.asksForHead) == [false, true, false] && groups.allSatisfy(\.isSilent))
        #expect(groups[1].request.payloads.isEmpty)
    }

    @Test("Long names may be abbreviated, and undone with --no-")
    func names() throws {
        #expect(try parse("--connect-tim", "5", "u").timeouts.connect == .seconds(5))
        #expect(try !parse("-i", "--no-include", "u").output.includesHead)
        #expect(try parse("--max-redirs", "3", "u").redirects.maximum == 3)
        #expect(try !parse("--no-progress-meter", "u").shared.showsMeter)
    }

    @Test("A file of options is read in curl's format")
    func config() throws {
        let lines = try ConfigFile.lines(
            "# comment\nurl = \"http://a/ b\"\n-o out\n--silent\nheader: \"X: \\\"q\\\"\\t\"\n\n data=x # rest\n", "f")
        #expect(lines.map(\.name) == ["url", "-o", "--silent", "header", "data"])
        #expect(lines.map(\.value) == ["http://a/ b", "out", nil, "X: \"q\"\t", "x"])
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("urlload-\(UUID())").path
        try Data("url = u\nsilent\nno-location\n-d a=1\n".utf8).write(to: URL(filePath: folder))
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let options = try parse("-K", folder, "-i", "v")
        #expect(
            options.urls == ["u", "v"] && options.isSilent && !options.redirects.areFollowed
                && options.output.includesHead)
        #expect(options.request.payloads == [.text("a=1")])
        let first = try ArgumentParser.parseAll(["v"], config: folder)[0]
        let ignored = try ArgumentParser.parseAll(["-q", "v"], config: folder)[0]
        #expect(first.urls == ["u", "v"] && ignored.urls == ["v"])
    }

    @Test(
        "Data is percent-encoded as in curl",
        arguments: [
            ("a b&c", "a+b%26c"), ("=a b", "a+b"), ("n=a b", "n=a+b"), ("n=\u{FC}", "n=%C3%BC"), ("~-._", "~-._"),
        ])
    func encoding(_ text: String, _ encoded: String) {
        #expect(Options.Payload.encoding(text) == .text(encoded))
    }

    @Test(
        "-z takes dates in several forms",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "6 Nov 1994 08:49:37", "1994-11-06 08:49:37", "1994-11-06T08:49:37Z",
            "19941106 08:49:37", "Nov 6 1994 08:49:37",
        ])
    func dates(_ text: String) throws {
        #expect(try TimeCondition(text).date?.description == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(try TimeCondition("-" + text).isBefore && TimeCondition("/no/such/file").date == nil)
    }

    @Test(
        "Rates are parsed with units",
        arguments: [("500", 500), ("100k", 102_400), ("2M", 2_097_152), ("1.5k", 1536)] as [(String, Int64)])
    func speeds(_ text: String, _ speed: Int64) throws {
        #expect(try OptionValue.speed(text, "-") == speed && OptionValue.speed("0", "-") == nil)
        for odd in ["1e-300/s", "1/1e300d", "0/s", "nan/s", "1/nans", "/", ""] {
            #expect(throws: UsageError.self) { try OptionValue.interval(odd) }
        }
        #expect(try OptionValue.interval("2/s") == .milliseconds(500) && OptionValue.interval("30/m") == .seconds(2))
        for wrong in ["fast", "10000000000g", "8589934592g", "1e19", "inf"] {
            #expect(throws: UsageError.self) { try OptionValue.speed(wrong, "-") }
        }
    }

    @Test("No supported option is also listed as unsupported")
    func distinct() {
        let names = OptionTable.curl.rules.flatMap(\.names).map { "--\($0)" }
        #expect(Set(names).isDisjoint(with: ForeignOption.curl.flatMap(\.names)))
    }

    @Test("wget's options are parsed")
    func wget() throws {
        let options = try ArgumentParser.parse(["-qc", "-nv", "-P", "d", "-t", "3", "u?q"], table: .wget)
        #expect(
            options.isSilent && options.output.resuming == .always && options.saving.folder == "d"
                && options.retries.count == 2)
        #expect(options.saving.namesAll && options.saving.setsTime && options.output.failsOnStatus)
        #expect(
            try ArgumentParser.parse(["--no-cache", "u"], table: .wget).request.fields[.cacheControl] == "no-cache")
        #expect(throws: UsageError("-m of wget is not supported: pages are not searched for links; nearest is -i LIST"))
        {
            try ArgumentParser.parse(["-m", "u"], table: .wget)
        }
    }

    @Test("Completions, man page and guide list every option")
    func generated() throws {
        for rule in OptionTable.curl.rules {
            for text in [Completions.bash, Completions.zsh] { #expect(text.contains("--\(rule.long)")) }
            #expect(Completions.fish.contains("-l \(rule.long)"))
            #expect(ManPage.text.contains(rule.long.replacing("-", with: "\\-")))
        }
        let guide = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../docs/guides/command-line.md")
        let text = try String(contentsOf: guide, encoding: .utf8)
        #expect(
            text.hasSuffix(OptionComparison.text),
            "urlload --generate guide writes the end of docs/guides/command-line.md")
    }
}
