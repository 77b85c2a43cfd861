// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingAgent

/// Checklist 137, 149: requests that may have been carried out are not repeated, and their results are not lost.
@Suite(.timeLimit(.minutes(2))) struct RepetitionRows {
    /// Submits a POST whose response waits for the gate, and returns when the origin has the request.
    private static func post(_ rig: AgentRig, _ origin: HTTPTestServer, _ gate: Flag) async throws -> AgentLink {
        origin.route("/post") { request in
            try await gate.wait()
            return .ok("got \(request.bodyCount)")
        }
        let source = rig.folder + "/source.bin"
        try Data(Film.content).write(to: URL(filePath: source))
        let program = try await rig.attach()
        try await program.upload(Request(url: origin.url("/post"), method: .post), from: source)
        _ = try await program.wait { $0.sent == Int64(Film.content.count) }
        return program
    }

    private static func text(_ outcome: TransferOutcome?) throws -> String {
        guard case .answer(let path, _, _)? = outcome else { return "\(outcome as Any)" }
        return try FileReader.text(path)
    }

    @Test("A POST whose response is lost is not repeated, also as a download; a connection that failed is retried")
    func postDownload() async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/make", faults: [.init(.requestHead, .close)]) { _ in .ok("never") }
            let program = try await rig.attach()
            let request = Request(url: origin.url("/make"), method: .post)
            let order = TransferOrder(.download, request, created: SystemTime.wall)
            _ = try await program.submit("t1", order, TransferSecrets(request))
            let record = try await program.wait { $0.state == .finished || $0.state == .waiting }
            guard case .failed(let error)? = record.outcome else { return _ = Issue.record("\(record)") }
            #expect(error.loadError.reason == .connectionLost)
            #expect(error.detail?.contains("Idempotency-Key") == true)
            #expect(origin.counts.requests == 1)
            // Nothing is listening there: nothing was sent.
            let refused = Request(url: URL(string: "http://127.0.0.1:1/")!, method: .post)
            let other = TransferOrder(.download, refused, created: SystemTime.wall)
            _ = try await program.submit("t2", other, TransferSecrets(refused))
            _ = try await program.wait("t2") { $0.state == .waiting }
        }
    }

    /// A journal that reports changes of transfers when the test permits it.
    private final class HeldJournal: Journal {
        private let journal: SQLiteJournal
        private let held = Lock<[@Sendable () -> Void]?>([])

        init(_ journal: SQLiteJournal) { self.journal = journal }

        var problem: String? { nil }
        var signals: AsyncStream<JournalSignal>? { nil }
        var agent: String { "" }
        func finish() { journal.finish() }
        var isHolding: Bool { held.withLock { $0?.isEmpty == false } }

        func identifiers() async throws(JournalFailure) -> [JournaledIdentifier] { try await journal.identifiers() }
        func identifier(_ name: String) async throws(JournalFailure) -> JournaledIdentifier? { nil }
        func claim(_ request: ClaimRequest) async throws(JournalFailure) -> ClaimedTransfers {
            try await journal.claim(request)
        }
        func renew(_ claims: [TransferClaim]) async throws(JournalFailure) -> JournalRenewal {
            try await journal.renew(claims)
        }
        func release(_ claims: [TransferClaim]) async throws(JournalFailure) { try await journal.release(claims) }
        func transfers(of identifier: String, after number: Int64, atMost count: Int) async throws(JournalFailure)
            -> [JournaledTransfer]
        { try await journal.transfers(of: identifier, after: number, atMost: count) }
        func transfer(_ id: String) async throws(JournalFailure) -> JournaledTransfer? {
            try await journal.transfer(id)
        }
        func events(of identifier: String, after sequence: Int64, atMost count: Int) async throws(JournalFailure)
            -> [JournaledEvent]
        { try await journal.events(of: identifier, after: sequence, atMost: count) }
        func sequences(of identifier: String) async throws(JournalFailure) -> [Int64] {
            try await journal.sequences(of: identifier)
        }

        func write(
            _ changes: [JournalChange], mayFail: Bool,
            done: @escaping @Sendable (Result<JournalReceipt, JournalFailure>) -> Void
        ) {
            journal.write(changes, mayFail: mayFail) { result in
                guard case .update? = changes.first else { return done(result) }
                let isHeld = self.held.withLock { $0?.append { done(result) } != nil }
                if !isHeld { done(result) }
            }
        }

        func release() { for report in held.withLock({ $0.take() }) ?? [] { report() } }
    }

    @Test("An attempt that has begun is not begun again when its program brings other settings")
    func otherSettings() async throws {
        let rig = AgentRig()
        try await withHTTPTestServer { origin in
            origin.route("/make") { _ in .ok("made") }
            let journal = HeldJournal(try SQLiteJournal(folder: rig.state))
            let service = try TransferService(journal, folder: rig.state) { _ in }
            let listener = try LocalListener(path: rig.socket)
            let token = StopToken()
            let server = AgentServer(service, survival: "untilReboot", manner: "test") { _ in }
            let serving = Task { await server.serve(listener, token) }
            await service.start()
            let program = try await rig.attach()
            let request = Request(url: origin.url("/make"), method: .post)
            let order = TransferOrder(.download, request, created: SystemTime.wall)
            _ = try await program.submit("t1", order, TransferSecrets(request))
            // The attempt has begun, and waits until the journal has recorded that.
            while !journal.isHolding { try await Task.sleep(for: .milliseconds(1)) }
            program.close()
            let next = try await rig.attachAgain { $0.maximumRedirects = 1 }
            journal.release()
            let done = try await next.wait { $0.state == .finished }
            #expect(done.attempts == 1 && origin.counts.requests == 1)
            token.stop(.cancelled)
            await serving.value
            await service.stop()
        }
    }

    @Test("A running POST that is suspended runs to its end, and its result is kept")
    func paused() async throws {
        try await SurvivalRows.with { rig, origin in
            let gate = Flag()
            let program = try await Self.post(rig, origin, gate)
            #expect(try await program.request(.command(.init(transfer: "t1", verb: "pause"))) == .done)
            #expect(try await program.transfers().map(\.state) == [.paused])
            gate.raise()
            let record = try await program.wait { $0.state == .finished }
            #expect(try Self.text(record.outcome) == "got \(Film.content.count)")
            #expect(origin.counts.requests == 1)
        }
    }

    @Test("A suspended POST whose agent is killed ends with a failure, and is not repeated when it is resumed")
    func pausedAndKilled() async throws {
        try await SurvivalRows.with { rig, origin in
            let gate = Flag()
            let program = try await Self.post(rig, origin, gate)
            #expect(try await program.request(.command(.init(transfer: "t1", verb: "pause"))) == .done)
            await rig.kill()
            gate.raise()
            try rig.start()
            let next = try await rig.attachAgain()
            let record = try #require(try await next.transfers().first)
            #expect(record.state == .finished)
            guard case .failed(let error)? = record.outcome else { return _ = Issue.record("\(record)") }
            #expect(error.detail?.contains("Idempotency-Key") == true)
            #expect(origin.counts.requests == 1)
        }
    }

    @Test("A more urgent transfer takes the place of one whose attempt can be repeated without loss, of no other")
    func victims() {
        func isResumable(
            _ kind: TransferOrder.Kind, _ method: Method,
            _ change: (inout URLLoadingAgent.TransferProgress) -> Void = { _ in }
        ) -> Bool {
            let request = Request(url: URL(string: "http://127.0.0.1/")!, method: method)
            var transfer = Transfer(
                id: "t", identifier: "a", order: TransferOrder(kind, request, created: 0),
                secrets: TransferSecrets(request))
            change(&transfer.progress)
            return transfer.isResumable
        }
        #expect(isResumable(.download, .get) && !isResumable(.download, .get) { $0.received = 1 })
        #expect(isResumable(.download, .get) { ($0.received, $0.resumption) = (1, Data()) })
        #expect(!isResumable(.download, .post))
        #expect(isResumable(.upload, .put) && !isResumable(.upload, .put) { $0.sent = 1 })
        #expect(!isResumable(.upload, .post) && isResumable(.upload, .post) { ($0.sent, $0.uploadToken) = (1, "t") })
    }

    @Test("The response to a POST whose body cannot be written is a failure with the head of the response")
    func answerLost() async throws {
        try await SurvivalRows.with { rig, origin in
            let gate = Flag()
            let program = try await Self.post(rig, origin, gate)
            #expect(rename(rig.state + "/spool", rig.state + "/away") == 0)
            gate.raise()
            let record = try await program.wait { $0.state == .finished }
            guard case .failed(let error)? = record.outcome else { return _ = Issue.record("\(record)") }
            #expect(error.loadError.reason == .cannotWriteFile)
            #expect(error.detail?.contains("200") == true)
            #expect(rename(rig.state + "/away", rig.state + "/spool") == 0)
        }
    }

    @Test(
        "An agent that is stopped while it writes a response keeps the response", .enabled(if: KillRows.hasStrace))
    func stoppedWhileWriting() async throws {
        let rig = AgentRig()
        try await withHTTPTestServer { origin in
            let gate = Flag()
            try rig.start(under: [
                "/usr/bin/strace", "-D", "-f", "-qq", "-o", rig.folder + "/trace", "-e", "trace=fsync", "-e",
                "inject=fsync:delay_enter=500000",
            ])
            let program = try await Self.post(rig, origin, gate)
            gate.raise()
            try await eventuallyProcess { !rig.spool.isEmpty }
            await rig.kill(SIGTERM)
            program.close()
            try rig.start()
            let next = try await rig.attachAgain()
            let record = try await next.wait { $0.state == .finished }
            #expect(try Self.text(record.outcome) == "got \(Film.content.count)")
            #expect(origin.counts.requests == 1)
            await rig.kill(SIGTERM)
        }
    }

    @Test("The resource timeout of the configuration ends a running attempt")
    func resourceTimeout() async throws {
        try await SurvivalRows.with(stallsAfter: 1000) { rig, origin in
            let program = try await rig.attach { ($0.resourceTimeout, $0.idleTimeout) = (.seconds(1), nil) }
            try await program.download(origin.url("/film"))
            let record = try await program.wait { $0.state == .finished }
            guard case .failed(let error)? = record.outcome else { return _ = Issue.record("\(record)") }
            #expect(error.loadError.reason == .resourceTimeout)
        }
    }

    @Test("A partial file that the server does not continue is removed, and the download starts anew")
    func refusedResumption() async throws {
        try await SurvivalRows.with(stallsAfter: 300_000) { rig, origin in
            let place = rig.folder + "/film.bin"
            let program = try await rig.attach()
            try await program.download(origin.url("/film"), to: place)
            _ = try await program.wait { $0.received >= 100_000 }
            try await origin.wait { $0.stalled == 1 }
            #expect(try await program.request(.command(.init(transfer: "t1", verb: "pause"))) == .done)
            try await origin.wait { $0.open == 0 }
            origin.route("/film") { $0.headers[.range] == nil ? Film.answer($0) : .status(.forbidden) }
            #expect(try await program.request(.command(.init(transfer: "t1", verb: "resume"))) == .done)
            _ = try await program.wait { $0.state == .finished }
            #expect(Film.of(place) == Film.content)
            #expect(origin.requests.contains { $0.headers[.range] != nil })
            // The file is removed after the journal has forgotten it.
            try await eventuallyFiles(PrivateFolder.names(rig.folder)) { !$0.contains { $0.hasPrefix(".urlloading") } }
        }
    }
}
