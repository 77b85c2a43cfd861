// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Security 81: no description, reflection or error contains a password or a token. Logs mostly contain not the secret
/// value itself but a value that holds it.
@Suite(.timeLimit(.minutes(4))) struct SecretRows {
    private static let secret = "s3cret"

    private func check<Value>(_ value: Value, _ name: String, sourceLocation: SourceLocation = #_sourceLocation) {
        var dumped = ""
        dump(value, to: &dumped)
        for (way, text) in [
            ("dump", dumped), ("describing", String(describing: value)), ("reflecting", String(reflecting: value)),
        ] {
            #expect(!text.contains(Self.secret), "\(way) of \(name)", sourceLocation: sourceLocation)
        }
    }

    private func configuration() throws -> Configuration {
        var configuration = Configuration.ephemeral
        configuration.authentication.bearer = try BearerTokens(for: ["https://a.test"], token: Self.secret) { _ in
            Self.secret
        }
        let store = CredentialStore()
        store.set(
            Credential(user: "ada", password: Self.secret),
            for: ProtectionSpace(host: "a.test", port: 443, scheme: "https", method: .any))
        configuration.authentication.credentialStore = store
        configuration.headers = [.authorization: "Bearer \(Self.secret)", .proxyAuthorization: "Basic \(Self.secret)"]
        configuration.networks.proxyPolicy = .fixed([try Proxy("http://ada:\(Self.secret)@proxy.test:3128")])
        configuration.ftp.account = Self.secret
        configuration.baseURL = try url("https://ada:\(Self.secret)@a.test/v1?key=\(Self.secret)")
        configuration.defaultQueryItems = [URLQueryItem(name: "api_key", value: Self.secret)]
        return configuration
    }

    @Test func `values with secrets do not show them`() throws {
        let configuration = try configuration()
        check(configuration.authentication, "authentication")
        if let tokens = configuration.authentication.bearer { check(tokens, "tokens") }
        check(configuration.networks.proxyPolicy, "proxies")
        check(configuration.headers, "headers")
        check(configuration.ftp, "ftp")
        check(configuration, "configuration")
        var dumped = ""
        dump(configuration, to: &dumped)
        #expect(dumped.contains("https://a.test/v1") && dumped.contains("api_key"))
        check(ChallengeDecision.use(Credential(user: "ada", password: Self.secret)), "decision")
        check(ChallengeDecision.use(.bearer(Self.secret)), "decision")
        check(
            Challenge(
                protectionSpace: ProtectionSpace(host: "a.test", port: 443, scheme: "https", method: .basic),
                proposedCredential: Credential(user: "ada", password: Self.secret)), "challenge")
    }

    @Test func `requests with a password in the URL do not show it`() throws {
        let request = Request(url: try url("http://ada:\(Self.secret)@a.test/"))
        check(request, "request")
        check(LoadError(.connectionLost, phase: .waiting, party: .remote, url: request.url), "error")
        let response = Response(url: request.url, http: HTTPHead(status: .unauthorized))
        check(response, "response")
        check(Redirect(response: response, request: request, count: 0), "redirect")
        check(BodyProviderContext(request: request, cause: .first), "demand")
        check(
            Challenge(
                protectionSpace: ProtectionSpace(host: "a.test", port: 80, scheme: "http", method: .basic),
                failureResponse: response), "challenge")
    }

    @Test func `a session and the errors of its loads show no secrets`() async throws {
        let session = Session(try configuration())
        check(session.configuration, "configuration of a session")
        #expect(!"\(session)".contains(Self.secret) && !session.connectionsDescription.contains(Self.secret))
        check(session, "session")
        check(session.dataTask(from: try url("http://ada:\(Self.secret)@127.0.0.1:1/")), "task")
        session.invalidateAndCancel()
        try await withHTTPTestServer { origin in
            origin.route("/*") { _ in .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=x"]) }
            var events: [String] = []
            let plain = Session(.ephemeral)
            let task = plain.dataTask(from: try url("http://ada:\(Self.secret)@127.0.0.1:\(origin.port)/"))
            let heard = task.events
            task.resume()
            for await event in heard { events.append("\(event)") }
            #expect(!events.joined().contains(Self.secret))
            await expectEmpty(plain)
        }
    }

    @Test("field values of a request, and secret ones of a response, are not reflected")
    func fields() throws {
        let request = Request(
            url: try url("https://a.test/?access_token=\(Self.secret)"),
            headers: [
                "X-Api-Key": Self.secret, "X-Anything": Self.secret, .authorization: "Bearer \(Self.secret)",
            ])
        check(request, "request")
        #expect(request.redactedURL == "https://a.test/?access_token=(removed)")
        var dumped = ""
        dump(request, to: &dumped)
        #expect(dumped.contains("X-Anything") && dumped.contains("https://a.test/"))
        let head = HTTPHead(
            status: .found,
            headers: [
                .location: "https://ada:\(Self.secret)@a.test/?token=\(Self.secret)",
                "Content-Location": "//ada:\(Self.secret)@a.test/",
                "Refresh": "0; url=https://ada:\(Self.secret)@a.test/",
                "Link": "<https://ada:\(Self.secret)@a.test/>; rel=next",
                "X-Auth-Token": Self.secret, .setCookie: "a=\(Self.secret)",
            ])
        check(head, "head")
        check(head.headers, "headers")
        check(Redirect(response: Response(url: request.url, http: head), request: request, count: 0), "redirect")
        check(
            LoadEvent.redirected(
                Redirect(response: Response(url: request.url, http: head), request: request, count: 0)), "event")
        check(LoadEvent.informational(head), "event")
    }

    @Test(
        "a URL that this library cannot parse is not shown with its password",
        arguments: [
            "http://ada:s3cret@a.test:99999/", "http://ada:s3/cret@a.test/", "http://ada:s3?cret@a.test/",
            "http://ada:s3#cret@a.test/",
            "http://ada:s3@cret@a.test/", "http://ada:s3%zzcret@a.test/", "http://ada:s3cret@/",
            "ftp:ada:s3cret@a.test", "http:ada:s3cret@a.test/",
            "nosuch://ada:s3cret@a.test/",
        ])
    func unparsable(_ text: String) async throws {
        guard let url = URL(string: text) else { return }
        let parts = ["s3cret", "s3/", "s3?", "s3#", "cret@", "s3@", "s3%"]
        func clean(_ shown: String, _ what: String) {
            #expect(!parts.contains { shown.contains($0) }, "\(what): \(shown)")
        }
        clean(url.withoutSecrets, "text")
        clean("\(Request(url: url))", "request")
        clean(Request(url: url).redactedURL, "redacted URL")
        let session = Session(.ephemeral)
        do {
            _ = try await session.data(from: url)
            Issue.record("\(text) was loaded")
        } catch {
            clean("\(error)", "error")
            clean(String(reflecting: error), "error")
            var dumped = ""
            dump(error, to: &dumped)
            clean(dumped, "dump")
        }
        await expectEmpty(session)
    }

    @Test("metrics, logs, observers and traces contain no secrets")
    func observers() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in
                guard request.path == "/a" else { return .ok("here") }
                return .status(
                    .found,
                    headers: [
                        .location:
                            "http://ada:\(Self.secret)@127.0.0.1:"
                            + "\(request.headers[.host]?.split(separator: ":").last ?? "")/b?token=\(Self.secret)"
                    ])
            }
            let lines = Lock<[String]>([])
            func note(_ line: String) { lines.withLock { $0.append(line) } }
            var configuration = Configuration.ephemeral
            configuration.observers = [
                LoadLogger(verbose: true) { line in lines.withLock { $0.append(line) } },
                LoadTracer { span in
                    var dumped = ""
                    dump(span, to: &dumped)
                    lines.withLock { $0.append(dumped) }
                },
            ]
            let session = Session(configuration)
            var request = Request(
                url: try url("http://ada:\(Self.secret)@127.0.0.1:\(origin.port)/a?key=\(Self.secret)"))
            request.headers["X-Api-Key"] = Self.secret
            let task = session.dataTask(request)
            let heard = task.events
            task.resume()
            for await event in heard {
                var dumped = ""
                dump(event, to: &dumped)
                note(dumped)
            }
            check(try await task.metrics, "metrics")
            #expect(
                lines.withLock { $0.count > 6 && !$0.joined().contains(Self.secret) },
                "\(lines.withLock { $0.filter { $0.contains(Self.secret) } })")
            await expectEmpty(session)
        }
    }
}
