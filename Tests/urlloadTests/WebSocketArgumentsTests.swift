// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading

@testable import urlload

/// The options of `urlload ws` beside those of all loads.
struct WebSocketArgumentsTests {
    private func take(_ words: String...) throws -> (WebSocketArguments, [String]) {
        var own = WebSocketArguments()
        let rest = try own.take(words)
        return (own, rest)
    }

    @Test func `Options of ws are taken, all others are left`() throws {
        let (own, rest) = try take(
            "-H", "A: b", "--binary", "--ping", "1.5", "--protocol=a", "--protocol", "b", "--compress", "host/path")
        #expect(rest == ["-H", "A: b", "host/path"])
        #expect(own.isBinary && own.protocols == ["a", "b"] && own.wait == nil)
        #expect(own.options.pingInterval == .seconds(1.5) && own.options.compression == .deflate())
    }

    @Test func `--wait has its value after =, or none`() throws {
        let (timed, rest) = try take("--wait=2", "host")
        #expect(timed.wait == .seconds(2) && rest == ["host"])
        let (endless, target) = try take("--wait", "host")
        #expect(endless.wait.map { $0 > .seconds(1 << 30) } == true && target == ["host"])
    }

    @Test func `Arguments after -- are not options`() throws {
        let (own, rest) = try take("--", "--binary")
        #expect(!own.isBinary && rest == ["--", "--binary"])
    }

    @Test(
        "Invalid values are refused",
        arguments: [
            ["--ping"], ["--protocol"], ["--ping", "0"], ["--ping", "often"], ["--ping=-1"], ["--wait="],
            ["--wait=long"],
            ["--wait=0"],
        ])
    func mistakes(_ words: [String]) {
        var own = WebSocketArguments()
        #expect(throws: UsageError.self) { try own.take(words) }
    }

    @Test(
        "A missing scheme is added",
        arguments: [
            ("wss://a.example/x", "wss://a.example/x"), ("ws://a.example", "ws://a.example"),
            ("localhost:1/x", "http://localhost:1/x"),
            ("a.example", "https://a.example"),
        ])
    func urls(_ text: String, _ expected: String) throws {
        let url = try #require(WebSocketArguments.url(text))
        #expect(url.absoluteString == expected || url.absoluteString == expected + "/")
    }

    @Test func `Only ws, wss, http and https are accepted`() {
        for text in ["ftp://a.example/", "file:///etc/passwd", "data:,x"] {
            #expect(WebSocketArguments.url(text) == nil, "\(text)")
        }
    }

    @Test func `Text messages are written as lines, binary ones unchanged`() throws {
        let (lines, _) = try take("host")
        #expect(lines.bytes(of: .text("a")) == [0x61, 0x0A] && lines.bytes(of: .data(Data([1]))) == [1, 0x0A])
        let (binary, _) = try take("--binary", "host")
        #expect(binary.bytes(of: .text("a")) == [0x61] && binary.bytes(of: .data(Data([1]))) == [1])
    }
}
