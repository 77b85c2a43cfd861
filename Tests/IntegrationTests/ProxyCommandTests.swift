// SPDX-License-Identifier: Apache-2.0

// `urlload` with proxies and address overrides, as a process, and its exit codes.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct ProxyCommandTests {
    static func run(_ words: String...) async throws -> Running.Result { try await Running.urlload(["-s"] + words) }

    @Test("Loads go through each kind of proxy") func throughEachKind() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            let target = "http://origin.test:\(origin.port)/"
            try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                for words in [
                    ["-x", "u:pw@127.0.0.1:\(proxy.port)"],
                    ["--proxy", "http://127.0.0.1:\(proxy.port)", "-U", "u:pw"],
                ] {
                    let result = try await Running.urlload(words + [target])
                    #expect(result.code == 0 && result.text == "here", "\(result.errors)")
                }
                let result = try await Self.run("-x", "127.0.0.1:\(proxy.port)", "-f", target)
                #expect(result.code == 22)
                let direct = try await Self.run(
                    "-x", "127.0.0.1:\(proxy.port)", "--noproxy", "127.0.0.1", origin.url().absoluteString)
                #expect(direct.text == "here" && proxy.requests.count == 3)
            }
            try await withTestProxy(.init(.socks)) { proxy in
                for option in ["--socks5-hostname", "--socks4a"] {
                    let result = try await Self.run(option, "127.0.0.1:\(proxy.port)", target)
                    #expect(
                        result.text == "here" && proxy.requests.last?.target == "origin.test:\(origin.port)",
                        "\(result.errors)")
                }
                try await withTestProxy { second in
                    let result = try await Self.run(
                        "--preproxy", "socks5h://127.0.0.1:\(proxy.port)", "-x", "127.0.0.1:\(second.port)", target)
                    #expect(result.text == "here" && second.requests.last?.target == target)
                }
            }
        }
    }

    @Test("In httpie's grammar each scheme has a proxy of its own") func byScheme() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            try await withTestProxy { proxy in
                func run(_ words: [String], _ target: String) async throws -> Running.Result {
                    try await Running.urlload(["http", "--ignore-stdin"] + words + [target])
                }
                let (own, closed) = ("http://127.0.0.1:\(proxy.port)", "http://127.0.0.1:1")
                let direct = try await run(["--proxy", "https:\(own)"], origin.url().absoluteString)
                #expect(direct.text == "here" && proxy.requests.isEmpty, "\(direct.errors)")
                let target = "http://origin.test:\(origin.port)/"
                for words in [
                    ["--proxy", "http:\(own)", "--proxy", "https:\(closed)"], ["--proxy", "all:\(own)"],
                    ["--proxy", "all:\(closed)", "--proxy", "http:\(own)"],
                ] {
                    let result = try await run(words, target)
                    #expect(result.text == "here", "\(words) \(result.errors)")
                }
                // A server on this machine is reached through a proxy that is named.
                let near = try await run(["--proxy", "http:\(own)"], origin.url().absoluteString)
                #expect(near.text == "here" && proxy.requests.count == 4, "\(near.errors)")
                let wrong = try await run(["--proxy", "gopher:\(own)"], target)
                #expect(wrong.code == 1 && wrong.errors.contains("not gopher:"), "\(wrong.errors)")
            }
        }
    }

    @Test("The trace shows the requests to the proxy without passwords")
    func theTraceShowsTheRequestsToTheProxyWithoutPasswords() async throws {
        try await withTestProxy(.init(.http, user: "u", password: "S3CRET", fault: .refuse(503))) { proxy in
            let result = try await Running.urlload([
                "-v", "-x", "u:S3CRET@127.0.0.1:\(proxy.port)", "https://origin.test/",
            ])
            #expect(
                result.errors.contains("> CONNECT origin.test:443 HTTP/1.1")
                    && result.errors.contains("< HTTP/1.1 503"), "\(result.errors)")
            let hidden = "Basic " + Data("u:S3CRET".utf8).base64EncodedString()
            #expect(!result.errors.contains("S3CRET") && !result.errors.contains(hidden))
        }
    }

    @Test("Exit codes") func exitCodes() async throws {
        let closedPort = "127.0.0.1:1"
        for (words, code) in [
            (["-x", "no.such.proxy.invalid:1", "http://a.test/"], 5), (["-x", closedPort, "http://a.test/"], 7),
            (["--socks5-hostname", closedPort, "http://a.test/"], 7),
            (["--interface", "nosuch0", "http://127.0.0.1:1/"], 45), (["-x", "ftp://a", "http://a.test/"], 2),
            (["--resolve", "a.test:1:127.0.0.1", "http://a.test:1/"], 7),
        ] as [([String], Int32)] {
            let result = try await Running.urlload(["-s"] + words)
            #expect(result.code == code, "\(words)")
        }
        for (kind, fault, option, code) in [
            (.http, .refuse(403), "--proxy", 56), (.http, .garbage, "--proxy", 56),
            (.http, .close(.request), "--proxy", 56),
            (.socks, .refuse(5), "--socks5-hostname", 97), (.socks, .refuse(91), "--socks4a", 97),
            (.socks, .garbage, "--socks5-hostname", 97),
            (.socks, .close(.greeting), "--socks5-hostname", 97),
        ] as [(TestProxy.Configuration.Kind, TestProxy.Fault, String, Int32)] {
            try await withTestProxy(.init(kind, fault: fault)) { proxy in
                let result = try await Self.run(option, "127.0.0.1:\(proxy.port)", "https://origin.test/")
                #expect(result.code == code, "\(option) \(fault)")
            }
        }
    }

    /// Runs with these variables and no other proxy variables.
    static func withEnvironment(_ variables: [String], _ words: [String]) async throws -> Running.Result {
        let names = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"]
        let unset = (names + names.map { $0.uppercased() }).flatMap { ["-u", $0] }
        return try await Running.command("/usr/bin/env", unset + variables + [Running.urlloadPath] + words)
    }

    @Test("Options have precedence over the environment") func theEnvironmentAndTheOptions() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            let target = "http://origin.test:\(origin.port)/"
            let here = origin.url().absoluteString
            try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                let address = "http://127.0.0.1:\(proxy.port)"
                // -U applies to the proxy of the environment, too, unless its URL has a user.
                let asked = try await Self.withEnvironment(["http_proxy=\(address)"], ["-U", "u:pw", target])
                #expect(asked.code == 0 && asked.text == "here", "\(asked.errors)")
                let own = try await Self.withEnvironment(
                    ["http_proxy=http://u:pw@127.0.0.1:\(proxy.port)"], ["-U", "other:no", target])
                #expect(own.text == "here")
                #expect(proxy.requests.count == 2)
                // no_proxy applies to -x, as in curl; --noproxy replaces it.
                let passed = try await Self.withEnvironment(["no_proxy=127.0.0.1"], ["-x", address, here])
                #expect(passed.text == "here" && proxy.requests.count == 2)
                let again = try await Self.withEnvironment(
                    ["NO_PROXY=127.0.0.1"], ["-x", address, "-U", "u:pw", "--noproxy", "", here])
                #expect(again.text == "here" && proxy.requests.count == 3, "\(again.errors)")
                let refused = try await Self.withEnvironment([], ["-x", address, "https://origin.test/"])
                #expect(
                    refused.code == 56
                        && refused.errors.contains("at the proxy \(address): it requires a user and password"),
                    "\(refused.errors)")
            }
            // --preproxy is in front of the environment's proxy; without one it is the proxy.
            try await withTestProxy(.init(.socks)) { first in
                try await withTestProxy { second in
                    let outer = "socks5h://127.0.0.1:\(first.port)"
                    let both = try await Self.withEnvironment(
                        ["http_proxy=127.0.0.1:\(second.port)"], ["--preproxy", outer, target])
                    #expect(
                        both.text == "here" && first.requests.count == 1 && second.requests.count == 1, "\(both.errors)"
                    )
                    let alone = try await Self.withEnvironment([], ["--preproxy", outer, target])
                    #expect(
                        alone.text == "here" && first.requests.last?.target == "origin.test:\(origin.port)"
                            && second.requests.count == 1, "\(alone.errors)")
                }
            }
        }
    }

    @Test func `Names are resolved where the kind of proxy says`() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            try await withTestProxy(.init(.socks)) { proxy in
                let (address, there) = ("127.0.0.1:\(proxy.port)", "a.test:\(origin.port)")
                for (option, target) in [
                    (["--socks5", address], "127.0.0.1"), (["--socks4", address], "127.0.0.1"),
                    (["-x", "socks5://\(address)"], "127.0.0.1"),
                    (["--socks5-hostname", address], "a.test"), (["--socks4a", address], "a.test"),
                    (["-x", "socks5h://\(address)"], "a.test"),
                ] {
                    let result = try await Running.urlload(
                        option + ["--resolve", there + ":127.0.0.1", "http://\(there)/"])
                    #expect(
                        result.text == "here" && proxy.requests.last?.target == "\(target):\(origin.port)",
                        "\(option): \(result.errors)")
                }
            }
        }
    }

    @Test func `--connect-to works through an HTTP proxy`() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            try await withTestProxy { proxy in
                let result = try await Self.run(
                    "-x", "127.0.0.1:\(proxy.port)", "--connect-to", "a.test:80:b.test:\(origin.port)", "http://a.test/"
                )
                #expect(
                    result.text == "here" && proxy.requests.first?.method == "CONNECT"
                        && origin.requests.first?.headers[.host] == "a.test")
            }
        }
    }

    @Test("Address overrides, interfaces and Unix sockets work") func otherPlaces() async throws {
        let path = FileManager.default.temporaryDirectory.appending(
            path: "urlload-\(UInt64.random(in: 0 ... .max)).sock"
        ).path()
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await withHTTPTestServer(.init(address: .unix(path))) { origin in
            origin.route("/info") { _ in .ok("socket") }
            let result = try await Self.run("--unix-socket", path, "http://docker/info")
            #expect(result.text == "socket" && origin.requests.first?.headers[.host] == "docker")
        }
        let missing = try await Running.urlload(["-sS", "--unix-socket", path + ".gone", "http://docker/info"])
        #expect(
            missing.code == 7 && missing.errors.contains(": the socket file \(path).gone does not exist (")
                && !missing.errors.contains("no program listens"),
            "\(missing.errors)")
        try await withHTTPTestServer(answering: "here") { origin in
            for words in [
                ["--resolve", "a.test:\(origin.port):127.0.0.1", "http://a.test:\(origin.port)/"],
                ["--connect-to", "a.test:80:127.0.0.1:\(origin.port)", "http://a.test/"],
                ["--interface", "lo", origin.url().absoluteString],
                ["--interface", "127.0.0.3", origin.url().absoluteString],
            ] {
                let result = try await Running.urlload(words)
                #expect(result.text == "here", "\(words): \(result.errors)")
            }
        }
    }
}
