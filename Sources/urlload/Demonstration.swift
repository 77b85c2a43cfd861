// SPDX-License-Identifier: Apache-2.0

// `urlload` without arguments: a demonstration on a server inside this process.

import FoundationEssentials
import URLLoading
import URLLoadingTesting

enum Demonstration {
    static func run() async -> ExitCode {
        do {
            let authority = try TestCertificateAuthority(commonName: "urlload demonstration")
            let identity = try authority.issue(.init(names: ["localhost"]))
            let secure = HTTPTestServer.TLS(certificatePEM: identity.certificatePEM, keyPEM: identity.keyPEM)
            try await withHTTPTestServer { plain in
                try await withHTTPTestServer(.init(tls: secure)) { origin in
                    prepare(plain)
                    prepare(origin)
                    try await show(plain, origin, String(decoding: authority.pem, as: UTF8.self))
                }
            }
            return Signals.exitCode ?? .done
        } catch let error as OutputError {
            if error.code != .brokenPipe { try? FileDescriptor.standardError.write("urlload: \(error.words)\n") }
            return error.code
        } catch {
            try? FileDescriptor.standardError.write("urlload: the demonstration failed: \(error)\n")
            return .other
        }
    }

    private static func prepare(_ origin: HTTPTestServer) {
        origin.route("/hello") { _ in
            .ok("Hello from an origin in this very process.\n", headers: [.contentType: "text/plain"])
        }
        origin.route("/slowly") { _ in
            .ok(
                .chunks([
                    "A body arrives ", .pause(.milliseconds(300)), "piece ", .pause(.milliseconds(300)), "by ",
                    .pause(.milliseconds(300)), "piece.\n",
                ]))
        }
        origin.route("/moved") { _ in .redirect("/hello") }
        origin.route("/large") { _ in .ok(.repeated(count: 256 << 20)) }
        origin.route("/cut") { _ in .ok(.declared(100, bytes: Array("only this\n".utf8))) }
    }

    private static func show(_ plain: HTTPTestServer, _ secure: HTTPTestServer, _ roots: String) async throws {
        try say(
            "urlload without arguments demonstrates itself; "
                + "urlload tour shows the library, urlload --help says what it can do."
        )
        try await step(
            "A load over TLS, and what went over the wire", ["-v", secure.url("/hello").absoluteString], roots)
        try await step("The same without trusting that issuer", [secure.url("/hello").absoluteString], nil)
        try await step("A body that takes its time", [plain.url("/slowly").absoluteString], nil)
        try await step("A redirect, reported as JSON", ["--summary", "json", plain.url("/moved").absoluteString], nil)
        try await step("256 MiB, counted and dropped", ["--summary", "json", plain.url("/large").absoluteString], nil)
        try await step("A server that ends too early", [plain.url("/cut").absoluteString], nil)
        try await step("A page that is not there, with --fail", ["-f", plain.url("/nowhere").absoluteString], nil)
        guard Signals.exitCode == nil else { return }
        try say(
            """

            Try next:
              urlload https://example.org/       print a page
              urlload -O URL                     save a file; -C resumes it
              urlload tour                       see what the library can do
              urlload --help                     the options needed first, and where the others are
            """)
    }

    private static func step(_ title: String, _ arguments: [String], _ roots: String?) async throws {
        guard Signals.exitCode == nil else { return }
        let shown = roots == nil ? arguments : ["--cacert", "demonstration.pem"] + arguments
        try say("\n# \(title)\n$ urlload " + shown.joined(separator: " "))
        var options = try ArgumentParser.parse(arguments)
        options.tls.rootsText = roots
        // Messages stay between the lines that they belong to, also in a pipe.
        options.shared.errorFile = "-"
        let ending = await LoadCommand.load(options)
        try say("(exit code \(ending.code.rawValue))")
    }

    private static func say(_ text: String) throws { try FileDescriptor.standardOutput.write(text + "\n") }
}
