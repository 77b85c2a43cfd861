// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

/// Transactions in time and bytes: one for each request sent, for any reason.
@Suite(.timeLimit(.minutes(4)))
struct MetricsTests {
    typealias Transaction = LoadMetrics.Transaction

    /// Every moment that there is comes after the one before it.
    private func expectOrder(_ metrics: LoadMetrics, sourceLocation: SourceLocation = #_sourceLocation) {
        for transaction in metrics.transactions {
            let stages: [LoadMetrics.Moment?] = [
                metrics.start, transaction.fetchStart, transaction.lookupStart, transaction.lookupEnd,
                transaction.connectStart,
                transaction.secureStart, transaction.secureEnd, transaction.connectEnd, transaction.requestStart,
                transaction.responseStart, transaction.responseEnd, transaction.end, metrics.end,
            ]
            let moments = stages.compactMap { $0 }
            #expect(moments == moments.sorted(), "\(moments)", sourceLocation: sourceLocation)
            #expect(transaction.requestEnd.map { $0 <= transaction.end } ?? true, sourceLocation: sourceLocation)
        }
    }

    @Test("a redirect and its target: one connection, two transactions, dates on one clock")
    func redirect() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/next") }
            origin.route("/next") { _ in .ok("hello", headers: ["X-Long": String(repeating: "x", count: 100)]) }
            let before = Date()
            try await withSession(.ephemeral) { session in
                let task = session.dataTask(from: origin.url()).resumed()
                let metrics = try await task.metrics
                expectOrder(metrics)
                #expect(metrics.redirectCount == 1 && metrics.transactions.count == 2, "\(metrics)")
                let (first, second) = (metrics.transactions[0], metrics.transactions[1])
                #expect(first.response?.http?.status == .found && second.response?.http?.status == .ok)
                #expect(second.request.url == origin.url("/next"))
                #expect(
                    first.connectStart != nil && first.connectEnd != nil && first.lookupStart == nil
                        && first.secureStart == nil)
                #expect(!first.isReusedConnection && second.isReusedConnection && second.connectStart == nil)
                #expect(first.connectionID != nil && first.connectionID == second.connectionID)
                #expect(second.remoteAddress == "127.0.0.1" && second.remotePort == origin.url().port)
                #expect(
                    second.localAddress == "127.0.0.1" && second.localPort != nil
                        && second.localPort != second.remotePort)
                #expect(second.protocolName == "http/1.1" && second.tlsVersion == nil && second.cipherSuite == nil)
                #expect(second.fetchType == .network && !second.isProxyConnection)
                #expect(
                    second.responseContentBytes == 5 && second.responseBodyBytes == 5 && second.responseHeadBytes > 100)
                #expect(first.responseEnd != nil && second.responseEnd != nil && second.error == nil)
                let after = Date()
                #expect(
                    metrics.start.date >= before.addingTimeInterval(-0.001)
                        && metrics.end.date <= after.addingTimeInterval(0.001))
                #expect(metrics.duration == metrics.end - metrics.start && metrics.start.offset == .zero)
                // Asked again it is the same, and events asked for now end with it.
                #expect(try await task.metrics.end == metrics.end)
                var late: [String] = []
                for await event in task.events { late.append(event.description.prefix { $0 != " " }.description) }
                #expect(late == ["metrics", "completed"])
            }
        }
    }

    @Test("the head as it went out, byte for byte")
    func head() async throws {
        try await withHTTPTestServer(answering: "") { origin in
            let recorder = EventRecorder()
            let sent = Lock<[UInt8]>([])
            var configuration = Configuration.ephemeral
            configuration.observers = [recorder]
            configuration.wireTap = { if case .sent(let bytes, _) = $0 { sent.withLock { $0 += bytes } } }
            try await withSession(configuration) { session in
                let long = RequestBody.stream {
                    AsyncStream<[UInt8]> {
                        $0.yield([1, 2, 3])
                        $0.yield([4])
                        $0.finish()
                    }
                }
                let requests = [
                    Request(url: origin.url()), Request(url: origin.url(), method: .post),
                    Request(
                        url: origin.url(), method: .put, headers: ["X-A": "1", "Host": "other.example"],
                        body: .data(Data("12345".utf8))),
                    Request(url: origin.url(), method: .post, body: long),
                ]
                for request in requests {
                    sent.withLock { $0 = [] }
                    _ = try await session.data(for: request)
                    let transaction = try #require(recorder.loads.last?.metrics?.transactions.last)
                    let bytes = sent.withLock { $0 }
                    let text = String(decoding: bytes, as: UTF8.self)
                    let end = try #require(text.utf8.firstRange(of: "\r\n\r\n".utf8)?.upperBound)
                    let head = text[..<end].utf8.count
                    #expect(transaction.requestHeadBytes == Int64(head))
                    #expect(transaction.requestBodyBytes == Int64(bytes.count - head))
                    let written = text[..<end].split(separator: "\r\n").dropFirst().map(String.init)
                    #expect(transaction.requestHeaders.map { "\($0.name): \($0.value)" } == written)
                }
                let bodies = recorder.loads.compactMap { $0.metrics?.transactions.last }
                #expect(bodies.map(\.requestContentBytes) == [0, 0, 5, 4])
                #expect(
                    bodies.map(\.requestBodyBytes) == [0, 0, 5, Int64("3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n".utf8.count)])
                #expect(bodies.allSatisfy { $0.requestEnd != nil })
            }
        }
    }

    @Test("bytes with framing and coding, and without; informational heads count, their moments do not")
    func coding() async throws {
        let text = String(repeating: "all work and no play ", count: 1000)
        try await withHTTPTestServer { origin in
            let packed = Compressed.gzip(Array(text.utf8))
            origin.route("/") { _ in
                .ok(.chunks([.bytes(packed)]), headers: ["Content-Encoding": "gzip"]).after(.init(.earlyHints))
            }
            origin.route("/plain") { _ in .ok(.chunks(["one", "two"])) }
            try await withSession(.ephemeral) { session in
                let task = session.dataTask(from: origin.url()).resumed()
                let transaction = try #require(try await task.metrics.transactions.last)
                #expect(transaction.responseContentBytes == Int64(text.utf8.count))
                #expect(
                    transaction.responseBodyBytes > Int64(packed.count)
                        && transaction.responseBodyBytes < Int64(packed.count + 32))
                let plain = session.dataTask(from: origin.url("/plain")).resumed()
                let whole = try #require(try await plain.metrics.transactions.last)
                #expect(
                    whole.responseContentBytes == 6 && whole.responseBodyBytes == 21,
                    "3 CRLF one CRLF 3 CRLF two CRLF 0 CRLF CRLF")
                #expect(transaction.responseHeadBytes > whole.responseHeadBytes)
            }
        }
    }

    @Test(
        "metrics contain the lookup, the TLS handshake and the negotiated parameters",
        arguments: [Configuration.TLS.Version.tls12, .tls13])
    func secure(_ version: Configuration.TLS.Version) async throws {
        try await withSecureOrigin(.init(names: ["localhost.test"]), name: "localhost.test") { origin, configuration in
            origin.route("/") { _ in .ok("hello") }
            var configuration = configuration
            configuration.tls.maximumVersion = version
            try await withSession(configuration) { session in
                for isReused in [false, true] {
                    let task = session.dataTask(from: origin.url()).resumed()
                    let metrics = try await task.metrics
                    expectOrder(metrics)
                    let transaction = try #require(metrics.transactions.first)
                    #expect(transaction.error == nil, "\(metrics)")
                    #expect(transaction.isReusedConnection == isReused)
                    #expect((transaction.lookupEnd == nil) == isReused && (transaction.secureEnd == nil) == isReused)
                    #expect(transaction.tlsVersion == version)
                    #expect(transaction.cipherSuite?.hasPrefix("TLS_") == true)
                    let group = try #require(transaction.keyExchangeGroup)
                    #expect(transaction.isPostQuantum == (group != "x25519"), "\(group)")
                    #expect(
                        version == .tls12
                            ? (transaction.cipherSuiteNumber ?? 0) > 0xC000
                            : (transaction.cipherSuiteNumber ?? 0) >> 8 == 0x13)
                }
            }
        }
    }

    @Test("a stale connection: the failed try and the one that went well")
    func retry() async throws {
        try await withHTTPTestServer(answering: "x") { origin in
            origin.route("/stale") { $0.exchange == 1 ? .ok("y") : .raw([], then: .reset) }
            try await withSession(.ephemeral) { session in
                try await session.expect(origin.url(), "x")
                let task = session.dataTask(from: origin.url("/stale")).resumed()
                let metrics = try await task.metrics
                expectOrder(metrics)
                #expect(metrics.transactions.count == 2 && metrics.redirectCount == 0, "\(metrics)")
                let (first, second) = (metrics.transactions[0], metrics.transactions[1])
                #expect(
                    first.error?.reason == .connectionLost && first.isReusedConnection && first.response == nil
                        && first.responseEnd == nil)
                #expect(second.error == nil && !second.isReusedConnection && second.connectStart != nil)
                #expect(first.end <= second.fetchStart && first.connectionID != second.connectionID)
            }
        }
    }

    @Test("the metrics of a failed load end with the stage that failed")
    func failures() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/half") { _ in .ok(.declared(10, bytes: Array("hello".utf8))) }
            let recorder = EventRecorder()
            var configuration = Configuration.ephemeral
            configuration.observers = [recorder]
            configuration.networks.resolver = RecordingResolver(
                .failure(IOFailure(.hostNotFound("nowhere.example"), .resolve)))
            try await withSession(configuration) { session in
                await expectFailure(.truncated) { try await session.data(from: origin.url("/half")) }
                let half = try #require(recorder.loads.last?.metrics?.transactions.last)
                #expect(
                    half.response != nil && half.responseEnd == nil && half.error?.reason == .truncated
                        && half.responseContentBytes == 5)

                await expectFailure(.hostNotFound) {
                    try await session.data(from: URL(string: "http://nowhere.example/")!)
                }
                let unknown = try #require(recorder.loads.last?.metrics?.transactions.last)
                #expect(unknown.lookupStart != nil && unknown.lookupEnd == nil && unknown.connectStart == nil)
                #expect(
                    unknown.error?.reason == .hostNotFound && unknown.protocolName == nil
                        && unknown.remoteAddress == nil)

                await expectFailure(.badURL) { try await session.data(from: URL(string: "http:///")!) }
                #expect(recorder.loads.last?.metrics?.transactions.isEmpty == true)

                // Cancelled before it began.
                let task = session.dataTask(from: origin.url())
                task.cancel()
                #expect(try await task.metrics.transactions.isEmpty)
                #expect(recorder.loads.allSatisfy { $0.isLegal && $0.isComplete }, "\(recorder)")
            }
        }
    }

    @Test("a data URL and an answering handler count as local; a forwarding handler is not visible")
    func local() async throws {
        try await withHTTPTestServer(answering: "hello") { origin in
            let recorder = EventRecorder()
            var configuration = Configuration.ephemeral
            configuration.observers = [recorder]
            configuration.handlers = [
                HandlerTests.Stub { request, client in
                    if request.url.lastPathComponent == "own" {
                        return .response(Response(url: request.url), data: Data("own".utf8))
                    }
                    if request.url.lastPathComponent == "fails" { throw CancellationError() }
                    return try await client.next.load(request)
                }
            ]
            try await withSession(configuration) { session in
                _ = try await session.data(from: URL(string: "data:,four")!)
                _ = try await session.data(from: HandlerTests.url.appending(path: "own"))
                await expectFailure(.handlerFailed) {
                    try await session.data(from: HandlerTests.url.appending(path: "fails"))
                }
            }
            let transactions = recorder.loads.compactMap { $0.metrics?.transactions }
            #expect(transactions.map(\.count) == [1, 1, 1], "\(recorder)")
            #expect(transactions.joined().allSatisfy { $0.fetchType == .local && $0.connectionID == nil })
            #expect(transactions.joined().map(\.responseContentBytes) == [4, 3, 0])
            #expect(transactions.joined().map { $0.error?.reason } == [nil, nil, .handlerFailed])
            #expect(transactions.joined().map { $0.responseEnd != nil } == [true, true, false])

            var forwarding = Configuration.ephemeral
            forwarding.observers = [recorder]
            forwarding.handlers = [RecordingHandler()]
            try await withSession(forwarding) { try await $0.expect(origin.url(), "hello") }
            let forwarded = try #require(recorder.loads.last?.metrics)
            #expect(
                forwarded.transactions.count == 1 && forwarded.transactions[0].fetchType == .network, "\(forwarded)")
        }
    }

    @Test("a large body, sent again to where a redirect leads")
    func sentAgain() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/elsewhere", status: .temporaryRedirect) }
            origin.route("/elsewhere") { .ok("\($0.bodyCount)") }
            try await withSession(.ephemeral) { session in
                let task = session.dataTask(Request(url: origin.url(), method: .put, body: .data(Data(count: 1 << 20))))
                    .resumed()
                let metrics = try await task.metrics
                expectOrder(metrics)
                let last = try #require(metrics.transactions.last)
                #expect(
                    last.requestContentBytes == 1 << 20 && last.requestBodyBytes == 1 << 20 && last.requestEnd != nil)
            }
        }
    }

    @Test("whatever befalls loads: moments in order, entries that add up", arguments: 1...4 as ClosedRange<UInt64>)
    func faults(_ seed: UInt64) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok(.bytes([UInt8](repeating: 65, count: 2000)), headers: ["X-Path": $0.path]) }
            origin.route("/to") { _ in .redirect("/") }
            origin.setSchedule(.init(seed: seed, probability: 0.4))
            let (recorder, archiver) = (EventRecorder(), HTTPArchiver())
            try await withSession(.patient.with { $0.observers = [recorder, archiver] }) { session in
                await withTaskGroup(of: Void.self) { group in
                    for index in 0..<60 {
                        var request = Request(url: origin.url(index % 3 == 0 ? "/to" : "/"))
                        if index % 4 == 0 { (request.method, request.body) = (.put, .data(Data(count: index * 3000))) }
                        group.addTask { [request] in _ = try? await session.data(for: request) }
                    }
                }
            }
            #expect(
                recorder.loads.count == 60 && recorder.loads.allSatisfy { $0.isLegal && $0.isComplete }, "\(recorder)")
            for load in recorder.loads {
                let metrics = try #require(load.metrics)
                expectOrder(metrics)
                #expect(
                    !metrics.transactions.isEmpty && metrics.transactions.last?.error?.reason == load.error?.reason,
                    "\(metrics)")
                #expect(load.error != nil || metrics.transactions.last?.responseContentBytes == load.received)
            }
            let check = ArchiveCheck(archiver.archive.json)
            #expect(check.problems == [] && check.entries.count >= 60)
        }
    }

    @Test("a download, and data tasks that become a download or a stream")
    func becoming() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.bytes([UInt8](repeating: 65, count: 300_000))) }
            let recorder = EventRecorder()
            try await withSession(.ephemeral.with { $0.observers = [recorder] }) { session in
                let download = session.downloadTask(Request(url: origin.url())).resumed()
                _ = try await download.value
                let metrics = try await download.metrics
                expectOrder(metrics)
                #expect(metrics.transactions.map(\.responseContentBytes) == [300_000])

                var decisions = Decisions()
                decisions.response = Decision { _ in .becomeDownload() }
                let task = session.dataTask(Request(url: origin.url()), decisions: decisions)
                let events = task.events
                task.resume()
                var became: LoadTask<DownloadedFile>?
                for await event in events { if case .becameDownload(let next) = event { became = next } }
                let saved = try await #require(became).metrics
                #expect(
                    saved.transactions.map(\.responseContentBytes) == [300_000]
                        && saved.transactions[0].responseEnd != nil)

                decisions.response = Decision { _ in .becomeStream }
                let raw = session.dataTask(Request(url: origin.url()), decisions: decisions).resumed()
                let handedOver = try await raw.metrics
                #expect(
                    handedOver.transactions.count == 1 && handedOver.transactions[0].responseEnd == nil, "\(handedOver)"
                )
                #expect(
                    handedOver.transactions[0].response?.http?.status == .ok && handedOver.transactions[0].error == nil)
                try await recorder.wait(for: .completed, count: 3)
                #expect(recorder.loads.allSatisfy { $0.isLegal && $0.isComplete }, "\(recorder)")
            }
        }
    }
}
