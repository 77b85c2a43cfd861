// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Checklist 66 to 88 with delegates.
@Suite(.timeLimit(.minutes(4)))
struct ChallengeRows {
    /// Requires the user ada with the password secret.
    private func guarded(_ origin: HTTPTestServer, offers: [String] = ["Basic realm=\"staff\""]) {
        let right = "Basic " + Data("ada:secret".utf8).base64EncodedString()
        origin.route("/") { request in
            guard request.headers[.authorization] != right else { return .ok("in") }
            var headers = Headers()
            for offer in offers { headers.append(.wwwAuthenticate, offer) }
            return .status(.unauthorized, headers: headers, body: .bytes(Array("who?".utf8)))
        }
    }

    @Test(
        "a Basic challenge goes to the task's delegate and proposes the refused credential (checklist 68, 71-74, 78)"
    )
    func basic() async throws {
        try await withHTTPTestServer(serving: { guarded($0) }) { origin in
            let recorder = Recorder()
            let seen = Box<URLAuthenticationChallenge>()
            recorder.onChallenge = { challenge, answer in
                seen.add(challenge)
                let password = challenge.previousFailureCount == 0 ? "wrong" : "secret"
                answer(.useCredential, URLCredential(user: "ada", password: password, persistence: .none))
            }
            let session = recorder.session()
            let task = session.dataTask(with: origin.url())
            await recorder.complete(task)
            #expect(
                recorder.words(task) == "challenge response data complete"
                    && recorder.record(task).data == Data("in".utf8))
            let challenges = seen.all
            #expect(challenges.map(\.previousFailureCount) == [0, 1])
            let space = try #require(challenges.first).protectionSpace
            #expect(space.authenticationMethod == NSURLAuthenticationMethodHTTPBasic && space.realm == "staff")
            #expect(
                space.host == "127.0.0.1" && space.protocol == "http" && !space.isProxy()
                    && !space.receivesCredentialSecurely)
            #expect(challenges[0].proposedCredential == nil)
            #expect((challenges[0].failureResponse as? HTTPURLResponse)?.statusCode == 401)
            await recorder.expectOrder(session)
        }
    }

    @Test("the sender and the completion handler both answer; the first answer counts (checklist 71)")
    func sender() async throws {
        try await withHTTPTestServer(serving: { guarded($0) }) { origin in
            let recorder = Recorder()
            recorder.onChallenge = { challenge, answer in
                challenge.sender?.use(
                    URLCredential(user: "ada", password: "secret", persistence: .none), for: challenge)
            }
            let session = recorder.session()
            let task = session.dataTask(with: origin.url())
            await recorder.complete(task)
            #expect(recorder.record(task).data == Data("in".utf8))
            await recorder.expectOrder(session)
        }
    }

    @Test(
        "default handling and a missing credential deliver the 401; cancelling ends the task (checklist 75, 77, 83)",
        arguments: [0, 1, 2])
    func otherAnswers(_ which: Int) async throws {
        try await withHTTPTestServer(serving: { guarded($0) }) { origin in
            let recorder = Recorder()
            recorder.onChallenge = { challenge, answer in
                switch which {
                case 0: answer(.performDefaultHandling, nil)
                case 1: answer(.useCredential, nil)
                default: answer(.cancelAuthenticationChallenge, nil)
                }
            }
            let session = recorder.session()
            let task = session.dataTask(with: origin.url())
            await recorder.complete(task)
            if which == 2 {
                #expect(recorder.record(task).errors.first??.code == .cancelled)
            } else {
                #expect(
                    (task.response as? HTTPURLResponse)?.statusCode == 401
                        && recorder.record(task).data == Data("who?".utf8))
            }
            await recorder.expectOrder(session)
        }
    }

    @Test("a rejected protection space is followed by the next one of the same response (checklist 76)")
    func rejected() async throws {
        try await withHTTPTestServer { origin in
            guarded(origin, offers: ["Digest realm=\"staff\", nonce=\"n\", qop=\"auth\"", "Basic realm=\"staff\""])
            let recorder = Recorder()
            let methods = Box<String>()
            recorder.onChallenge = { challenge, answer in
                methods.add(challenge.protectionSpace.authenticationMethod)
                guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic else {
                    return answer(.rejectProtectionSpace, nil)
                }
                answer(.useCredential, URLCredential(user: "ada", password: "secret", persistence: .none))
            }
            let session = recorder.session()
            let task = session.dataTask(with: origin.url())
            await recorder.complete(task)
            #expect(methods.all == [NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodHTTPBasic])
            #expect(recorder.record(task).data == Data("in".utf8))
            await recorder.expectOrder(session)
        }
    }

    @Test("a dropped challenge handler ends the task, and is reported (checklist 55)")
    func dropped() async throws {
        try await withHTTPTestServer(serving: { guarded($0) }) { origin in
            let recorder = Recorder()
            recorder.onChallenge = { _, _ in }
            let session = recorder.session()
            let task = session.dataTask(with: origin.url())
            let reports = MisuseReports(task)
            await recorder.complete(task)
            #expect(recorder.record(task).errors.first??.code != nil)
            #expect(reports.all.count == 1 && reports.all[0].contains("didReceive challenge"))
            await recorder.expectOrder(session)
        }
    }

    // MARK: Connections

    /// Answers challenges for the session.
    final class Trusting: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        let asked = Box<String>(), ended = Counter()
        let trusts: Bool
        init(trusts: Bool) { self.trusts = trusts }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            asked.add("session \(challenge.protectionSpace.authenticationMethod)")
            answer(challenge, completionHandler)
        }

        func answer(
            _ challenge: URLAuthenticationChallenge,
            _ completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            guard trusts, let trust = challenge.protectionSpace.serverTrust else {
                return completionHandler(.cancelAuthenticationChallenge, nil)
            }
            completionHandler(.useCredential, URLCredential(trust: trust))
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            ended.add()
        }
    }

    /// Answers challenges for tasks.
    final class TaskTrusting: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
        let asked = Box<String>(), ended = Counter()

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            asked.add("task \(challenge.protectionSpace.authenticationMethod)")
            guard let trust = challenge.protectionSpace.serverTrust else {
                return completionHandler(.performDefaultHandling, nil)
            }
            completionHandler(.useCredential, URLCredential(trust: trust))
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            ended.add()
        }
    }

    private func withSecureOrigin(_ use: (HTTPTestServer) async throws -> Void) async throws {
        let authority = try TestCertificateAuthority(commonName: "Untrusted root")
        try await withHTTPTestServer(.init(tls: .init(try authority.issue()))) { origin in
            origin.route("/") { _ in .ok("in") }
            try await use(origin)
        }
    }

    @Test(
        "the session's delegate decides about server trust, once for each connection (checklist 66, 81, 82)",
        arguments: [true, false])
    func trust(_ trusts: Bool) async throws {
        try await withSecureOrigin { origin in
            let delegate = Trusting(trusts: trusts)
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            let result = await session.result(URLRequest(url: origin.url()))
            #expect(result.data == (trusts ? Data("in".utf8) : nil))
            if trusts {
                let again = await session.result(URLRequest(url: origin.url()))
                #expect(again.data == Data("in".utf8))
                #expect(delegate.asked.all == ["session \(NSURLAuthenticationMethodServerTrust)"])
            } else {
                #expect(result.error != nil)
            }
            session.invalidateAndCancel()
        }
    }

    @Test("challenges for a session delegate without the method go to the task's delegate (checklist 67, 69)")
    func taskTrust() async throws {
        try await withSecureOrigin { origin in
            let delegate = TaskTrusting()
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            let result = await session.result(URLRequest(url: origin.url()))
            #expect(
                result.data == Data("in".utf8) && delegate.asked.all == ["task \(NSURLAuthenticationMethodServerTrust)"]
            )
            session.invalidateAndCancel()
            // A task's own delegate, in a session without a delegate.
            let own = TaskTrusting()
            let plain = URLSession(configuration: .ephemeral)
            let (data, _) = try await plain.data(from: origin.url(), delegate: own)
            #expect(data == Data("in".utf8) && own.asked.all.count == 1)
            plain.invalidateAndCancel()
        }
    }

    @Test("in a session without a delegate, a server trusted by one task's delegate is not trusted for other tasks")
    func trustOfOneTask() async throws {
        try await withSecureOrigin { origin in
            let plain = URLSession(configuration: .ephemeral)
            let own = TaskTrusting()
            let (data, _) = try await plain.data(from: origin.url(), delegate: own)
            #expect(data == Data("in".utf8))
            let result = await plain.result(URLRequest(url: origin.url()))
            #expect(result.data == nil && result.error != nil)
            let (again, _) = try await plain.data(from: origin.url(), delegate: own)
            #expect(again == Data("in".utf8) && own.asked.all.count == 1)
            // A delegate that is set later.
            let other = TaskTrusting()
            let box = Counter()
            let task = plain.dataTask(with: origin.url()) { data, _, error in
                #expect(data == Data("in".utf8), "\(String(describing: error))")
                box.add()
            }
            task.delegate = other
            task.resume()
            await box.reaches(1)
            #expect(other.asked.all.count == 1 && own.asked.all.count == 1)
            let last = await plain.result(URLRequest(url: origin.url()))
            #expect(last.data == nil && last.error != nil)
            plain.invalidateAndCancel()
        }
    }

    @Test("resumed downloads and WebSockets rely on their own delegate's trust only, too")
    func trustOfOthers() async throws {
        let authority = try TestCertificateAuthority(commonName: "Untrusted root")
        try await withHTTPTestServer(.init(tls: .init(try authority.issue()))) { origin in
            origin.webSocket("/echo", .echo)
            let content = Data(count: 400_000)
            origin.route("/", faults: [.init(.responseBody(after: 300_000), .cut)]) { _ in
                .ok(.bytes([UInt8](content)), headers: [.etag: "\"one\""])
            }
            let plain = URLSession(configuration: .ephemeral)
            let own = TaskTrusting()
            let error = await #expect(throws: URLError.self) {
                _ = try await plain.download(from: origin.url(), delegate: own)
            }
            let data = try #require(error?.downloadTaskResumeData)
            origin.route("/") { _ in .ok(.bytes([UInt8](content))) }
            // Another delegate's connection is open; only that delegate trusts it.
            await #expect(throws: URLError.self) { _ = try await plain.download(resumeFrom: data) }
            let asked = own.asked.all.count
            let other = TaskTrusting()
            let (file, _) = try await plain.download(resumeFrom: data, delegate: other)
            try FileManager.default.removeItem(at: file)
            #expect(other.asked.all.count == 1 && own.asked.all.count == asked)
            func echoes(_ delegate: TaskTrusting?) async -> Bool {
                var address = URLComponents(url: origin.url("/echo"), resolvingAgainstBaseURL: false)
                address?.scheme = "wss"
                guard let url = address?.url else { return false }
                let socket = plain.webSocketTask(with: url)
                socket.delegate = delegate
                socket.resume()
                defer { socket.cancel() }
                do {
                    try await socket.send(.string("hello"))
                    if case .string("hello") = try await socket.receive() { return true }
                    return false
                } catch { return false }
            }
            let third = TaskTrusting()
            let first = await echoes(third)
            let none = await echoes(nil)
            let again = await echoes(third)
            #expect(first && !none && again && third.asked.all.count >= 1)
            plain.invalidateAndCancel()
        }
    }

    @Test("without a delegate an unknown issuer is refused")
    func untrusted() async throws {
        try await withSecureOrigin { origin in
            let session = URLSession(configuration: .ephemeral)
            let result = await session.result(URLRequest(url: origin.url()))
            #expect(
                result.error?.code == .serverCertificateUntrusted
                    || result.error?.code == .serverCertificateHasUnknownRoot)
            session.invalidateAndCancel()
        }
    }

    // MARK: Storage

    @Test("the session's storage is searched; a credential that was accepted is stored (checklist 83, 86, 87)")
    func storage() async throws {
        try await withHTTPTestServer(serving: { guarded($0) }) { origin in
            let port = try #require(origin.url().port)
            let space = URLProtectionSpace(
                host: "127.0.0.1", port: port, protocol: "http", realm: "staff",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            let storage = URLCredentialStorage()
            storage.setDefaultCredential(
                URLCredential(user: "ada", password: "secret", persistence: .forSession), for: space)
            storage.set(URLCredential(user: "bob", password: "other", persistence: .forSession), for: space)
            #expect(storage.defaultCredential(for: space)?.user == "ada")
            #expect(Set((storage.credentials(for: space) ?? [:]).keys) == ["ada", "bob"])
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCredentialStorage = storage
            let session = URLSession(configuration: configuration)
            let result = await session.result(URLRequest(url: origin.url()))
            #expect(result.data == Data("in".utf8))
            storage.remove(URLCredential(user: "ada", password: "secret", persistence: .forSession), for: space)
            #expect(storage.allCredentials[space]?.keys.sorted() == ["bob"])
            session.invalidateAndCancel()
        }
    }

    @Test("a user name with a colon, which Basic cannot send, ends the task at once and says why")
    func colon() async throws {
        try await withHTTPTestServer(serving: { guarded($0) }) { origin in
            for (user, obstacle) in [("a:da", "colon"), ("a\u{7}da", "control character")] {
                let recorder = Recorder()
                let asked = Counter()
                recorder.onChallenge = { _, answer in
                    asked.add()
                    answer(.useCredential, URLCredential(user: user, password: "secret", persistence: .none))
                }
                let session = recorder.session()
                let task = session.dataTask(with: origin.url())
                await recorder.complete(task)
                let error = task.error as? URLError
                #expect(asked.value == 1 && error?.code == .userAuthenticationRequired)
                let words = "\(error?.userInfo[NSDebugDescriptionErrorKey] ?? "")"
                #expect(words.contains(obstacle) && !words.contains(user) && !words.contains("secret"))
                await recorder.expectOrder(session)
            }
        }
    }

    @Test("a Basic realm in single quotes or without any is a challenge; a Digest one is none: the 401 is the response")
    func singleQuotes() async throws {
        try await withHTTPTestServer { origin in
            for (offer, isAsked) in [
                ("Basic realm='staff'", true), ("Basic realm='the staff'", true), ("Basic realm=My Router", true),
                ("Digest realm='the staff', nonce=x", false),
            ] {
                guarded(origin, offers: [offer])
                let recorder = Recorder()
                recorder.onChallenge = { _, answer in
                    answer(.useCredential, URLCredential(user: "ada", password: "secret", persistence: .none))
                }
                let session = recorder.session()
                let task = session.dataTask(with: origin.url())
                await recorder.complete(task)
                #expect(recorder.words(task).hasPrefix("challenge") == isAsked)
                #expect((task.response as? HTTPURLResponse)?.statusCode == (isAsked ? 200 : 401))
                #expect(recorder.record(task).data == Data((isAsked ? "in" : "who?").utf8))
                await recorder.expectOrder(session)
            }
        }
    }
}
