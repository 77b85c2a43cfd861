// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import urlload

/// The texts of `--help`, and the errors for options that are misspelled.
struct HelpTests {
    @Test("--help fits on a screen, and names the options needed first and every command")
    func short() {
        let lines = Help.short.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count <= 40 && lines.allSatisfy { $0.count <= 120 })
        #expect(Help.first.count == 10)
        for name in Help.first { #expect(Help.short.contains("--\(name)")) }
        for (name, _) in Help.commands { #expect(Help.short.contains("urlload \(name) ")) }
        for category in Help.categories { #expect(Help.short.contains(category)) }
    }

    @Test("--help says the scheme of a URL without one in every grammar, and wget's -nc has no long name")
    func grammars() throws {
        for text in [Help.short, Help.text, WgetCommand.usage, HTTPieCommand.usage] {
            let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(words.contains("URL without a scheme is loaded with https, one of this machine"))
        }
        #expect(!WgetCommand.usage.contains("--n ") && WgetCommand.usage.contains("\n  -n c|v|d|H|p  "))
        for text in [WgetCommand.usage, HTTPieCommand.usage] { #expect(text.contains("\nExit codes, those of ")) }
        #expect(throws: UsageError.self) { try ArgumentParser.parse(["--n", "c", "u"], table: .wget) }
    }

    @Test(
        "A message names the options of its grammar, and says which ones the grammar does not have",
        arguments: [
            ("untrusted; --cacert names one", "untrusted; --ca-certificate names one", "untrusted; --verify names one"),
            ("the idle timeout (--timeout)", "the idle timeout (--timeout)", "the idle timeout (--timeout)"),
            ("repeat with -C to resume", "repeat with -c to resume", "repeat with -c to resume"),
            ("-u needs a password", "--user needs a password", "-a needs a password"),
            ("own - --pin.", "own - --pin of curl's grammar.", "own - --pin of curl's grammar."),
            ("-U gives them", "-U of curl's grammar gives them", "-U of curl's grammar gives them"),
            ("-f saves none", "--no-content-on-error saves none", "-d saves none"),
        ])
    func names(_ sentence: String, _ wget: String, _ httpie: String) {
        #expect(Grammar.curl.naming(sentence) == sentence)
        #expect(Grammar.wget.naming(sentence) == wget)
        #expect(Grammar.httpie.naming(sentence) == httpie)
    }

    @Test("An option that a message names for a grammar is one of its table")
    func namesAreKnown() throws {
        let tables: [(Grammar, OptionTable)] = [(.wget, .wget), (.httpie, .httpie)]
        let options = "-C -c -d -f -J -o -u --cacert --cert --insecure --key --max-redirects --timeout"
        for (grammar, table) in tables {
            for option in options.split(separator: " ") {
                let named = grammar.naming(String(option))
                let words = named == "--verify no" ? ["--verify", "no", "u"] : [named, "1", "u"]
                #expect(!named.contains("curl"), "\(grammar): \(option)")
                do throws(UsageError) { _ = try ArgumentParser.parse(words, table: table) } catch {
                    #expect(!error.words.contains("no option"), "\(grammar): \(error.words)")
                }
            }
        }
    }

    @Test("Without a topic --help is short; all, a category and an option may follow")
    func topics() throws {
        for (words, topic) in [
            (["--help"], ""), (["-h"], ""), (["--help", "all"], "all"), (["-h", "tls"], "tls"), (["-hall"], "all"),
            (["--help=output"], "output"), (["--help", "-o"], "-o"), (["--help", "--retry"], "--retry"),
            (["--help", "https://example.org/"], ""), (["--help", "-"], ""),
        ] {
            let options = try ArgumentParser.parse(words)
            #expect(options.wantsHelp && options.helpTopic == topic, "\(words)")
        }
        #expect(try Help.text(about: "") == Help.short)
        #expect(try Help.text(about: "all") == Help.text)
    }

    @Test("Each category lists its options and no others; together they list all")
    func categories() throws {
        var seen: [String] = []
        for group in OptionRule.Group.allCases {
            let text = try Help.text(about: group.category)
            for keyword in group.keywords { #expect(try Help.text(about: keyword) == text) }
            let listed = text.split(separator: "\n").filter { $0.hasPrefix("  ") && $0.contains("--") }
            let rules = OptionTable.curl.rules.filter { $0.group == group }
            #expect(listed.count == rules.count, "\(group)")
            for (line, rule) in zip(listed, rules) {
                #expect(line.contains("--\(rule.long)"))
                seen.append(rule.long)
            }
        }
        #expect(seen.count == OptionTable.curl.rules.count)
        #expect(try Help.text(about: "codes").contains(ExitCode.connect.meaning))
        let words = OptionRule.Group.allCases.flatMap { [$0.category] + $0.keywords } + ["all", "codes"]
        #expect(Set(words).count == words.count)
    }

    @Test(
        "--help with an option says its line, its other names and its category",
        arguments: [
            ("-o", "  -o, --output FILE  write the body to FILE once it is complete; - is standard output\n"),
            ("--output", "  category: output\n"), ("--no-fail", "  -f, --fail  "), ("-f", "  also: --no-fail\n"),
            ("--follow", "  also: --follow, --no-location\n"), ("--retry-m", "--retry-max-time SECONDS"),
        ])
    func option(_ name: String, _ line: String) throws {
        #expect(try Help.text(about: name).contains(line))
    }

    @Test(
        "An unknown topic of --help is refused with the nearest one",
        arguments: [
            ("outputt", "--help has no category outputt; did you mean output?"),
            ("--locaton", "there is no option --locaton; did you mean --location?"),
            ("-Y", "-Y of curl is not supported; nearest is --timeout"),
            ("qqqq", "--help has no category qqqq\nCategories: all, output, request,"),
        ])
    func unknown(_ topic: String, _ message: String) {
        let error = #expect(throws: UsageError.self) { try Help.text(about: topic) }
        #expect(error?.words.hasPrefix(message) == true, "\(error?.words ?? "")")
    }

    @Test(
        "An unknown option is refused with the nearest one",
        arguments: [
            ("--otuput", "--output"), ("--Output", "--output"), ("--no-fial", "--no-fail"),
            ("--no-inclde", "--no-include"), ("--max-time-seconds", nil), ("--connection-timeout", "--connect-timeout"),
            ("--redirects", "--max-redirects"), ("--ntlmm", "--ntlm"), ("--qqqqqq", nil),
        ] as [(String, String?)])
    func nearest(_ option: String, _ near: String?) {
        let hint = near.map { "; did you mean \($0)?" } ?? ""
        #expect(throws: UsageError("there is no option \(option)\(hint)")) {
            try ArgumentParser.parse([option, "u"])
        }
    }
}
