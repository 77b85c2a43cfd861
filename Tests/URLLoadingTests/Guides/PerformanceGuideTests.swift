// SPDX-License-Identifier: Apache-2.0

// The example of docs/guides/performance.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@Suite(.timeLimit(.minutes(1)))
struct PerformanceGuideTests {
    @Test func `a tree of tasks loads on the polling thread`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            let url = origin.url()
            func crawl(_ session: Session) async {
                let isOnLoop = withUnsafeCurrentTask {
                    $0?.unownedTaskExecutor == eventLoopExecutor.asUnownedTaskExecutor()
                }
                #expect(isOnLoop)
                let data = try? await session.data(from: url).0
                #expect(data == Data("hello".utf8))
            }
            try await withSession(.ephemeral) { session in
                await withTaskExecutorPreference(eventLoopExecutor) {
                    await crawl(session)
                }
            }
        }
    }

    @Test("a crawl of one host indexes or notes each page, however many of them wait for their turns")
    func crawler() async throws {
        let clock = ManualClock()
        let (indexed, noted) = (Watched<Set<URL>>([]), Watched<[String]>([]))
        @Sendable func index(_ data: Data, of url: URL) async { _ = indexed.change { $0.insert(url).inserted } }
        @Sendable func note(_ url: URL, _ reason: String) async { noted.change { $0.append(reason) } }

        var configuration = Configuration.ephemeral
        configuration.use(clock)
        // The clock is advanced while responses are on their way.
        configuration.timeouts.idle = .seconds(1_000_000)
        configuration.connections.idleLifetime = .seconds(1_000_000)
        configuration.handlers.append(RequestRate(perSecond: 1, maximumWait: .seconds(300)))
        let session = Session(configuration)
        try await withHTTPTestServer { origin in
            origin.route("/*") { $0.target == "/7" ? .status(.notFound) : .ok("page") }
            let urls = (0..<300).map { origin.url("/\($0)") }
            let driving = Task {
                while !Task.isCancelled {
                    try await clock.untilSleeping()
                    clock.advance(by: .seconds(1))
                }
            }
            await withTaskGroup(of: Void.self) { group in
                for (number, url) in urls.enumerated() {
                    if number >= 256 { _ = await group.next() }
                    group.addTask {
                        do throws(LoadError) {
                            let (data, response) = try await session.data(from: url)
                            guard response.status == .ok else { return await note(url, "\(response.status)") }
                            await index(data, of: response.url)
                        } catch {
                            await note(url, "\(error.reason)")
                        }
                    }
                }
            }
            driving.cancel()
            #expect(indexed.value.count == 299)
            #expect(noted.value.count == 1 && noted.value.first?.hasPrefix("404") == true, "\(noted.value)")
        }
        session.invalidateAndCancel()
    }
}
