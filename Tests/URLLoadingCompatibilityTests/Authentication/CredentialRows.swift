// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoadingCompatibility

/// More of checklist 66 to 88 with delegates: client certificates, proxies, Digest, and the persistence of credentials.
@Suite(.timeLimit(.minutes(4)))
struct CredentialRows {
    /// Answers every challenge, and records it.
    final class Answering: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        let asked = Box<URLProtectionSpace>()
        let answer: @Sendable (URLAuthenticationChallenge) -> URLCredential?
        init(_ answer: @escaping @Sendable (URLAuthenticationChallenge) -> URLCredential?) { self.answer = answer }

        var methods: [String] { asked.all.map(\.authenticationMethod) }

        private func reply(_ challenge: URLAuthenticationChallenge) -> (
            URLSession.AuthChallengeDisposition, URLCredential?
        ) {
            asked.add(challenge.protectionSpace)
            if let trust = challenge.protectionSpace.serverTrust {
                return (.useCredential, URLCredential(trust: trust))
            }
            let credential = answer(challenge)
            return (credential == nil ? .performDefaultHandling : .useCredential, credential)
        }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) { reply(challenge) }
    }

    private func text(
        _ url: URL, _ delegate: Answering, _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) async -> (String, Int) {
        let configuration = URLSessionConfiguration.ephemeral
        change(configuration)
        let session = URLLoadingCompatibility.URLSession(
            configuration: configuration, delegate: delegate, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        let result = await session.result(URLRequest(url: url))
        return (
            String(decoding: result.data ?? Data(), as: UTF8.self),
            (result.response as? HTTPURLResponse)?.statusCode ?? 0
        )
    }

    @Test(
        "a delegate provides a client certificate to a server that requests one, or none (checklist 80)",
        arguments: [true, false])
    func identity(_ shows: Bool) async throws {
        let authority = try TestCertificateAuthority(commonName: "Untrusted root")
        let ada = try authority.issue(.init(names: [], commonName: "ada", isForServers: false))
        var tls = HTTPTestServer.TLS(try authority.issue())
        tls.clientRootsPEM = authority.pem
        tls.requiresClientCertificate = false
        let identity = try ClientIdentity(certificatePEM: ada.certificatePEM, keyPEM: ada.keyPEM)
        try await withHTTPTestServer(.init(tls: tls)) { origin in
            origin.route("/") { .ok($0.tls?.clientSubject ?? "anonymous") }
            let delegate = Answering { _ in shows ? URLCredential(identity: identity) : nil }
            let found = await text(origin.url(), delegate)
            #expect(found == (shows ? "CN=ada" : "anonymous", 200))
            #expect(
                delegate.methods.sorted()
                    == [NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodServerTrust].sorted())
            let space = delegate.asked.all.first {
                $0.authenticationMethod == NSURLAuthenticationMethodClientCertificate
            }
            #expect(space?.distinguishedNames?.isEmpty == false && space?.host == origin.url().host)
        }
    }

    @Test(
        "a proxy's challenge has a protection space of its own, for requests and for tunnels (checklist 88, 71)",
        arguments: [false, true])
    func proxy(_ tunnels: Bool) async throws {
        let identity = try TestCertificateAuthority(commonName: "Untrusted root").issue(.init(names: ["origin.test"]))
        try await withHTTPTestServer(tunnels ? .init(tls: .init(identity)) : .init()) { origin in
            origin.route("/") { _ in .ok("here") }
            try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                let way: [AnyHashable: Any] = [
                    "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": Int(proxy.port),
                    "HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": Int(proxy.port),
                ]
                let delegate = Answering { _ in URLCredential(user: "u", password: "pw", persistence: .none) }
                let target = try url("\(tunnels ? "https" : "http")://origin.test:\(origin.port)/")
                let found = await text(target, delegate) { $0.connectionProxyDictionary = way }
                #expect(found == ("here", 200))
                let space = try #require(delegate.asked.all.first { $0.isProxy() })
                #expect(
                    space.host == "127.0.0.1" && space.port == Int(proxy.port)
                        && space.authenticationMethod == NSURLAuthenticationMethodHTTPBasic)
                #expect(delegate.asked.all.count == (tunnels ? 2 : 1))
            }
        }
    }

    private static func digest(_ origin: HTTPTestServer) {
        @Sendable func md5(_ text: String) -> String { DigestHash.md5.hex(Array(text.utf8)) ?? "" }
        origin.route("/digest") { request in
            if let field = request.headers[.authorization], let given = AuthenticationChallenge.parse([field]).first,
                given.isOf("Digest")
            {
                let proof =
                    md5("ada:door:secret") + ":n1:\(given["nc"] ?? ""):\(given["cnonce"] ?? ""):auth:"
                    + md5("GET:/digest")
                if given["response"] == md5(proof) { return .ok("in") }
            }
            return .status(
                .unauthorized, headers: [.wwwAuthenticate: "Digest realm=\"door\", nonce=\"n1\", qop=\"auth\""])
        }
    }

    @Test("a password credential answers Digest as well as Basic; the library computes the response (checklist 79)")
    func digest() async throws {
        try await withHTTPTestServer { origin in
            Self.digest(origin)
            let delegate = Answering { _ in URLCredential(user: "ada", password: "secret", persistence: .none) }
            let found = await text(origin.url("/digest"), delegate)
            #expect(found == ("in", 200) && delegate.methods == [NSURLAuthenticationMethodHTTPDigest])
        }
    }

    @Test(
        "the persistence decides whether a credential is stored in memory or in a file (checklist 86, 73)",
        arguments: [URLCredential.Persistence.none, .forSession, .permanent])
    func persistence(_ persistence: URLCredential.Persistence) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                guard request.headers[.authorization] != nil else {
                    return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"kept\""])
                }
                return .ok("in")
            }
            let storage = URLCredentialStorage.shared
            // The stored credential is proposed, and used by default.
            let proposed = Box<String?>()
            let delegate = Answering { challenge in
                proposed.add(challenge.proposedCredential?.user)
                if challenge.proposedCredential != nil { return nil }
                return URLCredential(user: "ada", password: "secret", persistence: persistence)
            }
            for _ in 0..<2 {
                let found = await text(origin.url(), delegate) { $0.urlCredentialStorage = storage }
                #expect(found == ("in", 200))
            }
            #expect(proposed.all == [nil, persistence == .none ? nil : "ada"])
            let space = try #require(delegate.asked.all.first)
            #expect((storage.credentials(for: space)?.keys.sorted() ?? []) == (persistence == .none ? [] : ["ada"]))
            // Reads the file as another process of this user would.
            let again = CredentialStore(file: URL(filePath: StorageFolders.state + "/credentials.json"))
            #expect(again.all.contains { $0.key.port == Int(origin.port) } == (persistence == .permanent))
            storage.remove(URLCredential(user: "ada", password: "secret", persistence: persistence), for: space)
        }
    }

    // MARK: No storage

    private static func locked(_ origin: HTTPTestServer) {
        origin.route("/") { request in
            guard request.headers[.authorization] != nil else {
                return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"kept\""])
            }
            return .ok("in")
        }
    }

    @Test(
        "without a credential storage the user's stored credentials are neither sent nor proposed nor changed",
        arguments: [URLCredential.Persistence.forSession, .permanent])
    func noStorage(_ persistence: URLCredential.Persistence) async throws {
        try await withHTTPTestServer(serving: Self.locked) { origin in
            let storage = URLCredentialStorage.shared
            let space = URLProtectionSpace(
                host: origin.url().host ?? "", port: Int(origin.port), protocol: "http", realm: "kept",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            let stored = URLCredential(user: "ada", password: "secret", persistence: persistence)
            storage.set(stored, for: space)
            defer { storage.remove(stored, for: space) }
            let configuration = URLSessionConfiguration.default
            (configuration.urlCredentialStorage, configuration.urlCache) = (nil, nil)
            let plain = URLSession(configuration: configuration)
            let result = await plain.result(URLRequest(url: origin.url()))
            #expect((result.response as? HTTPURLResponse)?.statusCode == 401)
            #expect(origin.requests.allSatisfy { $0.headers[.authorization] == nil })
            plain.invalidateAndCancel()

            let proposed = Box<String?>()
            let delegate = Answering { challenge in
                proposed.add(challenge.proposedCredential?.user)
                return URLCredential(user: "eve", password: "own", persistence: persistence)
            }
            let asking = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
            let answered = await asking.result(URLRequest(url: origin.url()))
            #expect(answered.data == Data("in".utf8) && proposed.all == [nil])
            #expect(storage.credentials(for: space)?.keys.sorted() == ["ada"])
            asking.invalidateAndCancel()
        }
    }

    @Test(
        "reset removes logins and tokens, with a credential storage and without one", arguments: [true, false])
    func reset(_ hasStorage: Bool) async throws {
        try await withHTTPTestServer(serving: Self.locked) { origin in
            let delegate = Answering { _ in URLCredential(user: "ada", password: "secret", persistence: .forSession) }
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCache = nil
            if !hasStorage { configuration.urlCredentialStorage = nil }
            let space = try ProtectionSpace(server: origin.url("/"), method: .bearer)
            configuration.urlCredentialStorage?.store.set(.bearer("token"), for: space)
            let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
            for _ in 0..<2 {
                for _ in 0..<2 {
                    let result = await session.result(URLRequest(url: origin.url()))
                    #expect(result.data == Data("in".utf8))
                }
                await session.reset()
            }
            let sent = origin.requests.map { $0.headers[.authorization] != nil }
            #expect(sent == [false, true, true, false, true, true])
            #expect(configuration.urlCredentialStorage?.store.all.isEmpty ?? true)
            session.invalidateAndCancel()
        }
    }

    // MARK: Schemes

    @Test("files, data URLs and ftp load through the same tasks (checklist 119)", arguments: ["file", "data", "ftp"])
    func schemes(_ scheme: String) async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("scheme-\(UUID().uuidString).txt")
        try Data("content".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        try await withFTPTestServer { server in
            server.put("file.txt", Data("content".utf8))
            let url =
                switch scheme {
                case "file": file
                case "data": try url("data:text/plain,content")
                default: server.url("/file.txt")
                }
            let recorder = Recorder()
            let contents = Box<Data>()
            recorder.onFile = { _, url in if let data = try? Data(contentsOf: url) { contents.add(data) } }
            let session = recorder.session()
            let data = session.dataTask(with: url)
            let download = session.downloadTask(with: url)
            for (number, task) in [data, download].enumerated() {
                task.resume()
                await recorder.completed.reaches(number + 1)
                #expect(task.error == nil && !(task.response is HTTPURLResponse))
            }
            #expect(recorder.record(data).data == Data("content".utf8) && contents.all == [Data("content".utf8)])
            #expect(recorder.words(data) == "response data complete" && data.response?.mimeType == "text/plain")
            let result = await session.result(URLRequest(url: url))
            #expect(result.data == Data("content".utf8) && result.error == nil)
            await recorder.expectOrder(session)
        }
    }

    @Test("a configuration limits the TLS versions (checklist 23)")
    func versions() async throws {
        var tls = HTTPTestServer.TLS(try TestCertificateAuthority(commonName: "Untrusted root").issue())
        tls.maximumVersion = .tls12
        try await withHTTPTestServer(.init(tls: tls)) { origin in
            origin.route("/") { .ok($0.tls?.version ?? "-") }
            let delegate = Answering { _ in nil }
            let old = await text(origin.url(), delegate) { $0.tlsMaximumSupportedProtocolVersion = .TLSv12 }
            #expect(old == ("TLSv1.2", 200))
            let session = URLLoadingCompatibility.URLSession(
                configuration: {
                    let configuration = URLSessionConfiguration.ephemeral
                    configuration.tlsMinimumSupportedProtocolVersion = .TLSv13
                    return configuration
                }(), delegate: delegate, delegateQueue: nil)
            let result = await session.result(URLRequest(url: origin.url()))
            #expect(result.error?.code == .secureConnectionFailed)
            session.invalidateAndCancel()
        }
    }

    @Test("a lowest version below TLS 1.2 is accepted from every host, and metrics say which was used")
    func oldVersions() async throws {
        var tls = HTTPTestServer.TLS(try TestCertificateAuthority(commonName: "Untrusted root").issue())
        (tls.minimumVersion, tls.maximumVersion) = (.tls10, .tls11)
        try await withHTTPTestServer(.init(tls: tls)) { origin in
            origin.route("/") { .ok($0.tls?.version ?? "-") }
            let delegate = Answering { _ in nil }
            for (version, name) in [(tls_protocol_version_t.TLSv10, "TLSv1.1"), (.TLSv11, "TLSv1.1")] {
                let old = await text(origin.url(), delegate) { $0.tlsMinimumSupportedProtocolVersion = version }
                #expect(old == (name, 200))
            }
            let oldest = await text(origin.url(), delegate) {
                ($0.tlsMinimumSupportedProtocolVersion, $0.tlsMaximumSupportedProtocolVersion) = (.TLSv10, .TLSv10)
            }
            #expect(oldest == ("TLSv1.0", 200))
        }
    }
}
