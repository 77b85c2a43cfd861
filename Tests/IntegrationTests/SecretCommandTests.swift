// SPDX-License-Identifier: Apache-2.0

// Passwords and tokens in the messages of `urlload`, and its behaviour without descriptors.

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct SecretCommandTests {
    @Test(
        "The message about a URL that cannot be loaded hides its password",
        arguments: [
            "http://ada:s3 cret@exa mple/", "ada:s3cret@exa mple/", "http://ada:s3cret@127.0.0.1:port/",
            "http://ada:s3/cret@127.0.0.1:1/",
            "http://ada:s3cret@127.0.0.1:1/?token=s3cret", "nosuch://ada:s3cret@a.test/",
            "http://ada:s3@cret@127.0.0.1:1/",
        ])
    func unparsable(_ url: String) async throws {
        for options in [[], ["--summary", "json"], ["-v"], ["--trace"]] {
            let result = try await Running.urlload(options + [url])
            #expect(result.code != 0)
            let said = result.errors + (options == ["--summary", "json"] ? "" : result.text)
            for part in ["s3cret", "s3 ", "s3/", "s3@", "cret@"] {
                #expect(!said.contains(part), "\(options): \(said)")
            }
            #expect(!result.text.contains("ada:"), "\(result.text)")
        }
    }

    @Test("-v and --trace hide the password and the token of a Location")
    func redirect() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .status(.found, headers: [.location: "http://ada:s3cret@127.0.0.1:1/?access_token=s3cret"])
            }
            for option in ["-v", "--trace"] {
                let result = try await Running.urlload([option, origin.url().absoluteString])
                #expect(
                    result.errors.contains("< Location: http://127.0.0.1:1/?access_token=(removed)"), "\(result.errors)"
                )
                #expect(!result.errors.contains("s3cret"), "\(result.errors)")
                let shown = try await Running.urlload([option, "--trace-secrets", origin.url().absoluteString])
                #expect(shown.errors.contains("ada:s3cret@"))
            }
        }
    }

    @Test("A netrc file that others may read is used with a warning")
    func netrc() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                request.headers[.authorization] == nil
                    ? .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=x"]) : .ok("in")
            }
            let folder = try TemporaryFolder()
            let path = folder.path + "/netrc"
            try Data("machine 127.0.0.1 login ada password s3cret".utf8).write(to: URL(filePath: path))
            for (mode, warns) in [(0o600, false), (0o644, true)] as [(mode_t, Bool)] {
                chmod(path, mode)
                let result = try await Running.urlload(["--netrc-file", path, origin.url().absoluteString])
                #expect(result.text == "in" && result.errors.contains("warning: \(path)") == warns, "\(result.errors)")
                #expect(!result.errors.contains("s3cret"))
            }
        }
    }

    @Test("A listing of a cache hides tokens in queries")
    func listing() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/a") { _ in .ok("here", headers: [.cacheControl: "max-age=1000"]) }
            let folder = try TemporaryFolder()
            let target = "http://ada:s3cret@127.0.0.1:\(origin.port)/a?access_token=s3cret&page=2"
            let loaded = try await Running.urlload(["-s", "--cache", folder.path + "/c", target])
            #expect(loaded.text == "here", "\(loaded.errors)")
            for options in [[], ["--json"]] {
                let listed = try await Running.urlload(["cache", "ls", "--cache", folder.path + "/c"] + options)
                #expect(
                    listed.text.contains("access_token=(removed)&page=2") && !listed.text.contains("s3cret"),
                    "\(listed.text)")
                let shown = try await Running.urlload(
                    ["cache", "ls", "--show-secrets", "--cache", folder.path + "/c"] + options)
                #expect(
                    shown.text.contains("access_token=s3cret&page=2") && !shown.text.contains("ada"), "\(shown.text)")
            }
        }
    }

    /// More servers than descriptors: idle connections are closed for new ones.
    @Test("Loads from more servers than there are descriptors succeed")
    func descriptors() async throws {
        let origins = try (0..<60).map { _ in try HTTPTestServer() }
        for origin in origins {
            origin.route("/") { _ in .ok("here") }
            origin.start()
        }
        let words = ["-c", "ulimit -n 40; exec \"$@\"", "sh", Running.urlloadPath]
        var result = try await Running.command("/bin/sh", words + origins.map { $0.url().absoluteString })
        // Once a second Dispatch opens a file, and ends the process if there is no descriptor for it
        // (docs/known-limits.md). A busy machine makes a run that long.
        for _ in 0..<3 where result.code == SIGILL {
            result = try await Running.command("/bin/sh", words + origins.map { $0.url().absoluteString })
        }
        for origin in origins { await origin.stop() }
        #expect(result.code == 0 && result.text == String(repeating: "here", count: 60), "\(result.errors)")
    }
}
