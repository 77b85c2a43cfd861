// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Server-sent events (WHATWG HTML 9.2): a typed sequence over any number of connections.
@Suite(.timeLimit(.minutes(4)))
struct EventRows {
    private static let type: Headers = [.contentType: "text/event-stream; charset=utf-8"]
    private static let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    private static let page = URL(string: "http://events.example/stream")!

    /// No jitter, so that the waits are predictable.
    private static var exact: ServerSentEvents.Reconnection {
        var reconnection = ServerSentEvents.Reconnection.default
        reconnection.jitter = 0
        return reconnection
    }

    private static func rig(_ peer: ScriptedPeer) -> (Configuration, ManualClock) {
        let clock = ManualClock()
        var configuration = Configuration.ephemeral
        configuration.connect(to: peer)
        configuration.use(clock)
        return (configuration, clock)
    }

    /// Reads events in a task of its own until the sequence ends.
    private struct Listening: Sendable {
        let seen = Watched<[ServerSentEvent]>([])
        let task: Task<Void, any Error>

        init(_ events: ServerSentEvents) {
            task = Task { [seen] in for try await event in events { seen.change { $0.append(event) } } }
        }

        func until(_ count: Int) async throws { try await seen.wait { $0.count >= count } }
        var data: [String] { seen.value.map(\.data) }
    }

    // MARK: Events

    private static let stream =
        "\u{FEFF}: hello\n\ndata: one\n\nid: 7\r\nevent: price\r\ndata: 1\r\ndata\r\ndata:  2\r\n\r\n"
        + "retry: 10\rdata:é\r\rid\ndata: last\n\ndata: half"
    private static let events = [
        ServerSentEvent(data: "one"), ServerSentEvent(type: "price", data: "1\n\n 2", lastEventID: "7"),
        ServerSentEvent(data: "é", lastEventID: "7"), ServerSentEvent(data: "last"),
    ]

    @Test("events are the same however the stream is split, with and without reconnection")
    func everySplit() async throws {
        let bytes = Array(Self.stream.utf8)
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in
                let cut = Int(request.path.dropFirst()) ?? 0
                let pieces = cut > 0 ? [Array(bytes[..<cut]), Array(bytes[cut...])] : bytes.map { [$0] }
                return .ok(.chunks(pieces.map { .bytes($0) }), headers: Self.type)
            }
            try await withSession(.ephemeral) { session in
                for cut in 0..<bytes.count {
                    let request = Request(url: origin.url("/\(cut)"))
                    var seen: [ServerSentEvent] = []
                    for try await event in session.serverSentEvents(for: request, reconnection: .never) {
                        seen.append(event)
                    }
                    #expect(seen == Self.events, "\(cut)")
                    let inScope = try await session.load(request) { _, body in
                        var seen: [ServerSentEvent] = []
                        for try await event in body.serverSentEvents { seen.append(event) }
                        await expectFailure(.bodyUnavailable) { for try await _ in body.serverSentEvents {} }
                        return seen
                    }
                    #expect(inScope == Self.events, "\(cut)")
                }
            }
            #expect(origin.counts.open <= 2)
        }
    }

    @Test("the request sends the fields of an event stream, unless the caller sets others")
    func fields() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .status(.noContent) }
            try await withSession(.ephemeral) { session in
                for try await _ in session.serverSentEvents(from: origin.url()) {}
                let own: Headers = [.accept: "text/*", .cacheControl: "no-cache", "Last-Event-ID": "81"]
                for try await _ in session.serverSentEvents(for: Request(url: origin.url(), headers: own)) {}
            }
            let seen = origin.requests.map {
                [$0.headers[.accept], $0.headers[.cacheControl], $0.headers["Last-Event-ID"]]
            }
            #expect(seen == [["text/event-stream", "no-store", nil], ["text/*", "no-cache", "81"]])
        }
    }

    // MARK: Connecting again

    @Test("after its end the stream reconnects with the last event ID, after the server's retry time; 204 ends it")
    func reconnection() async throws {
        let first = ": hi\n\nretry: 5000\nid: 41\ndata: a\n\nid: 42\n\nid: 43\ndata: half"
        let peer = ScriptedPeer(
            [.takeUntil("\r\n\r\n"), .give(Self.head + first), .end],
            [.takeUntil("\r\n\r\n"), .give(Self.head + "data: b\n\ndata: c\n"), .lose],
            [.takeUntil("\r\n\r\n"), .give("HTTP/1.1 204 No Content\r\n\r\n")])
        let (configuration, clock) = Self.rig(peer)
        let session = Session(configuration)
        let listening = Listening(session.serverSentEvents(for: Request(url: Self.page), reconnection: Self.exact))
        for connection in 1...2 {
            try await clock.untilSleeping()
            #expect(session.connectionsDescription == "empty" && listening.seen.value.count == connection)
            clock.advance(by: .milliseconds(4999))
            #expect(peer.connections == connection)
            clock.advance(by: .milliseconds(1))
            try await peer.untilConnected(connection + 1)
        }
        try await listening.task.value
        #expect(
            listening.seen.value == [
                ServerSentEvent(data: "a", lastEventID: "41"), ServerSentEvent(data: "b", lastEventID: "42"),
            ])
        let asked = (1...3).map { String(decoding: peer.written(onConnection: $0), as: UTF8.self) }
        #expect(
            !asked[0].contains("Last-Event-ID") && asked[1].contains("Last-Event-ID: 42\r\n")
                && asked[2].contains("Last-Event-ID: 42\r\n"))
        await expectEmpty(session)
    }

    @Test("an ID that cannot be sent in a field is not sent")
    func unsendableID() async throws {
        let peer = ScriptedPeer(
            [.takeUntil("\r\n\r\n"), .give(Self.head + "id: a\u{1}b\ndata: x\n\n"), .end],
            [.takeUntil("\r\n\r\n"), .give("HTTP/1.1 204 No Content\r\n\r\n")])
        let (configuration, clock) = Self.rig(peer)
        let session = Session(configuration)
        let listening = Listening(session.serverSentEvents(from: Self.page))
        try await clock.untilSleeping()
        clock.advance(by: .seconds(10))
        try await listening.task.value
        #expect(listening.seen.value.first?.lastEventID == "a\u{1}b")
        #expect(!String(decoding: peer.written(onConnection: 2), as: UTF8.self).contains("Last-Event-ID"))
        await expectEmpty(session)
    }

    @Test(
        "a response other than an event stream ends the sequence, on the first connection and later",
        arguments: [
            (
                "HTTP/1.1 500 Oh\r\nContent-Type: text/event-stream\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n",
                LoadError.Reason.unacceptableStatus, 500
            ),
            (
                "HTTP/1.1 206 Part\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n",
                .unacceptableStatus, 206
            ),
            ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n", .unacceptableContentType, 200),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", .unacceptableContentType, 200),
        ], [false, true])
    func refused(_ answer: (String, LoadError.Reason, Int), _ isLater: Bool) async throws {
        let refusal: [ScriptedPeer.Step] = [.takeUntil("\r\n\r\n"), .give(answer.0)]
        let good: [ScriptedPeer.Step] = [.takeUntil("\r\n\r\n"), .give(Self.head + "data: a\n\n"), .end]
        let peer = isLater ? ScriptedPeer(good, refusal) : ScriptedPeer(refusal)
        let (configuration, clock) = Self.rig(peer)
        let session = Session(configuration)
        let listening = Listening(session.serverSentEvents(for: Request(url: Self.page), reconnection: Self.exact))
        if isLater {
            try await clock.untilSleeping()
            clock.advance(by: .seconds(3))
        }
        let error = await failure(answer.1, .remote) { try await listening.task.value }
        #expect(error?.status?.code == answer.2 && error?.url == Self.page)
        if answer.1 == .unacceptableContentType {
            let type = answer.0.contains("text/html") ? "text/html" : "not stated"
            #expect(error?.detail == "the type is \(type), and text/event-stream is required")
        }
        #expect(listening.data == (isLater ? ["a"] : []))
        await expectEmpty(session)
    }

    @Test("a failed first connection is an error at once, unless the policy retries it")
    func firstConnection() async throws {
        let url = URL(string: "http://127.0.0.1:\(try closedPort())/")!
        try await withSession(.ephemeral) { session in
            await expectFailure(.connectionRefused) { for try await _ in session.serverSentEvents(from: url) {} }
        }
        let clock = ManualClock()
        var configuration = Configuration.ephemeral
        configuration.use(clock)
        let dialled = Watched(0)
        configuration.dial = { (_, _) throws(IOFailure) in
            dialled.add()
            throw IOFailure(.system(ECONNREFUSED), .connect)
        }
        var reconnection = Self.exact
        reconnection.retriesFirstConnection = true
        reconnection.maximumAttempts = 2
        let session = Session(configuration)
        let listening = Listening(session.serverSentEvents(for: Request(url: Self.page), reconnection: reconnection))
        for (index, wait) in [3, 6].enumerated() {
            try await dialled.wait { $0 > index }
            try await clock.untilSleeping()
            clock.advance(by: .seconds(wait))
        }
        await expectFailure(.connectionRefused) { try await listening.task.value }
        #expect(clock.elapsed == .seconds(9))
        await expectEmpty(session)
    }

    @Test("a request that must not be repeated is sent once")
    func unsafeMethod() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { request in
                .ok(.bytes(Array("data: ".utf8) + request.body + Array("\n\n".utf8)), headers: Self.type)
            }
            try await withSession(.ephemeral) { session in
                let request = Request(url: origin.url(), method: .post, body: .form([("q", "1")]))
                var seen: [String] = []
                for try await event in session.serverSentEvents(for: request) { seen.append(event.data) }
                #expect(seen == ["q=1"])
            }
            #expect(origin.counts.requests == 1)
        }
    }

    // MARK: Limits and times

    @Test(
        "lines and events have maximum lengths",
        arguments: [
            ("data: 0123456789\n\n", LoadError.Reason.eventLineTooLong), ("data: 0123\ndata: 0123\n\n", .eventTooLarge),
        ])
    func limits(_ text: String, _ reason: LoadError.Reason) async throws {
        var configuration = Configuration.ephemeral
        configuration.limits.eventLineSize = 12
        configuration.limits.eventSize = 8
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("data: ok\n\n" + text, headers: Self.type) }
            try await withSession(configuration) { session in
                var seen = 0
                await expectFailure(reason, .remote, .receiving) {
                    for try await _ in session.serverSentEvents(from: origin.url()) { seen += 1 }
                }
                #expect(seen == 1)
            }
        }
    }

    @Test("an idle server is waited for despite the configuration; limits set by the caller apply")
    func silence() async throws {
        let script: [ScriptedPeer.Step] = [
            .takeUntil("\r\n\r\n"), .give(Self.head + "data: a\n\n"), .hold, .give("data: b\n\n"), .hold,
        ]
        let patient = ScriptedPeer(script)
        let (configuration, clock) = Self.rig(patient)
        let session = Session(configuration)
        let listening = Listening(session.serverSentEvents(from: Self.page))
        try await listening.until(1)
        try await clock.untilWaiting()
        clock.advance(by: .seconds(30 * 24 * 3600))
        patient.release()
        try await listening.until(2)
        await expectEmpty(session)
        await expectFailure(.cancelled) { try await listening.task.value }

        // An idle timeout counts as a lost connection.
        let (others, time) = Self.rig(ScriptedPeer(script, script))
        let second = Session(others)
        var request = Request(url: Self.page)
        request.idleTimeout = .seconds(10)
        let silent = Listening(second.serverSentEvents(for: request, reconnection: Self.exact))
        try await silent.until(1)
        // A load just woken by a late notification of its slot is not idle, and begins another wait.
        try await time.time.eventuallySleeping { sleeping in
            if sleeping == 0, time.time.waiting.count > 0 { time.advance(by: .seconds(10)) }
            return sleeping > 0
        }
        time.advance(by: .seconds(3))
        try await silent.until(2)
        await expectEmpty(second)
        await expectFailure(.cancelled) { try await silent.task.value }
    }

    @Test("the resource timeout covers all connections and the waits between them")
    func wholeTime() async throws {
        let ending: [ScriptedPeer.Step] = [.takeUntil("\r\n\r\n"), .give(Self.head + "data: a\n\n"), .end]
        let (others, time) = Self.rig(
            ScriptedPeer(ending, [.takeUntil("\r\n\r\n"), .give(Self.head + "data: b\n\n"), .hold]))
        let second = Session(others)
        var request = Request(url: Self.page)
        request.resourceTimeout = .seconds(20)
        let limited = Listening(second.serverSentEvents(for: request, reconnection: Self.exact))
        try await time.untilSleeping()
        time.advance(by: .seconds(3))
        try await limited.until(2)
        try await time.untilWaiting()
        time.advance(by: .seconds(17))
        await expectFailure(.resourceTimeout) { try await limited.task.value }
        await expectEmpty(second)

        // It does not wait past the timeout before it reconnects, either.
        let (third, clock3) = Self.rig(ScriptedPeer(ending))
        let last = Session(third)
        request.resourceTimeout = .seconds(2)
        let short = Listening(last.serverSentEvents(for: request, reconnection: Self.exact))
        try await clock3.untilSleeping()
        clock3.advance(by: .seconds(2))
        await expectFailure(.resourceTimeout) { try await short.task.value }
        await expectEmpty(last)
    }

    // MARK: Ending

    @Test(
        "cancelling the task, or invalidating the session, ends the sequence at every stage", arguments: [false, true],
        0...3)
    func cancelled(_ isSession: Bool, _ stage: Int) async throws {
        // Before the head, before an event, and during the wait before a reconnection; after an event.
        let scripts: [[ScriptedPeer.Step]] = [
            [.takeUntil("\r\n\r\n"), .hold], [.takeUntil("\r\n\r\n"), .give(Self.head + "data: h"), .hold],
            [.takeUntil("\r\n\r\n"), .give(Self.head), .end],
            [.takeUntil("\r\n\r\n"), .give(Self.head + "data: h\n\n"), .hold],
        ]
        let peer = ScriptedPeer(scripts[stage])
        let (configuration, clock) = Self.rig(peer)
        let session = Session(configuration)
        let listening = Listening(session.serverSentEvents(from: Self.page))
        if stage == 2 { try await clock.untilSleeping() } else { try await peer.untilHeld() }
        if stage == 3 { try await listening.until(1) }
        if isSession { session.invalidateAndCancel() } else { listening.task.cancel() }
        await expectFailure(.cancelled, .local) { try await listening.task.value }
        await expectEmpty(session)
    }

    @Test("an iterator that is not read retains no session, and closes its connection with its end")
    func dropped() async throws {
        let script: [ScriptedPeer.Step] = [.takeUntil("\r\n\r\n"), .give(Self.head + "data: a\n\n"), .hold]
        let (configuration, _) = Self.rig(ScriptedPeer(script, script))
        let session = Session(configuration)
        var held: ServerSentEvents.Iterator = session.serverSentEvents(from: Self.page).makeAsyncIterator()
        let first = try await held.next()
        #expect(first?.data == "a")
        do {
            var dropped: ServerSentEvents.Iterator = session.serverSentEvents(from: Self.page).makeAsyncIterator()
            let event = try await dropped.next()
            #expect(event?.data == "a" && session.connectionsDescription.contains("2 leased"))
        }
        try await session.eventuallyConnections { $0.contains("1 leased") }
        await expectEmpty(session)
        await expectFailure(.cancelled) { try await held.next() }
        await expectFailure(.cancelled) { try await held.next() }
    }

    @Test("waiting for events on the main actor blocks no other work")
    @MainActor func onActor() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("data: a\n\ndata: b\n\n", headers: Self.type) }
            let session = Session(.ephemeral)
            var seen: [String] = []
            for try await event in session.serverSentEvents(for: Request(url: origin.url()), reconnection: .never) {
                seen.append(event.data)
            }
            #expect(seen == ["a", "b"])
            await expectEmpty(session)
        }
    }
}

/// The decision to reconnect, without a clock.
struct ReconnectionPlanTests {
    private typealias Reconnection = ServerSentEvents.Reconnection

    private static func wait(
        _ error: LoadError.Reason? = .connectionLost, failures: Int = 0, retry: Duration? = nil,
        lostFor: Duration = .zero,
        chance: Double = 0, _ change: (inout ServerSentEvents.Reconnection) -> Void = { _ in }
    ) -> Double? {
        var reconnection = Reconnection.default
        change(&reconnection)
        var history = ReconnectionPlan.History()
        (history.wasConnected, history.failures, history.retry) = (true, failures, retry)
        history.lostFor = LoadHandle.nanoseconds(lostFor)
        let failure = error.map { LoadError($0, phase: .receiving, party: .remote) }
        guard case .connect(let wait) = ReconnectionPlan.make(after: failure, history, reconnection, chance: chance)
        else { return nil }
        return Double(wait) / 1e9
    }

    @Test("the server's retry time is bounded by the caller's limits, and doubles without progress")
    func delays() {
        #expect([0, 1, 2, 6, 7, 1000].map { Self.wait(failures: $0) } == [3, 6, 12, 192, 300, 300])
        #expect(Self.wait(nil) == 3)
        #expect(
            [0, 999, 5000, 10_000_000, Int64.max].map { Self.wait(retry: .milliseconds($0)) } == [1, 1, 5, 300, 300])
        #expect(Self.wait(retry: .zero) { $0.delayBounds = .zero ... .zero } == 0)
        #expect(Self.wait(failures: 1000) { $0.delayBounds = .zero ... .seconds(Int64.max) } ?? 0 > 1e9)
        #expect(Self.wait { $0.delay = .seconds(-1) } == 1)
    }

    @Test("jitter lengthens a wait and never shortens it")
    func jitter() {
        #expect(Self.wait(chance: 0.5) == 3.3)
        #expect(Self.wait(failures: 9, chance: 0.5) == 330)
        for wrong in [-1, .nan, .infinity] as [Double] { #expect(Self.wait(chance: 0.5) { $0.jitter = wrong } == 3) }
    }

    @Test("the number and the duration of attempts are limited")
    func ends() {
        #expect(
            [0, 1, 2].map { failures in Self.wait(failures: failures) { $0.maximumAttempts = 2 } != nil } == [
                true, true, false,
            ])
        #expect(Self.wait { $0 = .never } == nil)
        #expect(Self.wait { $0.maximumAttempts = -1 } == nil)
        #expect(
            [0, 7, 8].map { seconds in
                Self.wait(lostFor: .seconds(seconds)) { $0.maximumDuration = .seconds(10) } != nil
            } == [
                true, true, false,
            ])
        for reason in [
            LoadError.Reason.cancelled, .sessionInvalidated, .certificateUntrusted, .badURL, .unacceptableStatus,
            .eventTooLarge,
        ] {
            #expect(Self.wait(reason) == nil)
        }
        for reason in [LoadError.Reason.hostNotFound, .unreachable, .truncated, .idleTimeout] {
            #expect(Self.wait(reason) == 3)
        }
    }
}
