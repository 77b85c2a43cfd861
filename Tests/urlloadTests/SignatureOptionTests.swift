// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting

@testable import urlload

/// `--aws-sigv4`, with curl's grammar.
@Suite struct SignatureOptionTests {
    @Test("Region and service come from the option, or from the host") func scope() throws {
        for (text, host, region, service) in [
            ("aws:amz:us-east-1:s3", "a.test", "us-east-1", "s3"),
            ("aws:amz:us-east-1", "es.x.amazonaws.com", "us-east-1", "es"),
            ("aws:amz", "sts.eu-central-1.amazonaws.com", "eu-central-1", "sts"),
            ("", "sts.eu-central-1.amazonaws.com", "eu-central-1", "sts"), ("aws:amz::s3", "a.b.c", "b", "s3"),
        ] {
            let scope = try SignatureOption(text).scope(of: host)
            #expect(scope.region == region && scope.service == service, "\(text)")
        }
        for (text, host) in [("aws", "localhost"), ("aws:amz:r", "localhost"), ("aws:amz::s3", "a.b"), ("aws", "a.b")] {
            #expect(throws: OutputError.self) { try SignatureOption(text).scope(of: host) }
        }
        for bad in [":amz", "aws:amz:r:s:t", "aws:amz:r/2:s3", "a b", "aws:amz:r\n"] {
            #expect(throws: UsageError.self) { try SignatureOption(bad) }
        }
    }

    @Test("The key of -u signs, and is not a password; other providers have other names") func signs() async throws {
        for (text, date, algorithm) in [
            ("aws:amz:us-east-1:es", "X-Amz-Date", "AWS4-HMAC-SHA256"),
            ("osc:osc:r:s", "X-Osc-Date", "OSC4-HMAC-SHA256"),
            ("GOOG", "X-Goog-Date", "GOOG4-HMAC-SHA256"),
        ] {
            let words = ["--aws-sigv4", text == "GOOG" ? "GOOG::r:s" : text, "-u", "AK:s3cret", "http://a.test/"]
            let login = try ArgumentParser.parse(words).login
            #expect(login.settings([]).credentialStore == nil)
            let decisions = try #require(login.signing)
            try await withHTTPTestServer { origin in
                origin.route("/") { _ in .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=r"]) }
                try await withSession(.ephemeral, decisions: decisions) { session in
                    _ = try await session.data(from: origin.url())
                }
                #expect(origin.counts.requests == 1)
                let sent = try #require(origin.requests.first?.headers)
                #expect(sent[.authorization]?.hasPrefix("\(algorithm) Credential=AK/") == true)
                #expect(sent[FieldName(date)]?.count == 16)
            }
        }
    }

    @Test("A redirect to a host that names no region is followed unsigned; a pipe needs https") func redirect()
        async throws
    {
        let decisions = SignatureOptionTests.decisions
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("http://localhost:\(origin.port)/there") }
            origin.route("/there") { _ in .ok("in") }
            try await withSession(.ephemeral, decisions: decisions) { session in
                try await #expect(session.data(from: origin.url()).0 == Data("in".utf8))
                #expect(origin.requests.map { $0.headers.contains(.authorization) } == [true, false])
                let pipe = RequestBody.stream { AsyncStream<[UInt8]> { $0.finish() } }
                do {
                    _ = try await session.data(for: Request(url: origin.url("/there"), method: .put, body: pipe))
                    Issue.record("the body was sent unsigned")
                } catch let error as LoadError {
                    #expect(error.underlying is OutputError && origin.counts.requests == 2)
                }
            }
        }
    }

    /// The region and the service are those of the host.
    private static var decisions: Decisions? {
        try? SignatureOption("aws:amz").decisions(AWSCredentials(accessKey: "AK", secretKey: "s3cret"))
    }

    @Test("Other credentials are refused beside it", arguments: [["--oauth2-bearer", "t"], ["--basic"], ["--digest"]])
    func refused(_ words: [String]) {
        #expect(throws: UsageError.self) {
            try ArgumentParser.parse(["--aws-sigv4", "aws:amz:r:s", "http://a.test/"] + words)
        }
    }
}
