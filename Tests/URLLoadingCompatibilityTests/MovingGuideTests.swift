// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/moving.md that mix the classic and the new API, compiled and run. A change of an example
// must be made in both places. The ways to migrate are in Tests/IntegrationTests/Classic.

import Foundation
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct MovingGuideTests {
    final class Pieces: NSObject, URLSessionDataDelegate, Sendable {
        let (stream, into) = AsyncThrowingStream.makeStream(of: Data.self)
        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { into.yield(data) }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            into.finish(throwing: error)
        }
    }

    @Test("guide: a classic task's events as a sequence, to its end and to its error")
    func sequence() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 3_000_000)) }
            origin.route("/cut") { _ in .ok(.declared(100, bytes: Array("half".utf8))) }
            let session = URLSession(configuration: .ephemeral)
            let url = origin.url()
            var counts: [Int] = []

            let pieces = Pieces()
            let task = session.dataTask(with: url)
            task.delegate = pieces
            task.resume()
            for try await data in pieces.stream { counts.append(data.count) }

            #expect(counts.count > 1 && counts.reduce(0, +) == 3_000_000)
            let cut = Pieces()
            let failing = session.dataTask(with: origin.url("/cut"))
            failing.delegate = cut
            failing.resume()
            var got = Data()
            do {
                for try await data in cut.stream { got += data }
                Issue.record("half of it is no end")
            } catch { #expect((error as? URLError)?.code == .networkConnectionLost && got == Data("half".utf8)) }
            session.invalidateAndCancel()
        }
    }

    protocol LoaderDelegate: AnyObject {
        func loader(_ loader: Loader, didLoad data: Data)
        func loader(_ loader: Loader, didFailWith error: any Error)
    }

    final class Loader: @unchecked Sendable {
        weak var delegate: (any LoaderDelegate)?

        func load(_ url: URL) -> Task<Void, Never> {
            Task {
                do {
                    let (data, _) = try await URLLoading.Session.shared.data(from: url)
                    OperationQueue.main.addOperation { self.delegate?.loader(self, didLoad: data) }
                } catch {
                    OperationQueue.main.addOperation { self.delegate?.loader(self, didFailWith: error) }
                }
            }
        }
    }

    /// The classic code in the example, which expects the main queue.
    final class Screen: LoaderDelegate, @unchecked Sendable {
        let shown = Box<String>(), changed = Counter()
        func loader(_ loader: Loader, didLoad data: Data) { show(String(decoding: data, as: UTF8.self)) }
        func loader(_ loader: Loader, didFailWith error: any Error) {
            show("\((error as? LoadError)?.reason == .connectionRefused)")
        }
        private func show(_ text: String) {
            shown.add(text + (OperationQueue.current === OperationQueue.main ? "" : " elsewhere"))
            changed.add()
        }
    }

    @Test("guide: an async session behind a classic delegate, which is called on the promised queue")
    func behindDelegate() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("hello") }
            let loader = Loader()
            let screen = Screen()
            loader.delegate = screen
            await loader.load(origin.url()).value
            await screen.changed.reaches(1)
            await loader.load(try url("http://127.0.0.1:1/")).value
            await screen.changed.reaches(2)
            #expect(screen.shown.all == ["hello", "true"])
        }
    }
}
