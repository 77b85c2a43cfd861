// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestChildren
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingAgent
@testable import URLLoadingCompatibility

/// Checklist 89, 139, 147: challenges of background transfers, while the program runs and while it does not.
@Suite(.timeLimit(.minutes(2))) struct ChallengeRows {
    static let credential = Credential(user: "ada", password: "secret")
    static let authorization = "Basic YWRhOnNlY3JldA=="

    /// Serves the film to requests with the right credential; others get a 401.
    static func guarded(_ origin: HTTPTestServer) {
        origin.route("/film") { request in
            guard request.headers[.authorization] == authorization else {
                return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"films\""])
            }
            return Film.answer(request)
        }
    }

    /// Challenges that were put to a decision.
    final class Asked: Sendable {
        private let list = Lock<[Challenge]>([])
        var challenges: [Challenge] { list.withLock { $0 } }
        var methods: [String] { challenges.map(\.protectionSpace.method.name) }

        func decisions(_ answer: @escaping @Sendable (Challenge) async throws -> ChallengeDecision) -> Decisions {
            var decisions = Decisions()
            decisions.challenge = Decision { [self] challenge in
                list.withLock { $0.append(challenge) }
                return try await answer(challenge)
            }
            return decisions
        }
    }

    static func session(_ rig: AgentRig, _ decisions: Decisions?) -> Session {
        var configuration = Configuration.background("org.example.sync")
        configuration.background?.socket = rig.socket
        configuration.storageDirectory = URL(filePath: rig.folder + "/store")
        return Session(configuration, decisions: decisions)
    }

    /// Submits a download whose challenges a program decides, as a program that leaves at once.
    static func leave(_ rig: AgentRig, _ url: URL, to place: String? = nil) async throws {
        let program = try await rig.attach()
        try await program.download(url, to: place) { $0.challenges = .decision }
        program.close()
    }

    /// Waits until the transfers are in a state, seen beside the live session.
    static func reach(_ rig: AgentRig, _ condition: ([TransferRecord]) -> Bool) async throws {
        let link = try await rig.link()
        _ = try await link.request(
            .attach(.init(identifier: "org.example.sync", settings: [], secrets: [], observes: true)))
        try await eventuallyProcess { try await condition(link.transfers()) }
        link.close()
    }

    static func untilParked(_ rig: AgentRig, _ origin: HTTPTestServer) async throws {
        try await reach(rig) { $0.map(\.state) == [.parked] }
        try await origin.wait { $0.open == 0 }
    }

    static func withServer(_ use: (AgentRig, HTTPTestServer) async throws -> Void) async throws {
        let rig = AgentRig()
        let identity = try TestCertificateAuthority(commonName: "Unknown CA").issue()
        try await withHTTPTestServer(.init(tls: .init(identity))) { origin in
            origin.route("/film") { Film.answer($0) }
            try rig.start()
            try await use(rig, origin)
            await rig.kill(SIGTERM)
        }
    }

    // MARK: The program is there

    @Test("The session's decision answers the challenge of a transfer, whose request is then repeated (checklist 89)")
    func present() async throws {
        try await SurvivalRows.with { rig, origin in
            Self.guarded(origin)
            let asked = Asked()
            let session = Self.session(rig, asked.decisions { _ in .use(Self.credential) })
            let place = rig.folder + "/film.bin"
            let response = try await session.download(Request(url: origin.url("/film")), to: URL(filePath: place))
            #expect(response.status == .ok && Film.of(place) == Film.content)
            let challenge = try #require(asked.challenges.first)
            #expect(challenge.protectionSpace.realm == "films" && challenge.failureResponse?.status == .unauthorized)
            #expect(asked.methods == ["Basic"])
            await BackgroundSessionRows.end(session)
        }
    }

    @Test("A task's own decision answers before the session's, and the task has the event")
    func ofTheTask() async throws {
        try await SurvivalRows.with { rig, origin in
            Self.guarded(origin)
            let shared = Asked()
            let own = Asked()
            let session = Self.session(rig, shared.decisions { _ in .cancel })
            let task = session.downloadTask(
                Request(url: origin.url("/film")), background: BackgroundOptions(),
                decisions: own.decisions { _ in .use(Self.credential) })
            let events = task.events
            task.resume()
            var words: [String] = []
            for await event in events { if case .challenged = event { words.append("challenged") } }
            let file = try await task.value
            #expect(file.size == Int64(Film.content.count) && words == ["challenged"])
            #expect(own.methods == ["Basic"] && shared.methods.isEmpty)
            await BackgroundSessionRows.end(session)
        }
    }

    @Test("A decision that cancels or throws ends the transfer, without another attempt")
    func refusals() async throws {
        struct Locked: Error {}
        try await SurvivalRows.with { rig, origin in
            Self.guarded(origin)
            let asked = Asked()
            let session = Self.session(
                rig, asked.decisions { _ in if asked.challenges.count == 1 { return .cancel } else { throw Locked() } })
            for reason in [LoadError.Reason.cancelled, .decisionFailed] {
                let error = await #expect(throws: LoadError.self) {
                    let task = session.downloadTask(Request(url: origin.url("/film")))
                    task.resume()
                    _ = try await task.value
                }
                #expect(error?.reason == reason)
            }
            #expect(asked.challenges.count == 2 && origin.requests.count == 2)
            await BackgroundSessionRows.end(session)
        }
    }

    @Test("A server that only the decision trusts is used once it was accepted; another transfer asks again")
    func serverTrust() async throws {
        try await Self.withServer { rig, origin in
            let asked = Asked()
            let session = Self.session(
                rig, asked.decisions { challenge in challenge.serverTrust.map { .accept($0) } ?? .cancel })
            for _ in 0..<2 {
                let task = session.downloadTask(Request(url: origin.url("/film")))
                task.resume()
                #expect(try await task.value.size == Int64(Film.content.count))
            }
            #expect(asked.methods == ["ServerTrust", "ServerTrust"])
            let trust = try #require(asked.challenges.first?.serverTrust)
            #expect(!trust.isTrusted && trust.certificates.first?.issuer.contains("Unknown CA") == true)
            await BackgroundSessionRows.end(session)
        }
    }

    @Test(
        "A client certificate that a decision presents is used by the agent, and its key is not stored (checklist 66)")
    func identity() async throws {
        let rig = AgentRig()
        let authority = try TestCertificateAuthority(commonName: "Staff CA")
        let ada = try authority.issue(.init(names: [], commonName: "ada", isForServers: false))
        var tls = HTTPTestServer.TLS(try authority.issue())
        tls.clientRootsPEM = authority.pem
        try await withHTTPTestServer(.init(tls: tls)) { origin in
            origin.route("/film") { Film.answer($0) }
            try rig.start()
            let identity = try ClientIdentity(certificatePEM: ada.certificatePEM, keyPEM: ada.keyPEM)
            let asked = Asked()
            let session = Self.session(
                rig,
                asked.decisions { challenge in
                    guard challenge.clientCertificate == nil else { return .present(identity) }
                    return challenge.serverTrust.map { .accept($0) } ?? .cancel
                })
            let task = session.downloadTask(Request(url: origin.url("/film")))
            task.resume()
            #expect(try await task.value.size == Int64(Film.content.count))
            #expect(Set(asked.methods) == ["ServerTrust", "ClientCertificate"])
            #expect(origin.requests.first?.tls?.clientSubject?.contains("ada") == true)
            await BackgroundSessionRows.end(session)
            await rig.kill()
            // The key is the last value of the object.
            let sent = try #require(TransferIdentity(identity).map { TransferCoding.encode($0) })
            let key = try #require(String(decoding: sent, as: UTF8.self).split(separator: "\"").dropLast().last)
            for name in ["journal.sqlite", "journal.sqlite-wal"] {
                let stored = (try? Data(contentsOf: URL(filePath: "\(rig.state)/\(name)"))) ?? Data()
                #expect(key.count > 100 && stored.range(of: Data(key.utf8)) == nil)
            }
        }
    }

    // MARK: The program is away

    @Test(
        "A challenge parks the transfer while the program is away, also across restarts of the agent (checklist 89)"
    )
    func away() async throws {
        try await SurvivalRows.with { rig, origin in
            Self.guarded(origin)
            let place = rig.folder + "/film.bin"
            try await Self.leave(rig, origin.url("/film"), to: place)
            try await Self.untilParked(rig, origin)
            await rig.kill()
            try rig.start()
            try await Self.untilParked(rig, origin)
            #expect(origin.requests.count == 1)
            let asked = Asked()
            let session = Self.session(rig, asked.decisions { _ in .use(Self.credential) })
            let finished = Atomic(0)
            try await session.background.handleEvents {
                finished.add(1, ordering: .relaxed)
            } _: { event in
                guard case .downloaded = event.result else { return _ = Issue.record("\(event)") }
                Task { session.finishTasksAndInvalidate() }
            }
            #expect(asked.methods == ["Basic"] && Film.of(place) == Film.content)
            #expect(finished.load(ordering: .relaxed) == 1)
            await session.invalidated()
        }
    }

    @Test("Pinning by a decision is not bypassed: a trusted server gets no request while the program is away")
    func pinned() async throws {
        let rig = AgentRig()
        let authority = try TestCertificateAuthority(commonName: "Known CA")
        try await withHTTPTestServer(.init(tls: .init(try authority.issue()))) { origin in
            origin.route("/film") { Film.answer($0) }
            try rig.start()
            let roots = String(decoding: authority.pem, as: UTF8.self)
            let program = try await rig.attach {
                $0.tls?.roots = "pem"; $0.tls?.rootsText = roots
            }
            try await program.download(origin.url("/film")) { $0.challenges = .decision }
            program.close()
            try await Self.untilParked(rig, origin)
            // A program without a decision about the transfer does not release it.
            let undecided = Self.session(rig, nil)
            #expect(try await undecided.background.transfers.count == 1)
            await BackgroundSessionRows.end(undecided)
            try await Self.untilParked(rig, origin)
            #expect(origin.requests.isEmpty)

            let asked = Asked()
            var configuration = Configuration.background("org.example.sync")
            configuration.background?.socket = rig.socket
            configuration.storageDirectory = URL(filePath: rig.folder + "/store")
            configuration.tls.trustRoots = .pem(roots)
            let session = Session(configuration, decisions: asked.decisions { _ in .rejectProtectionSpace })
            try await session.background.handleEvents { event in
                guard case .failed(let error) = event.result else { return _ = Issue.record("\(event)") }
                #expect(error.reason == .certificateRefused)
                Task { session.finishTasksAndInvalidate() }
            }
            #expect(asked.challenges.first?.serverTrust?.isTrusted == true && origin.requests.isEmpty)
            await session.invalidated()
            await rig.kill(SIGTERM)
        }
    }

    @Test("A program that is killed while it is asked is asked again when it is back (checklist 89)")
    func killedWhileAsked() async throws {
        try await SurvivalRows.with { rig, origin in
            Self.guarded(origin)
            let (place, said) = (rig.folder + "/film.bin", rig.folder + "/said")
            let first = try ChildProcess(
                KillRows.program,
                [rig.socket, "org.example.sync", "ask", origin.url("/film").absoluteString, place],
                files: .init(output: said, errors: rig.folder + "/errors"))
            try await eventuallyProcess { (try? FileReader.text(said))?.contains("asked Basic") == true }
            first.send(SIGKILL)
            _ = await first.wait()
            try await Self.untilParked(rig, origin)
            let second = try ChildProcess(
                KillRows.program, [rig.socket, "org.example.sync", "answer", rig.folder + "/handled", "0"],
                files: .init(output: said + "2", errors: rig.folder + "/errors"))
            try await eventuallyFile(place)
            #expect(Film.of(place) == Film.content)
            _ = await second.wait()
            #expect(try FileReader.text(said + "2").contains("asked Basic"))
        }
    }

    @Test("A program that is away is started for a challenge (checklist 139)")
    func woken() async throws {
        try await SurvivalRows.with { rig, origin in
            Self.guarded(origin)
            let mark = rig.folder + "/woken"
            let program = try await rig.attach {
                $0.waking = WakingOrder(arguments: ["/usr/bin/touch", mark])
            }
            try await program.download(origin.url("/film")) { $0.challenges = .decision }
            program.close()
            try await eventuallyFile(mark)
            #expect(origin.requests.count == 1)
        }
    }

    // MARK: The classic API

    /// A delegate that answers challenges.
    final class Judge: NSObject, URLSessionDownloadDelegate {
        let calls = Watched<[String]>([])
        func note(_ call: String) { calls.change { if $0.last != call { $0.append(call) } } }
        func has(_ call: String) async throws {
            try await calls.wait { $0.contains(call) }
        }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            note("trust")
            let trust = challenge.protectionSpace.serverTrust
            completionHandler(.useCredential, trust.map { URLCredential(trust: $0) })
        }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            note("login \(challenge.protectionSpace.realm ?? "")")
            completionHandler(
                .useCredential, URLCredential(user: "ada", password: "secret", persistence: .forSession))
        }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            note("redirect")
            completionHandler(nil)
        }
        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo file: URL) {
            note("file \(Film.of(file.path) == Film.content)")
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            note(error == nil ? "complete" : "failed \(error.map { "\($0)" } ?? "")")
        }
        func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { note("finished") }
        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { note("invalid") }

        func session(_ rig: AgentRig) -> URLSession {
            URLSession(configuration: ClassicBackgroundRows.configuration(rig), delegate: self, delegateQueue: nil)
        }
    }

    @Test("A delegate answers the challenges of a background task, for a login and a server (checklist 89)")
    func classicPresent() async throws {
        try await Self.withServer { rig, origin in
            Self.guarded(origin)
            let judge = Judge()
            let session = judge.session(rig)
            session.downloadTask(with: origin.url("/film")).resume()
            try await judge.has("complete")
            #expect(judge.calls.value == ["trust", "login films", "file true", "complete"])
            session.finishTasksAndInvalidate()
            try await judge.has("invalid")
        }
    }

    @Test(
        "The delegate of the next session is asked what came while there was none, and then told the end (checklist 89)"
    )
    func classicBack() async throws {
        try await SurvivalRows.with { rig, origin in
            Self.guarded(origin)
            try await Self.leave(rig, origin.url("/film"))
            try await Self.untilParked(rig, origin)
            let judge = Judge()
            let session = judge.session(rig)
            try await judge.has("complete")
            try await judge.has("finished")
            let calls = judge.calls.value
            #expect(calls.first == "login films" && calls.filter { $0 == "finished" }.count == 1)
            #expect(calls.contains("file true"))
            session.finishTasksAndInvalidate()
            try await judge.has("invalid")
        }
    }

    @Test("A delegate without a method for challenges is found out once; then no transfer waits for the program")
    func withoutMethod() async throws {
        let rig = AgentRig()
        let authority = try TestCertificateAuthority(commonName: "Known CA")
        try await withHTTPTestServer(.init(tls: .init(try authority.issue()))) { origin in
            origin.route("/film") { Film.answer($0) }
            origin.route("/later") { Film.answer($0) }
            try rig.start()
            let roots = String(decoding: authority.pem, as: UTF8.self)
            let receiver = ClassicBackgroundRows.Receiver()
            let (socket, folder) = (rig.socket, rig.folder)
            let session = receiver.session(rig) { configuration in
                configuration.adjust {
                    $0.background?.socket = socket
                    $0.storageDirectory = URL(filePath: folder + "/store")
                    $0.tls.trustRoots = .pem(roots)
                }
            }
            let later = session.downloadTask(with: origin.url("/later"))
            later.earliestBeginDate = Date(timeIntervalSinceNow: 3600)
            later.resume()
            try await eventuallyProcess { try await !ClassicBackgroundRows.listed(rig).isEmpty }
            let task = session.downloadTask(with: origin.url("/film"))
            task.taskDescription = "film"
            task.resume()
            try await receiver.has("complete film")
            // The one that was queued before is no longer decided by a delegate either.
            await rig.kill(SIGTERM)
            let journal = try SQLiteJournal(folder: rig.state)
            let orders = try await journal.claim(.ready(atMost: .max)).transfers.compactMap {
                TransferCoding.decode(TransferOrder.self, $0.order)
            }
            #expect(orders.contains { $0.earliestBegin != nil } && orders.allSatisfy { $0.challenges == nil })
            journal.finish()
        }
    }

    // MARK: Redirects

    @Test("Redirects of background transfers are followed without a decision and without a delegate's (checklist 147)")
    func redirects() async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/old") { _ in .redirect("/film") }
            var decisions = Decisions()
            decisions.redirect = Decision { _ in
                Issue.record("a redirect decision was asked")
                return .cancel
            }
            let session = Self.session(rig, decisions)
            let task = session.downloadTask(Request(url: origin.url("/old")))
            task.resume()
            #expect(try await task.value.size == Int64(Film.content.count))
            await BackgroundSessionRows.end(session)

            let judge = Judge()
            let classic = judge.session(rig)
            classic.downloadTask(with: origin.url("/old")).resume()
            try await judge.has("complete")
            #expect(judge.calls.value == ["file true", "complete"])
            classic.finishTasksAndInvalidate()
            try await judge.has("invalid")
        }
    }
}
