import FoundationEssentials
import Testing
@testable import URLLoading
import URLLoadingTesting
import URLLoadingWire

/// Security 81: no description, no reflection and no error shows a password or a token. What ends up in logs is seldom the
/// thing itself: it is what holds it.
@Suite(.timeLimit(.minutes(4))) struct SecretRows {
    private static let secret = "s3cret"

    private func check<Value>(_ value: Value, _ name: String, sourceLocation: SourceLocation = #_sourceLocation) {
        var dumped = ""
        dump(value, to: &dumped)
        for (way, text) in [("dump", dumped), ("describing", String(describing: value)), ("reflecting", String(reflecting: value))] {
            #expect(!text.contains(Self.secret), "\(way) of \(name)", sourceLocation: sourceLocation)
        }
    }

    private func configuration() throws -> Configuration {
        var configuration = Configuration.ephemeral
        configuration.authentication.bearer = try BearerTokens(for: ["https://a.test"], token: Self.secret) { _ in Self.secret }
        let store = CredentialStore()
        store.set(Credential(user: "ada", password: Self.secret), for: ProtectionSpace(host: "a.test", port: 443, scheme: "https", method: .any))
        configuration.authentication.credentials = store
        configuration.headers = [.authorization: "Bearer \(Self.secret)", .proxyAuthorization: "Basic \(Self.secret)"]
        configuration.proxies = .fixed([try Proxy("http://ada:\(Self.secret)@proxy.test:3128")])
        configuration.ftp.account = Self.secret
        return configuration
    }

    @Test func `values that hold secrets`() throws {
        let configuration = try configuration()
        check(configuration.authentication, "authentication")
        if let tokens = configuration.authentication.bearer { check(tokens, "tokens") }
        check(configuration.proxies, "proxies")
        check(configuration.headers, "headers")
        check(configuration.ftp, "ftp")
        check(configuration, "configuration")
        check(ChallengeDecision.use(Credential(user: "ada", password: Self.secret)), "decision")
        check(ChallengeDecision.use(.bearer(Self.secret)), "decision")
        check(Challenge(
            space: ProtectionSpace(host: "a.test", port: 443, scheme: "https", method: .basic),
            proposedCredential: Credential(user: "ada", password: Self.secret)), "challenge")
    }

    @Test func `requests whose URL has a password`() throws {
        let request = Request(url: try url("http://ada:\(Self.secret)@a.test/"))
        check(request, "request")
        check(LoadError(.connectionLost, phase: .waiting, party: .peer, url: request.url), "error")
        let response = Response(url: request.url, http: HTTPHead(status: .unauthorized))
        check(response, "response")
        check(Redirect(response: response, request: request, count: 0), "redirect")
        check(BodyDemand(request: request, cause: .first), "demand")
        check(Challenge(
            space: ProtectionSpace(host: "a.test", port: 80, scheme: "http", method: .basic), failureResponse: response), "challenge")
    }

    @Test func `a session, and errors of its loads`() async throws {
        let session = Session(try configuration())
        check(session.configuration, "configuration of a session")
        #expect(!"\(session)".contains(Self.secret) && !session.connectionsDescription.contains(Self.secret))
        check(session, "session")
        check(session.dataTask(from: try url("http://ada:\(Self.secret)@127.0.0.1:1/")), "task")
        session.invalidateAndCancel()
        try await withTestOrigin { origin in
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
}
