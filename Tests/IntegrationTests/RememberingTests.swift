// SPDX-License-Identifier: Apache-2.0

// State that `urlload` keeps between runs; an ephemeral session keeps none.

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(5)))
struct RememberingTests {
    private static let strace = ["/usr/bin/strace", "/bin/strace"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    @Test(
        "An ephemeral session opens no file for writing, whatever it is configured to store (checklist 3)",
        .enabled(if: strace != nil, "strace is not installed"))
    func ephemeral() async throws {
        let strace = try #require(Self.strace)
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in
                guard request.headers.contains(.authorization) else {
                    return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"x\""])
                }
                return .ok(
                    request.headers[.cookie] ?? "none",
                    headers: [
                        .setCookie: "a=1; Max-Age=600", .cacheControl: "max-age=600",
                        .strictTransportSecurity: "max-age=600",
                    ])
            }
            let log = folder.path + "/log"
            let home = folder.path + "/home"
            let result = try await Running.command(
                strace,
                ["-f", "-qq", "-e", "trace=%file", "-o", log, Running.urlloadPath, "-u", "u:p"]
                    + ["/1", "/2"].map { origin.url($0).absoluteString },
                environment: ["HOME": home, "XDG_CACHE_HOME": home + "/cache", "XDG_STATE_HOME": home + "/state"])
            #expect(result.code == 0 && result.text == "nonea=1", "\(result.text)\(result.errors)")
            let calls = String(decoding: try folder.bytes("log"), as: UTF8.self).split(separator: "\n")
            #expect(calls.count > 10)
            let writes = calls.filter { call in
                guard !call.contains("\"/dev/"), !call.contains("\"/proc/") else { return false }
                // The thread sanitizer's copy of constants, created and removed before the program begins.
                if Servers.isSanitized, call.contains("/tsan.rodata.") { return false }
                return [
                    "O_WRONLY", "O_RDWR", "O_CREAT", "mkdir", "creat(", "rename", "unlink", "truncate", "symlink",
                    "link(",
                ]
                .contains { call.contains($0) } && !call.contains("readlink")
            }
            #expect(writes.isEmpty, "\(writes.joined(separator: "\n"))")
        }
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/home"))
    }

    @Test("--cookies keeps cookies over runs")
    func cookies() async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok($0.headers[.cookie] ?? "none", headers: [.setCookie: "a=1; Max-Age=600"]) }
            let words = ["--cookies", folder.path + "/jar", origin.url("/").absoluteString]
            let first = try await Running.urlload(words)
            let second = try await Running.urlload(words)
            #expect(first.text == "none" && second.text == "a=1", "\(first.errors)\(second.errors)")
            let mode = try FileManager.default.attributesOfItem(atPath: folder.path + "/jar")[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
    }

    @Test("--cache keeps responses over runs, and --cache-policy may forbid the network")
    func cache() async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                request.headers.contains(.ifNoneMatch)
                    ? .status(.notModified, headers: [.etag: "\"1\"", .cacheControl: "max-age=600"])
                    : .ok("page", headers: [.etag: "\"1\"", .cacheControl: "max-age=600"])
            }
            func run(_ policy: String, _ url: URL) async throws -> String {
                let result = try await Running.urlload([
                    "-v", "--cache", folder.path + "/c", "--cache-policy", policy, url.absoluteString,
                ])
                let plan =
                    result.errors.split(separator: "\n").first { $0.contains("cache: ") }.map(String.init)
                    ?? result.errors
                return "\(result.code) \(result.text) \(plan.split(separator: " ").dropFirst(2).first ?? "-")"
            }
            let url = origin.url("/")
            let answers = try await [
                run("protocol", url), run("protocol", url), run("revalidate", url), run("cache-else-load", url),
                run("only-if-cached", url),
                run("reload", url), run("reload-all", url), run("only-if-cached", origin.url("/other")),
            ]
            #expect(
                answers.dropLast() == [
                    "0 page network", "0 page stored", "0 page validate", "0 page stored", "0 page stored",
                    "0 page network", "0 page network",
                ])
            #expect(
                answers.last?.hasPrefix("0") == false && answers.last?.hasSuffix("refused") == true,
                "\(answers.last ?? "")")
            #expect(origin.counts.requests == 4)
        }
    }

    @Test("--hsts makes later runs use https")
    func strictTransport() async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer(answering: "plain") { origin in
            let url = "http://localhost:\(origin.port)/"
            // The name is that of one address here: at ::1 the same port may be another server's.
            let options = [
                "--resolve", "localhost:\(origin.port):127.0.0.1", "--hsts", folder.path + "/hsts", url,
            ]
            let before = try await Running.urlload(options)
            #expect(before.code == 0 && before.text == "plain", "\(before.errors)")
            try Data("localhost \"unlimited\"\n".utf8).write(to: URL(filePath: folder.path + "/hsts"))
            let after = try await Running.urlload(options)
            #expect(after.code != 0 && after.text.isEmpty && origin.counts.requests == 1)
        }
    }

    @Test("A full disk is an error (a small file system of its own)")
    func full() async throws {
        let folder = try TemporaryFolder()
        let unshare = geteuid() == 0 ? ["-m"] : ["-r", "-m"]
        func inside(_ script: String) async throws -> Running.Result {
            let words =
                ["unshare"] + unshare + ["sh", "-c", #"mount -t tmpfs -o size=2m none "$1" || exit 99; "# + script]
            return try await Running.command("/usr/bin/env", words + [Running.urlloadPath, folder.path])
        }
        guard try await inside("exit 0").code == 0 else {
            print("no file system can be mounted here: the full disk is not tested")
            return
        }
        let result = try await inside(
            """
            "$0" cache exercise --cache "$1/c" --count 300 >/dev/null; echo exercised $?
            "$0" cache ls --cache "$1/c" >"$1/list"; echo listed $?
            "$0" cache rm --all --cache "$1/c"; echo removed $?
            "$0" cache ls --cache "$1/c" | wc -l
            "$0" cache exercise --cache "$1/c" --count 4 >/dev/null; echo again $?
            """)
        #expect(result.text == "exercised 23\nlisted 0\nremoved 0\n0\nagain 0\n", "\(result.text)\(result.errors)")
        #expect(result.errors.contains("full"), "\(result.errors)")
    }
}
