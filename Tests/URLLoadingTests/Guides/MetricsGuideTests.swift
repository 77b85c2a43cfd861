// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/metrics.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct MetricsGuideTests {
    struct SlowLoads: LoadObserver {
        let report: @Sendable (String) -> Void
        func observe(_ event: LoadEvent, of load: LoadIdentity) {
            guard case .metrics(let metrics) = event, metrics.duration > .milliseconds(1) else { return }
            report("\(load): \(metrics)")
        }
    }

    /// The lines that an example prints.
    final class Output {
        var lines: [String] = []
        func note(_ items: [Any]) { lines.append(items.map { "\($0)" }.joined(separator: " ")) }
    }

    /// Runs an example with a URL that redirects once.
    nonisolated(nonsending) func withRedirect(_ example: (Session, URL, Output) async throws -> Void) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("/next") }
            origin.route("/next") { _ in .ok("hello") }
            try await example(Session(), origin.url(), Output())
        }
    }

    @Test("metrics of one load")
    func one() async throws {
        try await withRedirect { session, url, output in
            func print(_ items: Any...) { output.note(items) }

            let task = session.dataTask(from: url)
            task.resume()
            let metrics = try await task.metrics
            print(metrics.duration, metrics.redirectCount)
            for transaction in metrics.transactions {
                print(transaction.request.url, transaction.response?.http?.status.code ?? 0)
                if let first = transaction.responseStart { print("first byte after", first - transaction.fetchStart) }
            }
            let printed = output.lines
            #expect(
                printed.count == 5 && printed[0].hasSuffix(" 1") && printed[3] == "\(url.appending(path: "next")) 200",
                "\(printed)")
        }
    }

    @Test("metrics of every load")
    func every() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseHead(after: 0), .delay(.milliseconds(2)))]) { _ in .ok("hello") }
            let lines = Lock<[String]>([])
            var configuration = Configuration.default
            configuration.observers = [SlowLoads { line in lines.withLock { $0.append(line) } }]
            let session = Session(configuration)
            _ = try await session.data(from: origin.url())
            let line = lines.withLock { $0.first } ?? ""
            #expect(line.contains("GET \(origin.url())") && line.contains(" ms: 200 in "), "\(line)")
        }
    }

    @Test("a waterfall")
    func waterfall() async throws {
        try await withRedirect { session, url, output in
            func print(_ items: Any...) { output.note(items) }
            let task = session.dataTask(from: url)
            task.resume()

            let waterfall = Waterfall([try await task.metrics])
            for connection in waterfall.connections {
                for row in connection.rows {
                    let bar = String(repeating: " ", count: Int(row.start / waterfall.duration * 60))
                    print(bar, row.status?.code ?? 0, row.url, row.duration)
                }
            }
            let printed = output.lines
            #expect(
                printed.count == 2 && printed[1].contains(" 200 \(url.appending(path: "next")) "), "\(printed)")
        }
    }

    @Test("a session at work")
    func live() async throws {
        let path = FileManager.default.temporaryDirectory.path() + "/live-\(UInt64.random(in: 0 ... .max))"
        let session = Session(.ephemeral)
        try session.exposeStatistics(at: path)  // urlload top PATH
        #expect(FileManager.default.fileExists(atPath: path))
        session.invalidateAndCancel()
        await session.invalidated()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("a file for other tools")
    func archive() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            let file = FileManager.default.temporaryDirectory.appending(
                path: "guide-\(UInt64.random(in: 0 ... .max)).har")
            defer { try? FileManager.default.removeItem(at: file) }
            var configuration = Configuration.default
            let url = origin.url()

            let archiver = HTTPArchiver()
            configuration.observers = [archiver]
            let session = Session(configuration)
            _ = try await session.data(from: url)
            try archiver.archive.write(to: file)
            #expect(try ArchiveCheck(Data(contentsOf: file)).problems == [])
        }
    }
}
