// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingAgent

/// Checklist 5, 10, 136-145, 160: background sessions in the asynchronous shape.
@Suite(.timeLimit(.minutes(2))) struct BackgroundSessionRows {
    static func session(
        _ rig: AgentRig, _ identifier: String = "org.example.sync", _ change: (inout Configuration) -> Void = { _ in }
    ) -> Session {
        var configuration = Configuration.background(identifier)
        configuration.background?.socket = rig.socket
        configuration.storageDirectory = URL(filePath: rig.folder + "/store")
        change(&configuration)
        return Session(configuration)
    }

    /// Ends a session, and returns when another one may have its identifier.
    static func end(_ session: Session) async {
        session.invalidateAndCancel()
        await session.invalidated()
    }

    @Test(
        "Awaited downloads, with a destination and without, run in the agent and deliver their files (checklist 5, 137)"
    )
    func downloads() async throws {
        try await SurvivalRows.with { rig, origin in
            let session = Self.session(rig)
            let place = rig.folder + "/film.bin"
            let response = try await session.download(Request(url: origin.url("/film")), to: URL(filePath: place))
            #expect(response.status == .ok && Film.of(place) == Film.content)
            let moved = rig.folder + "/moved.bin"
            try await session.download(Request(url: origin.url("/film"))) { file in
                #expect(file.size == Int64(Film.content.count))
                try file.move(to: URL(filePath: moved))
            }
            #expect(Film.of(moved) == Film.content)
            #expect(origin.requests.count == 2)
            let found1 = try await session.background.transfers
            #expect(found1.isEmpty)
            await Self.end(session)
            try await eventuallyProcess { rig.spool.isEmpty }
            #expect(PrivateFolder.names(rig.state + "/delivered").isEmpty)
        }
    }

    @Test("A token resumes a download in the agent; one that is too large for a message fails alone, and others go on")
    func resumedByToken() async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/cut", faults: [.init(.responseBody(after: 1_200_000), .close)]) { Film.answer($0) }
            var token: ResumeToken?
            do throws(LoadError) {
                _ = try await Session(.ephemeral).download(
                    Request(url: origin.url("/cut")), to: URL(filePath: rig.folder + "/cut.bin"))
            } catch { token = error.resumeToken }
            let large = try ResumeToken(try #require(token).dataWithContent())
            #expect(large.data.count > 1 << 20)
            let session = Self.session(rig)
            // The agent goes on where the token ends.
            origin.route("/cut") { Film.answer($0) }
            let resumed = try await session.downloadTask(
                resuming: try #require(token), options: .init(destination: URL(filePath: rig.folder + "/resumed.bin"))
            ).resumed().value
            #expect(resumed.size == Int64(Film.content.count) && Film.of(resumed.url.path()) == Film.content)
            #expect(origin.requests.last?.headers[.range]?.hasPrefix("bytes=1") == true)
            var options = BackgroundOptions(label: "later")
            options.earliestBegin = Date(timeIntervalSinceNow: 3600)
            let place = DownloadOptions(destination: URL(filePath: rig.folder + "/later.bin"))
            let later = session.downloadTask(Request(url: origin.url("/film")), options: place, background: options)
            later.resume()
            try await later.accepted
            let waiting = Task { try await later.value }
            let refused = await #expect(throws: LoadError.self) {
                _ = try await session.downloadTask(resuming: large, options: place).resumed().value
            }
            #expect(refused?.detail?.contains("larger than 1 MiB") == true, "\(refused as Any)")
            for transfer in try await session.background.transfers { try await transfer.cancel() }
            let ended = await #expect(throws: LoadError.self) { _ = try await waiting.value }
            #expect(ended?.reason == .cancelled)
            await Self.end(session)
        }
    }

    /// The setting by which a transfer fails on an error status.
    enum Requirement: CaseIterable, Sendable { case none, ofDownload, ofTransfer }

    @Test("An error status fails the transfers that require success, and no others", arguments: Requirement.allCases)
    func requiresSuccess(_ requirement: Requirement) async throws {
        try await SurvivalRows.with { rig, origin in
            let page = Array("no such film".utf8)
            origin.route("/missing") { _ in .status(.notFound, body: .bytes(page)) }
            let session = Self.session(rig)
            let place = URL(filePath: rig.folder + "/page")
            var options = DownloadOptions(destination: place)
            options.requiresSuccess = requirement == .ofDownload
            var background = BackgroundOptions(label: "page")
            background.requiresSuccess = requirement == .ofTransfer
            let missing = Request(url: origin.url("/missing"))
            let download = session.downloadTask(missing, options: options, background: background).resumed()
            if requirement == .none {
                _ = try await download.value
                #expect(Film.of(place.path()) == page)
            } else {
                let error = await #expect(throws: LoadError.self) { _ = try await download.value }
                #expect(error?.reason == .unacceptableStatus)
                #expect(Film.of(place.path()) == nil)
            }
            let source = URL(filePath: rig.folder + "/source.txt")
            try Data("text".utf8).write(to: source)
            let put = Request(url: origin.url("/missing"), method: .put)
            let upload = session.uploadTask(put, fromFile: source, background: background).resumed()
            if requirement == .ofTransfer {
                let error = await #expect(throws: LoadError.self) { _ = try await upload.value }
                #expect(error?.reason == .unacceptableStatus)
            } else {
                let answer = try await upload.value
                #expect(Array(answer) == page)
            }
            await Self.end(session)
        }
    }

    @Test("A response whose fields do not fit a message of the agent arrives without them")
    func largeFields() async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/fields") { _ in
                .ok("content", headers: ["X-Large": String(repeating: "a", count: 900_000)])
            }
            let session = Self.session(rig) { $0.limits.headSize = 2 << 20 }
            let place = rig.folder + "/fields.txt"
            let response = try await session.download(Request(url: origin.url("/fields")), to: URL(filePath: place))
            #expect(response.status == .ok && response.http?.headers.isEmpty == true)
            #expect(Film.of(place) == Array("content".utf8))
            await Self.end(session)
        }
    }

    @Test("A cancelled caller does not wait for an agent that is stopped, and its transfer is cancelled later")
    func stoppedAgent() async throws {
        try await SurvivalRows.with { rig, origin in
            let session = Self.session(rig)
            let before = try await session.background.transfers
            #expect(before.isEmpty && kill(rig.process, SIGSTOP) == 0)
            origin.route("/held", faults: [.init(.responseBody(after: 300_000), .stall)]) { Film.answer($0) }
            let request = Request(url: origin.url("/held"))
            let calls = [
                Task { _ = try await session.background.download(request) },
                Task { _ = try await session.background.transfers },
                Task { _ = try await session.background.identifiers },
            ]
            // Within that time the submission is on its way to the agent, on a machine that is not too busy.
            try await Task.sleep(for: .milliseconds(500))
            for call in calls {
                call.cancel()
                let error = await #expect(throws: LoadError.self) { try await call.value }
                #expect(error?.reason == .cancelled)
            }
            #expect(kill(rig.process, SIGCONT) == 0)
            try await eventuallyProcess {
                let transfers = try await session.background.transfers
                return transfers.allSatisfy { $0.error?.reason == .cancelled }
            }
            await Self.end(session)
        }
    }

    @Test("A stop ends the look at the files of an order")
    func stoppedLook() async throws {
        let rig = AgentRig()
        let request = Request(url: try #require(URL(string: "http://example.org/")))
        var upload = TransferOrder(.upload, request, created: 0)
        upload.source = rig.folder + "/source"
        try Data("content".utf8).write(to: URL(filePath: rig.folder + "/source"))
        let (order, session, handle) = (upload, Session(.ephemeral), LoadHandle(idle: nil, resource: nil))
        handle.stop(.cancelled)
        let error = await #expect(throws: LoadError.self) {
            _ = try await order.prepared(request, session.core, handle)
        }
        #expect(error?.reason == .cancelled)
    }

    @Test("A session that is invalidated while it connects to the agent keeps no connection")
    func invalidatedWhileConnecting() async throws {
        let rig = AgentRig()
        let (listener, token) = (try LocalListener(path: rig.socket), StopToken())
        let session = Self.session(rig)
        let asking = Task { try await session.background.transfers.count }
        let channel = AgentChannel(try await listener.accept(token))
        let hello = try await channel.receive()
        guard case .hello? = hello?.message else { return _ = Issue.record("\(hello as Any)") }
        await Self.end(session)
        channel.send(.welcome(.init(version: 1, process: 1, survival: "", manner: "")), id: hello?.id ?? 0)
        let attachment = try await channel.receive()
        channel.send(.done, id: attachment?.id ?? 0)
        while try await channel.receive() != nil {}
        await #expect(throws: LoadError.self) { try await asking.value }
        listener.close()
    }

    @Test("A background task has the events, the counts and the metrics of another, and says when it was accepted")
    func taskEvents() async throws {
        try await SurvivalRows.with { rig, origin in
            let session = Self.session(rig)
            let place = rig.folder + "/film.bin"
            let task = session.downloadTask(
                Request(url: origin.url("/film")), options: DownloadOptions(destination: URL(filePath: place)),
                background: BackgroundOptions(label: "film"))
            let events = task.events
            task.resume()
            try await task.accepted
            var order = LoadEventOrder()
            for await event in events {
                let isLegal = order.accept(event)
                #expect(isLegal, "\(order)")
            }
            #expect(order.isComplete)
            let found2 = try await task.value
            #expect(found2.url.path() == place)
            #expect(task.snapshot.received == Int64(Film.content.count))
            let found3 = try await task.response
            #expect(found3.status == .ok)
            await Self.end(session)
        }
    }

    @Test(
        "A download in parts runs in the agent, by the option of the task or of the transfer", arguments: [true, false])
    func parts(isTask: Bool) async throws {
        try await SurvivalRows.with { rig, origin in
            // The first response is lost in its part: the other requests bring the rest.
            origin.route("/parts") { request in
                guard let range = request.headers[.range] else {
                    let head = "HTTP/1.1 200 OK\r\nContent-Length: \(Film.content.count)\r\nETag: \"one\"\r\n\r\n"
                    return .raw([.bytes(Array(head.utf8)), .bytes(Array(Film.content.prefix(200_000)))])
                }
                let ends = range.dropFirst(6).split(separator: "-").compactMap { Int($0) }
                guard ends.count == 2 else { return Film.answer(request) }
                return .status(
                    .partialContent,
                    headers: [
                        .etag: "\"one\"", .contentRange: "bytes \(ends[0])-\(ends[1])/\(Film.content.count)",
                    ], body: .bytes(Array(Film.content[ends[0]...ends[1]])))
            }
            let session = Self.session(rig)
            let place = rig.folder + "/parts.bin"
            let ranges = ParallelRanges(4, minimumPartSize: 64 << 10)
            if isTask {
                var options = DownloadOptions(destination: URL(filePath: place))
                options.parallelRanges = ranges
                _ = try await session.downloadTask(Request(url: origin.url("/parts")), options: options).resumed().value
            } else {
                var options = BackgroundOptions()
                options.parallelRanges = ranges
                try await session.background.download(
                    Request(url: origin.url("/parts")), to: URL(filePath: place), options: options)
                try await eventuallyFile(place)
            }
            #expect(Film.of(place) == Film.content)
            #expect(origin.requests.filter { $0.headers[.ifRange] == "\"one\"" }.count >= 3)
            await Self.end(session)
        }
    }

    @Test("An upload of a file delivers the response and its body, whatever its status (checklist 160)")
    func uploads() async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/put") { request in
                .status(.badRequest, body: .bytes(Array("got \(request.bodyCount)".utf8)))
            }
            let session = Self.session(rig)
            let source = rig.folder + "/source.bin"
            try Data(Film.content).write(to: URL(filePath: source))
            let (data, response) = try await session.upload(
                Request(url: origin.url("/put"), method: .put), from: .file(URL(filePath: source)))
            #expect(String(decoding: data, as: UTF8.self) == "got \(Film.content.count)")
            #expect(response.status == .badRequest)
            await Self.end(session)
        }
    }

    @Test("The response to an upload is delivered whole, or fails the transfer if the session does not collect so much")
    func largeAnswers() async throws {
        try await SurvivalRows.with { rig, origin in
            let answer = Film.content + Film.content
            origin.route("/put") { _ in .ok(.bytes(answer)) }
            let source = URL(filePath: rig.folder + "/source.bin")
            try Data("film".utf8).write(to: source)
            let session = Self.session(rig)
            let request = Request(url: origin.url("/put"), method: .post)
            let (data, _) = try await session.upload(request, from: .file(source))
            #expect(answer.count > 2 << 20 && [UInt8](data) == answer)

            try await session.background.upload(request, fromFile: source)
            try await eventuallyProcess {
                let transfers = try await session.background.transfers
                return transfers.allSatisfy { $0.state == .finished }
            }
            let handled = Lock<[UInt8]?>(nil)
            try await session.background.handleEvents { event in
                if case .uploaded(let data, _) = event.result { handled.withLock { $0 = [UInt8](data) } }
                Task { session.finishTasksAndInvalidate() }
            }
            #expect(handled.withLock { $0 } == answer)
            await session.invalidated()

            let small = Self.session(rig) { $0.limits.collectedBodySize = 2 << 20 }
            let before = origin.requests.count
            let error = await #expect(throws: LoadError.self) {
                _ = try await small.upload(request, from: .file(source))
            }
            #expect(error?.reason == .bodyTooLarge && error?.detail?.contains("the upload was answered") == true)
            #expect(origin.requests.count == before + 1)
            await Self.end(small)
        }
    }

    @Test("The cookies of a response are stored when the result is delivered, unless the request handles none")
    func cookies() async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/set") { request in
                .ok("x", headers: [.setCookie: request.headers["X-Name"].map { "\($0)=1; Path=/" } ?? ""])
            }
            let store = CookieStore()
            let session = Self.session(rig) { $0.cookies.storage = .store(store) }
            for name in ["first", "second"] {
                var request = Request(url: origin.url("/set"))
                request.headers["X-Name"] = name
                request.handlesCookies = name == "first"
                let task = session.downloadTask(request)
                task.resume()
                _ = try await task.value
            }
            let found = store.all.map(\.name)
            #expect(found == ["first"])
            await Self.end(session)
        }
    }

    @Test("An event is gone only when its handler has returned, and comes to the next session until then")
    func eventsAreAcknowledged() async throws {
        struct Stop: Error {}
        try await SurvivalRows.with { rig, origin in
            let first = Self.session(rig)
            for number in 0..<5 {
                try await first.background.download(
                    Request(url: origin.url("/film")),
                    options: BackgroundOptions(label: "\(number)", userData: Data([UInt8(number)])))
            }
            try await eventuallyProcess { try await first.background.transfers.allSatisfy { $0.state == .finished } }
            let seen = Lock<[String]>([])
            await #expect(throws: Stop.self) {
                try await first.background.handleEvents { event in
                    seen.withLock { $0.append(event.transfer.label) }
                    if seen.withLock({ $0.count }) == 3 { throw Stop() }
                }
            }
            await Self.end(first)
            let second = Self.session(rig)
            let found4 = try await second.background.transfers
            #expect(found4.count == 3)
            let rest = Lock<[String]>([])
            let handling = Task {
                try await second.background.handleEvents {
                    second.invalidateAndCancel()
                } _: { event in
                    guard case .downloaded(let file) = event.result else {
                        Issue.record("\(event)")
                        return
                    }
                    let found5 = try file.content(upTo: 2_000_000)
                    #expect(found5.count == Film.content.count)
                    rest.withLock { $0.append(event.transfer.label) }
                }
            }
            try await handling.value
            // The events are in the order of their ends, which is not that of the submissions.
            #expect(Set(seen.withLock { $0.prefix(2) } + rest.withLock { $0 }) == ["0", "1", "2", "3", "4"])
            #expect(rest.withLock { $0.first } == seen.withLock { $0.last })
            #expect(rest.withLock { $0.count } == 3)
        }
    }

    @Test("A task that was cancelled, suspended or resumed passes that on to the agent")
    func commands() async throws {
        try await SurvivalRows.with(stallsAfter: 300_000) { rig, origin in
            let session = Self.session(rig)
            let task = session.downloadTask(Request(url: origin.url("/film")))
            task.resume()
            try await origin.wait { $0.stalled == 1 }
            task.suspend()
            try await origin.wait { $0.open == 0 }
            let found6 = try await session.background.transfers
            #expect(found6.map(\.state) == [.suspended])
            origin.route("/film") { Film.answer($0) }
            task.resume()
            let found7 = try await task.value
            #expect(found7.size == Int64(Film.content.count))
            origin.route("/stall", faults: [.init(.responseBody(after: 1000), .stall)]) { Film.answer($0) }
            let other = session.downloadTask(Request(url: origin.url("/stall")))
            other.resume()
            try await origin.wait { $0.stalled == 1 }
            // The agent counts what has come after the server has sent it; nothing notifies of that.
            while try await session.background.transfers.first?.received != 1000 {
                try await Task.sleep(for: .milliseconds(1))
            }
            other.cancel()
            let error = await #expect(throws: LoadError.self) { _ = try await other.value }
            #expect(error?.reason == .cancelled && error?.phase == .receiving)
            try await origin.wait { $0.open == 0 }
            await Self.end(session)
        }
    }

    @Test("A second live session of an identifier fails, and says which process has it (checklist 10, 138)")
    func inUse() async throws {
        try await SurvivalRows.with { rig, _ in
            let first = Self.session(rig)
            let found8 = try await first.background.transfers
            #expect(found8.isEmpty)
            let second = Self.session(rig)
            let error = await #expect(throws: LoadError.self) { _ = try await second.background.transfers }
            #expect(error?.reason == .backgroundSessionInUse && error?.code == -996)
            #expect(error?.detail?.contains("\(getpid())") == true)
            await Self.end(second)
            let found9 = try await first.background.transfers
            #expect(found9.isEmpty)
            await Self.end(first)
        }
    }

    @Test("Unsupported tasks and settings fail at once, and the error names them (checklist 143 to 145)")
    func refusals() async throws {
        let rig = AgentRig()
        func problem(
            _ change: (inout Configuration) -> Void = { _ in }, decisions: Decisions? = nil,
            use: (Session) async throws -> Void = { _ = try await $0.background.transfers }
        ) async -> String {
            var configuration = Configuration.background("org.example.refused")
            configuration.background?.socket = rig.socket
            change(&configuration)
            let session = Session(configuration, decisions: decisions)
            do { try await use(session) } catch let error as LoadError {
                #expect(error.reason == .notPossibleInBackground)
                return error.detail ?? ""
            } catch { Issue.record("\(error)") }
            return "nothing"
        }
        let url = URL(string: "http://127.0.0.1:9/")!
        #expect(await problem { $0.networks.proxyPolicy = .custom { _ in [.direct] } }.contains("proxyPolicy"))
        #expect(await problem { $0.networks.addressPolicy = AddressPolicy { _ in true } }.contains("addressPolicy"))
        #expect(await problem { $0.networks.interface = .named("lo") }.contains("networks.interface"))
        #expect(await problem { $0.background = .init(identifier: "") }.contains("identifier"))
        var decisions = Decisions()
        decisions.response = Decision { _ in .allow }
        #expect(await problem(decisions: decisions).contains("Decisions.response"))
        #expect(await problem(use: { _ = try await $0.data(from: url) }).contains("downloads and uploads"))
        #expect(await problem(use: { _ = try await $0.dataTask(from: url).response }).contains("downloads and uploads"))
        #expect(
            await problem(use: { _ = try await $0.upload(Request(url: url), from: .data(Data([1]))) }).contains("body"))
        #expect(
            await problem(use: {
                _ = try await $0.downloadTask(Request(url: URL(string: "ftp://127.0.0.1/a")!)).value
            }).contains("http and https"))
        #expect(
            await problem(use: {
                try await $0.background.download(
                    Request(url: url), options: BackgroundOptions(userData: Data(count: 65_537)))
            }).contains("64 KiB"))
        let plain = Session(.ephemeral)
        let error = await #expect(throws: LoadError.self) { _ = try await plain.background.transfers }
        #expect(error?.reason == .notPossibleInBackground)
    }

    @Test("Every stored property of a configuration, its TLS settings and a request is classified")
    func classified() {
        func names(_ value: Any) -> Set<String> { Set(Mirror(reflecting: value).children.compactMap(\.label)) }
        let groups = ["timeouts", "connections", "networks", "caching", "redirects", "retries"]
        let settings = Mirror(reflecting: Configuration.default).children.flatMap { name, value in
            let name = name ?? ""
            return groups.contains(name) ? names(value).map { "\(name).\($0)" } : [name]
        }
        #expect(Set(settings) == Set(BackgroundCrossing.configuration.keys))
        #expect(names(Configuration.TLS()) == Set(BackgroundCrossing.tls.keys))
        let request = Request(url: URL(string: "https://example.org/")!)
        #expect(Set(request.storedProperties) == Set(BackgroundCrossing.request.keys))
    }

    @Test("Settings that are sent arrive: a configuration that went to the agent and back is the same")
    func settingsArrive() throws {
        var configuration = Configuration.background("a")
        configuration.timeouts.idle = .seconds(7)
        configuration.connections.httpVersions = .http1Only
        configuration.networks.trafficClass = .video
        configuration.networks.addressPolicy = .publicOnly
        configuration.networks.allowsExpensive = false
        (configuration.limits.headSize, configuration.limits.collectedBodySize) = (1234, 5678)
        configuration.headers[.acceptLanguage] = "de"
        configuration.headers[.authorization] = "Bearer secret"
        configuration.authentication.methods = [.digest]
        configuration.tls.minimumVersion = .tls13
        configuration.tls.ocspStapling = .required
        configuration.tls.minimumStrength = .bits128
        configuration.tls.trustRoots = .systemAnd(pem: "PEM")
        configuration.tls.pins = [try .init("*.example.org", [.publicKey(sha256: Data(repeating: 1, count: 32))])]
        var camera = try Configuration.TLS.UnsafeConcessions("camera.example.org")
        (camera.minimumVersion, camera.maximumVersion, camera.minimumStrength) = (.tls10, .tls11, .any)
        (camera.allowsInsecureRenegotiation, camera.allowsMissingCloseNotify) = (true, true)
        configuration.tls.unsafeConcessions = [camera]
        configuration.tls.fetchesMissingIssuers = true
        let bytes = TransferCoding.encode(SessionSettings(configuration))
        #expect(!String(decoding: bytes, as: UTF8.self).contains("secret"))
        let settings = try #require(TransferCoding.decode(SessionSettings.self, bytes))
        let secrets = try #require(
            TransferCoding.decode(SessionSecrets.self, TransferCoding.encode(SessionSecrets(configuration))))
        let made = settings.configuration(secrets, temporaryDirectory: "/tmp")
        #expect(made.tls == configuration.tls)
        #expect(made.limits == configuration.limits)
        #expect(
            made.timeouts.idle == .seconds(7) && made.connections.httpVersions == .http1Only
                && made.networks.trafficClass == .video)
        #expect(made.networks.addressPolicy.isPublicOnly && !made.networks.allowsExpensive)
        #expect(made.headers[.acceptLanguage] == "de" && made.headers[.authorization] == "Bearer secret")
        #expect(made.authentication.methods == [.digest])
    }
}
