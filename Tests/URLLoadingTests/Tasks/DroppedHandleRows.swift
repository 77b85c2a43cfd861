// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// A load ends with its last handle, for every kind of task and at every stage.
@Suite(.timeLimit(.minutes(4)))
struct DroppedHandleRows {
    enum Kind: CaseIterable, Sendable {
        case data, upload, download, downloadToDestination

        func begin(_ session: Session, _ url: URL, _ folder: TemporaryFolder) -> AnyObject {
            switch self {
            case .data:
                let task = session.dataTask(from: url).resumed()
                return task
            case .upload:
                let task = session.uploadTask(Request(url: url, method: .put), from: .data(Data(count: 16 << 20)))
                    .resumed()
                return task
            case .download, .downloadToDestination:
                let place = URL(filePath: folder.path + "/file")
                let task = session.downloadTask(
                    Request(url: url), options: DownloadOptions(destination: self == .download ? nil : place))
                task.resume()
                return task
            }
        }
    }

    enum Phase: CaseIterable, Sendable { case queued, connecting, proxy, securing, sending, waiting, receiving }

    static let cases: [(Kind, Phase)] = Kind.allCases.flatMap { kind in
        let last: [Phase] = kind == .upload ? [.sending] : [.waiting, .receiving]
        return ([.queued, .connecting, .proxy, .securing] + last).map { (kind, $0) }
    }

    @Test("a dropped handle ends its load", arguments: cases)
    func dropped(_ kind: Kind, _ phase: Phase) async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            let faults: [HTTPTestServer.Fault] =
                switch phase {
                case .sending: [.init(.requestBody(after: 1), .stall)]
                case .receiving: [.init(.responseBody(after: 300_000), .stall)]
                default: [.init(.requestHead, .stall)]
                }
            origin.route("/", faults: faults) { _ in .ok(.repeated(count: 1_000_000)) }
            origin.route("/other", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            try await withTestProxy(.init(.socks, fault: .stall(.greeting))) { proxy in
                try await Self.expectEnd(of: kind, in: phase, origin, proxy, folder)
            }
        }
    }

    private static func expectEnd(
        of kind: Kind, in phase: Phase, _ origin: HTTPTestServer, _ proxy: TestProxy, _ folder: TemporaryFolder
    ) async throws {
        let silent = try SilentHost()
        let full = try await FullHost()
        defer {
            silent.close()
            full.close()
        }
        var configuration = Configuration.patient
        configuration.connections.maximumPerHost = 1
        configuration.temporaryDirectory = URL(filePath: folder.path)
        configuration.networks.proxyPolicy = phase == .proxy ? .fixed([try proxy.address()]) : .none
        let session = Session(configuration)
        let first = phase == .queued ? RunningLoad(session, Request(url: origin.url("/other"))) : nil
        if first != nil { try await origin.wait { $0.stalled == 1 } }
        let address =
            switch phase {
            case .connecting: try url("http://127.0.0.1:\(full.port)/")
            case .securing: try url("https://127.0.0.1:\(silent.port)/")
            default: origin.url()
            }
        var handle: AnyObject? = kind.begin(session, address, folder)
        switch phase {
        case .queued: try await session.eventuallyConnections { $0.hasSuffix("1 waiting") }
        case .connecting:
            try await session.eventuallyConnections { $0.contains("1 connecting") }
        case .proxy: try await proxy.untilStalled()
        case .securing: try await silent.acceptFirstByte()
        case .sending, .waiting, .receiving: try await origin.wait { $0.stalled == 1 }
        }
        withExtendedLifetime(handle) {}
        handle = nil
        if let first {
            try await session.eventuallyConnections { $0.hasSuffix("0 waiting") }
            first.task.cancel()
            _ = await first.task.value
        }
        try await session.eventuallyConnections { $0 == "empty" }
        try await eventuallyFiles(folder.names) { $0.isEmpty }
        await expectEmpty(session)
    }

    @Test("a dropped WebSocket or stream that is still connecting ends", arguments: [false, true])
    func conversations(_ isWebSocket: Bool) async throws {
        let silent = try SilentHost()
        defer { silent.close() }
        let session = Session(.patient)
        var handle: AnyObject?
        if isWebSocket {
            let socket = session.webSocketTask(try url("wss://127.0.0.1:\(silent.port)/")).resumed()
            handle = socket
        } else {
            let stream = session.streamTask(host: "127.0.0.1", port: Int(silent.port), secure: true).resumed()
            handle = stream
        }
        try await silent.acceptFirstByte()
        #expect(session.core.registry.count == 1)
        withExtendedLifetime(handle) {}
        handle = nil
        try await session.eventuallyLoads { $0 == 0 }
        await expectEmpty(session)
    }

    @Test("waiting for a value retains the handle, until the wait is cancelled", arguments: [false, true])
    func awaited(_ isCancelled: Bool) async throws {
        try await Self.withSlowOrigin { origin, clock in
            let session = Session(.patient)
            let waiting = Self.wait(session, origin.url(isCancelled ? "/never" : "/slow"))
            if isCancelled {
                try await origin.wait { $0.stalled == 1 }
                waiting.cancel()
                await expectFailure(.cancelled) { try await waiting.value }
                try await session.eventuallyConnections { $0 == "empty" }
            } else {
                try await clock.untilSleeping()
                clock.advance(by: .seconds(1))
                let data = try await waiting.value
                #expect(data == Data("here".utf8))
            }
            await expectEmpty(session)
        }
    }

    /// An origin that answers `/slow` when its clock is advanced, and never answers `/never`.
    private static func withSlowOrigin(_ use: (HTTPTestServer, ManualClock) async throws -> Void) async throws {
        let clock = ManualClock()
        try await withHTTPTestServer(.init(clock: clock)) { origin in
            origin.route("/slow", faults: [.init(.requestHead, .delay(.seconds(1)))]) { _ in .ok("here") }
            origin.route("/never", faults: [.init(.requestHead, .stall)]) { _ in .ok("") }
            try await use(origin, clock)
        }
    }

    private static func wait(_ session: Session, _ url: URL) -> Task<Data, any Error> {
        let task = session.dataTask(from: url).resumed()
        return Task { try await task.value }
    }

    @Test("a load without a handle continues while its events are read, and ends when they are not")
    func listened() async throws {
        try await Self.withSlowOrigin { origin, clock in
            let session = Session(.patient)
            let read = Self.events(session, origin.url("/slow"))
            try await clock.untilSleeping()
            clock.advance(by: .seconds(1))
            var last: LoadEvent?
            for await event in read { last = event }
            if case .completed(nil)? = last {} else { Issue.record("\(String(describing: last))") }
            var dropped: LoadEvents? = Self.events(session, origin.url("/never"))
            try await origin.wait { $0.stalled == 1 }
            withExtendedLifetime(dropped) {}
            dropped = nil
            try await session.eventuallyLoads { $0 == 0 }
            await expectEmpty(session)
        }
    }

    private static func events(_ session: Session, _ url: URL) -> LoadEvents {
        let task = session.dataTask(from: url)
        let events = task.events
        task.resume()
        return events
    }

    @Test("a data task that becomes a download continues while one of its two handles exists")
    func becomingDownload() async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer(answering: "here") { origin in
            let place = URL(filePath: folder.path + "/file")
            var decisions = Decisions()
            decisions.response = Decision { _ in .becomeDownload(DownloadOptions(destination: place)) }
            let session = Session(.patient)
            let task = session.dataTask(Request(url: origin.url()), decisions: decisions).resumed()
            await expectFailure(.bodyUnavailable) { try await task.value }
            try await eventuallyFiles(folder.names) { $0.contains("file") }
            withExtendedLifetime(task) {}
            await expectEmpty(session)
        }
        try FileManager.default.removeItem(atPath: folder.path + "/file")
    }
}
