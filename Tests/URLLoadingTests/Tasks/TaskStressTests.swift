// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting

/// Many handles under random faults and random hands: every sequence of events is legal and has its
/// end, and nothing is left.
@Suite(.serialized) struct TaskStressTests {
    @Test("10,000 tasks under random faults: every order is legal (checklist 45, 47)")
    func order() async throws {
        try await StressTests.withRandomFaults(StressTests.isLong ? 10_000 : 1000, seed: 11) {
            await Self.use($0, $1, &$2)
        }
    }

    /// One task, in one of its uses, with its events checked.
    static func use(_ session: Session, _ request: Request, _ random: inout SeededGenerator) async {
        var request = request
        if request.method == .put, Bool.random(using: &random) {
            let count = Int.random(in: 0...5, using: &random)
            request.body = .stream { Pieces(left: count) }
        }
        var decisions = Decisions()
        if Int.random(in: 0..<4, using: &random) == 0 {
            let answer: ResponseDisposition = Bool.random(using: &random) ? .allow : .cancel
            decisions.response = Decision { _ in answer }
        }
        let task = session.dataTask(request, decisions: decisions)
        let events = task.events
        let watching = Task {
            var order = LoadEventOrder()
            for await event in events {
                let isLegal = order.accept(event)
                #expect(isLegal, "\(order)")
            }
            #expect(order.isComplete, "\(order)")
        }
        task.resume()
        let delay = Duration.microseconds(Int.random(in: 0...2000, using: &random))
        switch Int.random(in: 0..<8, using: &random) {
        case 0: _ = try? await task.value
        case 1: if let body = try? await task.body { do { for try await _ in body {} } catch {} }
        case 2: if let body = try? await task.body { do { for try await _ in body { break } } catch {} }
        case 3: _ = try? await task.response
        case 4:
            try? await Task.sleep(for: delay)
            task.cancel()
            _ = try? await task.value
        case 5:
            task.suspend()
            try? await Task.sleep(for: delay)
            task.resume()
            _ = try? await task.value
        case 6:
            let value = Task { try await task.value }
            try? await Task.sleep(for: delay)
            value.cancel()
            _ = try? await value.value
            task.cancel()
        default:
            // Dropped: the handle goes with this scope.
            try? await Task.sleep(for: delay)
        }
        await Self.end(of: watching, consume task)
    }

    private static func end(of watching: Task<Void, Never>, _ task: consuming LoadTask<Data>) async {
        if case .running = task.snapshot.state { task.cancel() }
        _ = consume task
        await watching.value
    }

    struct Pieces: AsyncSequence, AsyncIteratorProtocol {
        var left: Int
        mutating func next() async -> [UInt8]? {
            left -= 1
            await Task.yield()
            return left >= 0 ? [UInt8](repeating: 1, count: 1000) : nil
        }
        func makeAsyncIterator() -> Pieces { self }
    }

    @Test("storms of suspend, resume and cancel from 8 threads (checklist 34, 168; security 84)")
    func storms() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: 200_000)) }
            let session = Session(.patient)
            for round in 0..<(StressTests.isLong ? 60 : 12) {
                let tasks = (0..<8).map { _ in session.dataTask(from: origin.url()) }
                let cancels = round % 3 == 0
                await Threads.run(8) { thread in
                    var random = SeededGenerator(seed: UInt64(round * 100 + thread))
                    for _ in 0..<400 {
                        let task = tasks[Int.random(in: 0..<8, using: &random)]
                        switch Int.random(in: 0..<8, using: &random) {
                        case 0, 1: task.resume()
                        case 2, 3: task.suspend()
                        case 4: _ = task.snapshot
                        case 5: _ = task.events
                        case 6: _ = task.description
                        default: if cancels, Int.random(in: 0..<50, using: &random) == 0 { task.cancel() }
                        }
                    }
                }
                for task in tasks {
                    // Whatever came before, the last call holds.
                    task.suspend()
                    if case .running = task.snapshot.state { Issue.record("\(task)") }
                    task.resume()
                    let count = try? await task.value.count
                    guard case .completed(let error) = task.snapshot.state else {
                        Issue.record("\(task)")
                        continue
                    }
                    if let error {
                        #expect(cancels && error.reason == .cancelled, "\(error)")
                    } else {
                        #expect(count == 200_000)
                    }
                }
            }
            await expectEmpty(session)
            try await origin.wait { $0.open == 0 }
        }
    }
}

/// Threads of the system, as synchronous callers have, and not tasks.
enum Threads {
    private final class Work: Sendable {
        let run: @Sendable (Int) -> Void
        let left: Atomic<Int>
        let done: AsyncStream<Void>.Continuation
        init(_ count: Int, _ done: AsyncStream<Void>.Continuation, _ run: @escaping @Sendable (Int) -> Void) {
            self.run = run
            left = Atomic(count)
            self.done = done
        }
    }
    private final class Start {
        let work: Work
        let number: Int
        init(_ work: Work, _ number: Int) { (self.work, self.number) = (work, number) }
    }

    static func run(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) async {
        let (stream, done) = AsyncStream.makeStream(of: Void.self)
        let work = Work(count, done, body)
        for number in 0..<count {
            var thread = pthread_t()
            pthread_create(
                &thread, nil,
                { context in
                    guard let context else { return nil }
                    let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
                    start.work.run(start.number)
                    if start.work.left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
                        start.work.done.finish()
                    }
                    return nil
                }, Unmanaged.passRetained(Start(work, number)).toOpaque())
            pthread_detach(thread)
        }
        for await _ in stream {}
    }
}
