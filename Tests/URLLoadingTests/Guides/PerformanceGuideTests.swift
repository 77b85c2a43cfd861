// SPDX-License-Identifier: Apache-2.0

// The example of docs/guides/performance.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
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
}
