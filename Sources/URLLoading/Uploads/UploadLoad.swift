// One request of a resumable upload: a load in its caller's task, whose events are heard beside it, so
// that what the server says while it reads can be acted upon before it has answered.

import FoundationEssentials
import URLLoadingIO

final class UploadLoad: Load, @unchecked Sendable {
    private let events = EventQueue()

    init(_ core: Core, _ request: Request, _ decisions: Decisions?) {
        super.init(core, request, decisions, isHandle: true)
    }

    override func hear(_ event: LoadEvent) { events.append(event) }

    /// Runs it to its end. The load goes on while `hear` waits; what `hear` throws ends it.
    func run(
        _ hear: nonisolated(nonsending) (LoadEvent) async throws(LoadError) -> Void
    ) async throws(LoadError) -> (Data, Response) {
        startClock()
        guard core.registry.enter(self) else { throw .sessionInvalidated(original.url) }
        let outcome: Result<(Data, Response), LoadError> = await withTaskCancellationHandler {
            async let outcome = collect()
            let failure = await listen(hear)
            if failure != nil { stop(.cancelled) }
            let ended = await outcome
            return failure.map { .failure($0) } ?? ended
        } onCancel: {
            stop(.cancelled)
        }
        return try outcome.get()
    }

    private func listen(_ hear: nonisolated(nonsending) (LoadEvent) async throws(LoadError) -> Void) async -> LoadError?
    {
        while let event = await events.next() {
            do throws(LoadError) { try await hear(event) } catch { return error }
        }
        return nil
    }
}

/// A wait that ends with its session.
final class UploadPause: LoadControl, @unchecked Sendable {
    private let core: Core

    init(_ core: Core) {
        self.core = core
        super.init(idle: nil, resource: nil, clock: core.configuration.clock)
    }

    /// - Parameter nanoseconds: at least 0.
    func wait(_ nanoseconds: Int64, at url: URL?) async throws(LoadError) {
        guard core.registry.enter(self) else {
            throw LoadError(.sessionInvalidated, phase: .preparing, party: .local, url: url)
        }
        defer { core.registry.leave(self) }
        let moment = clock.now().addingReportingOverflow(nanoseconds)
        await withTaskCancellationHandler {
            _ = try? await clock.sleep(until: moment.overflow ? .max : moment.partialValue, self)
        } onCancel: {
            stop(.cancelled)
        }
        if let stopReason { throw LoadError(stopReason, phase: .waiting).at(url) }
    }
}
