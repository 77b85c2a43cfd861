// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO

@testable import urlload

struct EndingTests {
    @Test(
        "A failure has the exit code of the grammar",
        arguments: [
            (Ending(.done), 0, 0, 0), (Ending(.usage), 2, 1, 1), (Ending(.connect), 7, 4, 1),
            (Ending(.timeout), 28, 4, 2), (Ending(.httpError, .notFound), 22, 8, 4),
            (Ending(.httpError, .unauthorized), 22, 6, 4), (Ending(.httpError, .badGateway), 22, 8, 5),
            (Ending(.httpError, .found), 22, 8, 3), (Ending(.redirect), 47, 8, 6), (Ending(.certificate), 60, 5, 1),
            (Ending(.unsupportedScheme), 1, 1, 1), (Ending(.unsupportedScheme, isByServer: true), 1, 7, 1),
            (Ending(.noResponse), 52, 4, 1), (Ending(.headTooLarge), 100, 7, 1), (Ending(.http2), 16, 7, 1),
            (Ending(.protocolViolation), 8, 7, 1), (Ending(.write), 23, 3, 1), (Ending(.badURL), 3, 1, 1),
            (Ending(.interrupted), 130, 130, 130), (Ending(.terminated), 143, 143, 143),
        ] as [(Ending, Int32, Int32, Int32)])
    func numbers(_ ending: Ending, _ curl: Int32, _ wget: Int32, _ httpie: Int32) {
        #expect(ending.number(in: .curl) == curl)
        #expect(ending.number(in: .wget) == wget)
        #expect(ending.number(in: .httpie) == httpie)
    }

    @Test("Every failure has a number above 0 in each grammar")
    func failures() {
        for code in ExitCode.allCases where code != .done {
            #expect(Grammar.allCases.allSatisfy { Ending(code).number(in: $0) > 0 }, "\(code)")
        }
    }

    @Test("Of several failures the first counts; in wget's grammar the lowest number but 1")
    func order() {
        let (missing, refused) = (Ending(.httpError, .notFound), Ending(.connect))
        #expect(Ending.done.followed(by: missing, in: .curl) == missing)
        #expect(missing.followed(by: .done, in: .wget) == missing)
        #expect(missing.followed(by: refused, in: .curl) == missing)
        #expect(missing.followed(by: refused, in: .wget) == refused)
        #expect(refused.followed(by: missing, in: .wget) == refused)
        #expect(Ending(.badURL).followed(by: missing, in: .wget) == missing)
        #expect(missing.followed(by: Ending(.badURL), in: .wget) == missing)
    }
}

struct ToolOptionTests {
    private func parsed(_ words: String..., table: OptionTable = .curl) throws -> Options {
        try ArgumentParser.parse(words, table: table)
    }

    @Test("A leading --next begins no group; one behind a URL does")
    func groups() throws {
        #expect(try ArgumentParser.parseAll(["--next", "-s", "u"]).count == 1)
        #expect(try ArgumentParser.parseAll(["-s", "--next", "u"])[0].isSilent)
        #expect(try ArgumentParser.parseAll(["u", "--next", "--next", "v"]).count == 2)
    }

    @Test("A field without a value is left out in each grammar; one that HTTP needs is not")
    func removedFields() throws {
        #expect(try parsed("-H", "Accept:", "u").request.removedFields == [.accept])
        #expect(try parsed("--header=Accept:", "u", table: .wget).request.removedFields == [.accept])
        #expect(try parsed("--header=Accept:", "--header=", "u", table: .wget).request.removedFields.isEmpty)
        var options = try ArgumentParser.parse(["--ignore-stdin", "u", "Accept:"], table: .httpie)
        try HTTPieCommand.prepare(&options, isTerminal: false)
        #expect(options.request.removedFields == [.accept])
        for words in [
            ["-H", "Host:", "u"], ["-H", "Content-Length:", "-d", "x", "u"], ["-H", "Cookie:", "-c", "f", "u"],
        ] {
            #expect(throws: UsageError.self, "\(words)") { try ArgumentParser.parse(words) }
        }
        #expect(try parsed("-H", "Host:", "-H", "Host: a", "u").request.fields[.host] == "a")
    }

    @Test("Pages are not searched for links", arguments: ["-r", "-p", "-m", "-k"])
    func refusals(_ option: String) {
        #expect(throws: UsageError.self) { try parsed(option, "u", table: .wget) }
    }

    @Test("Ports are one, or a range")
    func ports() throws {
        #expect(try NetworkOptions.ports("20000") == 20000...20000)
        #expect(try NetworkOptions.ports("20000-20010") == 20000...20010)
        for text in ["", "0", "x", "2-1", "1-", "70000"] {
            #expect(throws: UsageError.self, "\(text)") { try NetworkOptions.ports(text) }
        }
    }

    @Test("Probes of a silent connection are off, every 60 seconds, or as asked")
    func probes() throws {
        #expect(try parsed("u").networks.sockets.keepAlive == nil)
        #expect(try parsed("--keepalive-time", "0", "u").networks.sockets.keepAlive == .init(seconds: 60))
        let both = try parsed("--keepalive-cnt", "3", "--keepalive-time", "5", "u").networks.sockets
        #expect(both.keepAlive == .init(seconds: 5, count: 3))
        #expect(try parsed("--keepalive-time", "5", "--no-keepalive", "u").networks.sockets.keepAlive == nil)
    }

    @Test("The options of sockets are settings of the session")
    func sockets() throws {
        let usual = try parsed("http://example.org/")
        #expect(Configuration(usual, Screen(usual)).sockets == SocketSetup())
        let options = try parsed(
            "--local-port", "20000-20010", "--keepalive-time", "5", "--keepalive-cnt", "3", "http://example.org/")
        let sockets = Configuration(options, Screen(options)).sockets
        #expect(sockets.ports == 20000...20010 && sockets.keepAlive == .init(seconds: 5, count: 3))
    }

    @Test(
        "The folders of -x are those of the URL, and lead nowhere else",
        arguments: [
            ("http://a.test/x/y.txt", "a.test/x/y.txt"), ("http://a.test:8080/x/y.txt", "a.test:8080/x/y.txt"),
            ("http://a.test", "a.test/index.html"), ("http://a.test/x/?q=1", "a.test/x/index.html?q=1"),
            ("http://a.test/%2e%2e/%2F/b", "a.test/_./_/b"), ("http://a.test/a%20b//c", "a.test/a b/c"),
        ])
    func folders(_ url: String, _ path: String) throws {
        let saving = try parsed("-x", "u", table: .wget).saving
        #expect(saving.name(for: try #require(URL(string: url))) == path)
    }

    @Test("--cut-dirs, -nH and --protocol-directories change the folders of -x alone")
    func changedFolders() throws {
        let url = try #require(URL(string: "http://a.test/x/y/z.txt"))
        let name = { (words: [String]) in
            try ArgumentParser.parse(words + ["u"], table: .wget).saving.name(for: url)
        }
        #expect(try name(["-x", "-nH", "--cut-dirs=1"]) == "y/z.txt")
        #expect(try name(["-x", "--protocol-directories"]) == "http/a.test/x/y/z.txt")
        #expect(try name(["-nH", "--cut-dirs=1"]) == "z.txt" && name(["-x", "-nd"]) == "z.txt")
        #expect(try name(["-x", "--cut-dirs=9"]) == "a.test/z.txt")
    }

    @Test("A condition is fulfilled by a later change, or by one that is not later")
    func conditions() throws {
        let date = try #require(HTTPDate("Sun, 06 Nov 1994 08:49:37 GMT"))
        #expect(try TimeCondition("5 Nov 1994").isFulfilled(by: date))
        #expect(try !TimeCondition("6 Nov 1994 08:49:37").isFulfilled(by: date))
        #expect(try TimeCondition("-6 Nov 1994 08:49:37").isFulfilled(by: date))
        #expect(try !TimeCondition("-5 Nov 1994").isFulfilled(by: date))
        #expect(try TimeCondition("/no/such/file").isFulfilled(by: date))
    }

    @Test("A Referer is a URL, the one that redirects came from, or both")
    func referers() throws {
        #expect(try parsed("-e", "http://a.test/", "u").data.referer == "http://a.test/")
        let both = try parsed("-e", "http://a.test/;auto", "u").data
        #expect(both.referer == "http://a.test/" && both.refererFollows)
        let auto = try parsed("-e", ";auto", "u").data
        #expect(auto.referer == nil && auto.refererFollows)
    }

    @Test("-v, --print and --offline choose the parts of messages")
    func parts() throws {
        func parts(_ words: String..., isTerminal: Bool = false) throws -> PrintedParts? {
            var options = try ArgumentParser.parse(["--ignore-stdin"] + words + ["u"], table: .httpie)
            try HTTPieCommand.prepare(&options, isTerminal: isTerminal)
            return options.items.prints
        }
        #expect(try parts()?.parts == [.body] && parts(isTerminal: true)?.parts == [.head, .body])
        #expect(try parts("-v")?.parts == [.requestHead, .requestBody, .head, .body])
        #expect(try parts("-v")?.includesAll == true && parts("-vv")?.contains(.meta) == true)
        #expect(try parts("--offline")?.parts == [.requestHead, .requestBody])
        #expect(try parts("--print=Hh")?.parts == [.requestHead, .head] && parts("-q", "-v") == nil)
        #expect(throws: UsageError.self) { try parts("--print=q") }
    }
}
