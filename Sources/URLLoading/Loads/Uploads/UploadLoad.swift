// SPDX-License-Identifier: Apache-2.0

// One request of a resumable upload: a load in its caller's task, whose events are handled concurrently, so that
// interim responses take effect before the final response.

import FoundationEssentials
import URLLoadingIO

struct UploadLoad: Sendable {
    private let load: Load
    private let request: Request
    private let events = Events()

    private final class Events: LoadListener {
        let queue = EventQueue()
        func process(_ event: LoadEvent) { queue.append(event) }
    }

    init(_ core: Core, _ request: Request, _ decisions: Decisions?) throws(LoadError) {
        self.request = request
        load = try Load.begin(core, request, decisions, consumer: .collector, telling: events)
    }

    func stop() { load.context.stop(.cancelled) }

    /// Runs the load to its end. The load continues while `process` waits; an error that `process` throws ends it.
    func run(
        _ process: nonisolated(nonsending) (LoadEvent) async throws(LoadError) -> Void
    ) async throws(LoadError) -> (Data, Response) {
        let outcome: Result<(Data, Response), LoadError> = await withTaskCancellationHandler {
            async let outcome = collect()
            let failure = await listen(process)
            if failure != nil { stop() }
            let ended = await outcome
            return failure.map { .failure($0) } ?? ended
        } onCancel: {
            stop()
        }
        return try outcome.get()
    }

    private func collect() async -> Result<(Data, Response), LoadError> {
        var data = Data()
        let exchange = await load.collect(request, into: &data)
        return exchange.map { (data, $0.response) }
    }

    private func listen(_ process: nonisolated(nonsending) (LoadEvent) async throws(LoadError) -> Void) async
        -> LoadError?
    {
        while let event = await events.queue.next() {
            do throws(LoadError) { try await process(event) } catch { return error }
        }
        return nil
    }
}

/// A delay that ends when its session is invalidated.
struct UploadPause {
    let core: Core

    /// - Parameter nanoseconds: at least 0.
    func wait(_ nanoseconds: Int64, at url: URL?) async throws(LoadError) {
        let clock = core.configuration.clock
        let handle = LoadHandle(idle: nil, resource: nil, clock: clock)
        guard core.registry.enter(handle) else {
            throw LoadError(.sessionInvalidated, phase: .preparing, party: .local, url: url)
        }
        defer { core.registry.leave(handle) }
        let moment = clock.now().saturatingAdd(nanoseconds)
        await withTaskCancellationHandler {
            _ = try? await clock.sleep(until: moment, handle)
        } onCancel: {
            handle.stop(.cancelled)
        }
        if let reason = handle.stopReason { throw LoadError(reason, phase: .waiting).at(url) }
    }
}
