// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoading

@testable import urlload

struct ArgumentParserTests {
    private func parse(_ words: String...) throws -> Options { try ArgumentParser.parse(words) }

    @Test("Options and URLs may be mixed") func optionsAndURLsMayBeMixed() throws {
        let options = try parse("http://a/", "-s", "http://b/", "--fail", "http://c/")
        #expect(options.urls == ["http://a/", "http://b/", "http://c/"])
        #expect(options.isSilent && options.output.failsOnStatus)
    }

    @Test("Short options can be combined") func shortOptionsCanBeWrittenTogether() throws {
        let options = try parse("-sfi", "-ofile", "u")
        #expect(options.isSilent && options.output.failsOnStatus && options.output.includesHead)
        #expect(options.output.destination == .file("file"))
        #expect(try parse("-sfo", "other", "u").output.destination == .file("other"))
    }

    @Test("Long options take their value after a blank or =") func longOptionsTakeTheirValueEitherWay() throws {
        #expect(try parse("--output", "a", "u").output.destination == .file("a"))
        #expect(try parse("--output=a=b", "u").output.destination == .file("a=b"))
        #expect(try parse("-o", "-", "u").output.destination == .standardOutput)
    }

    @Test("Every argument after -- is a URL") func everythingAfterTwoDashesIsAURL() throws {
        #expect(try parse("-s", "--", "-v", "--fail").urls == ["-v", "--fail"])
    }

    @Test("Fields keep their order") func fieldsAreKeptInOrder() throws {
        let options = try parse(
            "-H", "Accept: text/html", "-H", "accept:  text/plain", "-H", "X-Empty;", "-H", "X-Gone:", "u")
        #expect(
            options.request.fields.map { "\($0.name)=\($0.value)" } == [
                "Accept=text/html", "accept=text/plain", "X-Empty=",
            ])
        #expect(options.request.removedFields == ["X-Gone"])
    }

    @Test("Bodies of two kinds, and one upload for several URLs, are refused") func uploadsAreOfOneKindAndOneURL()
        throws
    {
        let options = try parse("-T", "film", "--resumable", "state", "u")
        #expect(options.request.upload == "film" && options.request.uploadState == "state")
        #expect(try parse("-T-", "u").request.upload == "-")
        for words in [
            ["--resumable", "s", "u"], ["-T", "-", "--resumable", "s", "u"], ["-T", "f", "--resumable", "s", "u", "v"],
            ["-T", "f", "-d", "x", "u"], ["-T", "f", "-I", "u"],
        ] {
            #expect(throws: UsageError.self) { try ArgumentParser.parse(words) }
        }
    }

    @Test("Redirects are followed unless --no-location is given") func redirectsAreFollowedUnlessToldNot() throws {
        #expect(try parse("u").redirects.areFollowed)
        #expect(try !parse("--no-location", "u").redirects.areFollowed)
        #expect(try parse("--no-location", "-L", "u").redirects.areFollowed)
    }

    @Test("Values are parsed to their types") func valuesAreTyped() throws {
        let options = try parse(
            "-X", "PUT", "--timeout", "0.5", "-m", "30", "--max-redirects", "0", "--max-connections", "2", "--tls-min",
            "1.3",
            "-d", "a=1", "-d", "@file", "--data", "@-", "u")
        #expect(options.request.method == .put)
        #expect(options.timeouts.idle == .seconds(0.5) && options.timeouts.resource == .seconds(30))
        #expect(options.redirects.maximum == 0 && options.connections.maximumPerHost == 2)
        #expect(options.tls.minimumVersion == .tls13)
        #expect(options.request.payloads == [.text("a=1"), .lines("file"), .lines("-")])
    }

    @Test(
        "Errors in arguments are named",
        arguments: [
            (["--locaton", "u"], "there is no option --locaton; did you mean --location?"),
            (["--zzz", "u"], "there is no option --zzz"),
            (["-Y", "1", "u"], "-Y of curl is not supported; nearest is --timeout"),
            (
                ["--http0.9", "u"],
                "--http0.9 of curl is not supported; nearest is --http1.0"
            ),
            (
                ["--retry-", "u"],
                "--retry- is the beginning of --retry-connrefused, --retry-all-errors, --retry-delay, --retry-max-time"
            ),
            (["--fail=yes", "u"], "--fail takes no value"),
            (["u", "-o"], "-o needs a value: FILE"),
            (["--timeout", "0", "u"], "--timeout takes a number of seconds above 0, not 0"),
            (["--timeout", "nan", "u"], "--timeout takes a number of seconds above 0, not nan"),
            (["--max-redirects", "-2", "u"], "--max-redirects takes a whole number from 0, not -2"),
            (["--retry", "-1", "u"], "--retry takes a whole number from 0, not -1"),
            (["--retry-delay", "-1", "u"], "--retry-delay takes a number of seconds above 0, not -1"),
            (["--tls-max", "1.4", "u"], "--tls-max takes 1.0, 1.1, 1.2 or 1.3, not 1.4"),
            (
                ["--ciphers", "AES128-SHA", "u"],
                "--ciphers takes DEFAULT@SECLEVEL=0, 1 or 2: ciphers cannot be chosen one by one"
            ),
            (["--tls-min", "1.3", "--tls-max", "1.2", "u"], "--tls-min is above --tls-max"),
            (["-X", "GET IT", "u"], "GET IT is no method"),
            (["-H", "nothing", "u"], "-H takes 'Name: value', and there is no colon in it"),
            (["-H", "a b: c", "u"], "'a' is no field name"),
            (["-H", "a: b\r\nc: d", "u"], "the value of a contains a line break"),
            (["-I", "-d", "x", "u"], "-I asks for a head and -d sends a body: not both; -G sends the data in the URL"),
            (
                ["-C", "9223372036854775807", "-o", "f", "u"],
                "-C takes - or a number of bytes, not 9223372036854775807"
            ),
            (["-d", "@-", "-d", "@-", "u"], "standard input can be sent once"),
            (
                ["-d", "@-", "--input-file", "-"],
                "standard input is either the list of URLs or what is sent"
            ),
        ])
    func mistakesAreNamed(_ words: [String], _ message: String) {
        #expect(throws: UsageError(message)) { try ArgumentParser.parse(words) }
    }

    @Test(
        "The options of HTTP/3 need a build with HTTP/3",
        arguments: [["--http3"], ["--http3-only"], ["--tls-earlydata"], ["--qlog", "f"]])
    func http3(_ words: [String]) throws {
        guard Configuration.HTTPVersions.hasHTTP3 else {
            let message = "\(words[0]): this urlload was built without HTTP/3 (swift build --traits HTTP3)"
            #expect(throws: UsageError(message)) { try ArgumentParser.parse(words + ["u"]) }
            return
        }
        #expect(try parse("--qlog", "f", "u").output.packetLogFile == "f")
        #expect(try parse("--http3", "--tls-earlydata", "u").connections.sendsEarlyData)
        #expect(try !parse("--tls-earlydata", "--no-tls-earlydata", "u").connections.sendsEarlyData)
    }

    @Test("Early data is a setting of the session, off by default") func earlyData() throws {
        var options = try parse("https://example.org/")
        #expect(!Configuration(options, Screen(options)).connections.sendsEarlyData)
        options.connections.sendsEarlyData = true
        #expect(Configuration(options, Screen(options)).connections.sendsEarlyData)
    }

    @Test("Option names are unique") func noTwoOptionsShareAName() {
        let long = OptionTable.curl.rules.flatMap(\.names)
        let short = OptionTable.curl.rules.compactMap(\.short)
        #expect(Set(long).count == long.count)
        #expect(Set(short).count == short.count)
    }

    @Test("The help lists every option and exit code") func helpNamesEveryOptionAndExitCode() {
        for rule in OptionTable.curl.rules { #expect(Help.text.contains("--\(rule.long)")) }
        for code in ExitCode.allCases { #expect(Help.text.contains(code.meaning)) }
        // The widest terminal that is assumed; lines without a table fit into eighty columns.
        #expect(Help.text.split(separator: "\n").allSatisfy { $0.count <= 125 })
    }
}
