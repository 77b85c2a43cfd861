// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTesting
import URLLoadingWire

/// Credential storages as used by programs written for Apple's classes or for FoundationNetworking.
@Suite(.timeLimit(.minutes(2)))
struct LegacyCredentialRows {
    private func credential(_ user: String, _ password: String = "p") -> URLCredential {
        URLCredential(user: user, password: password, persistence: .forSession)
    }

    private let space = URLProtectionSpace(
        host: "a.example", port: 80, protocol: "http", realm: "r",
        authenticationMethod: NSURLAuthenticationMethodHTTPBasic)

    /// Counts the notifications of one storage.
    private func counting(_ storage: URLCredentialStorage, _ use: (Counter) -> Void) {
        let posted = Counter()
        let observer = NotificationCenter.default.addObserver(
            forName: .NSURLCredentialStorageChanged, object: storage, queue: nil
        ) { _ in posted.add() }
        defer { NotificationCenter.default.removeObserver(observer) }
        use(posted)
    }

    @Test("a notification is posted only when the storage has changed")
    func notifications() {
        let storage = URLCredentialStorage()
        counting(storage) { posted in
            func expect(_ count: Int, _ what: String, _ change: () -> Void) {
                let before = posted.value
                change()
                #expect(posted.value - before == count, "\(what)")
            }
            expect(0, "nothing to remove") { storage.remove(credential("ada"), for: space) }
            expect(0, "not kept") {
                storage.set(URLCredential(user: "ada", password: "p", persistence: .none), for: space)
            }
            expect(0, "not kept as a default") {
                storage.setDefaultCredential(URLCredential(user: "ada", password: "p", persistence: .none), for: space)
            }
            expect(1, "new") { storage.set(credential("ada"), for: space) }
            expect(0, "the same") { storage.set(credential("ada"), for: space) }
            expect(1, "another password") { storage.set(credential("ada", "q"), for: space) }
            expect(1, "a default") { storage.setDefaultCredential(credential("ada", "q"), for: space) }
            expect(0, "the same default") { storage.setDefaultCredential(credential("ada", "q"), for: space) }
            expect(1, "another user") { storage.set(credential("bob"), for: space) }
            expect(1, "removed") { storage.remove(credential("ada", "q"), for: space) }
            expect(0, "removed before") { storage.remove(credential("ada", "q"), for: space) }
            let session = URLSession(configuration: .ephemeral)
            let task = session.dataTask(with: URLRequest(url: URL(filePath: "/")))
            expect(0, "the same, for a task") { storage.set(credential("bob"), for: space, task: task) }
        }
    }

    @Test("a removed default credential has no substitute until another is set")
    func defaults() {
        let storage = URLCredentialStorage()
        storage.set(credential("bob"), for: space)
        storage.setDefaultCredential(credential("ada"), for: space)
        #expect(storage.defaultCredential(for: space)?.user == "ada")
        storage.set(credential("eve"), for: space)
        #expect(storage.defaultCredential(for: space)?.user == "ada")
        storage.remove(credential("ada"), for: space)
        #expect(
            storage.defaultCredential(for: space) == nil
                && storage.credentials(for: space)?.keys.sorted() == ["bob", "eve"])
        storage.remove(credential("eve"), for: space)
        #expect(storage.defaultCredential(for: space) == nil)
        storage.setDefaultCredential(credential("bob"), for: space)
        #expect(storage.defaultCredential(for: space)?.user == "bob")
    }

    @Test(
        "a Basic challenge without a realm finds the credential stored for the host without one",
        arguments: [
            NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodDefault,
        ])
    func noRealm(_ method: String) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                guard request.headers[.authorization] == "Basic " + Data("ada:secret".utf8).base64EncodedString() else {
                    return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic"])
                }
                return .ok("in")
            }
            let configuration = URLSessionConfiguration.ephemeral
            let host = URLProtectionSpace(
                host: "127.0.0.1", port: Int(origin.port), protocol: "http", realm: nil, authenticationMethod: method)
            configuration.urlCredentialStorage?.set(credential("ada", "secret"), for: host)
            let session = URLSession(configuration: configuration)
            let result = await session.result(URLRequest(url: origin.url()))
            #expect(result.data == Data("in".utf8))
            session.invalidateAndCancel()
        }
    }

    @Test("the protection space of a Basic challenge without a realm has no realm")
    func realm() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .status(.unauthorized, headers: [.wwwAuthenticate: "Basic"]) }
            let recorder = Recorder()
            let realms = Box<String?>()
            recorder.onChallenge = { challenge, answer in
                realms.add(challenge.protectionSpace.realm)
                answer(.performDefaultHandling, nil)
            }
            let session = recorder.session()
            session.dataTask(with: origin.url()).resume()
            await recorder.completed.reaches(1)
            #expect(realms.all == [nil])
            await recorder.expectOrder(session)
        }
    }

    @Test("a Basic challenge without a realm is answered with the credential of the host's name as realm")
    func withoutRealm() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                request.headers.contains(.authorization)
                    ? .ok("open") : .status(.unauthorized, headers: [.wwwAuthenticate: "Basic"])
            }
            let storage = URLCredentialStorage()
            let host = try #require(origin.url().host())
            for (realm, isAnswered) in [("other", false), (host, true)] {
                let space = URLProtectionSpace(
                    host: host, port: Int(origin.port), protocol: "http", realm: realm,
                    authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
                storage.setDefaultCredential(credential("ada"), for: space)
                let configuration = URLSessionConfiguration.ephemeral
                configuration.urlCredentialStorage = storage
                let session = URLSession(configuration: configuration)
                let (data, _) = try await session.data(from: origin.url())
                #expect((data == Data("open".utf8)) == isAnswered, "\(realm)")
                session.invalidateAndCancel()
            }
        }
    }
}
