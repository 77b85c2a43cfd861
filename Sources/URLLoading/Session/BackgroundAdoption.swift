// SPDX-License-Identifier: Apache-2.0

// The tasks of the classic API for transfers that earlier programs have submitted.

package import FoundationEssentials
import Synchronization
import URLLoadingIO

/// The load of a transfer that an earlier program has submitted: a task of this process that did not begin it.
package enum AdoptedLoad: Sendable {
    case download(LoadTask<DownloadedFile>)
    case upload(LoadTask<Data>)

    var driver: TaskDriver {
        switch self {
        case .download(let task): task.load
        case .upload(let task): task.load
        }
    }
}

extension Session {
    /// Creates the load of a transfer that the agent has already. Once it is resumed it reports the progress; the event
    /// is passed to it by ``BackgroundTransfers/adopt(_:adopted:finished:)``.
    package nonisolated func adopt(
        _ transfer: BackgroundTransfer, _ request: Request, decisions: Decisions?, sink: any LoadSink
    ) -> AdoptedLoad {
        let isDownload = transfer.kind == .download
        let driver = TaskDriver(
            core, request, decisions?.challengesOnly,
            TaskWork(
                sink: sink, download: isDownload ? DownloadWork(DownloadOptions(), nil, core.configuration) : nil,
                background: agent.map { BackgroundWork($0, adopting: transfer.record) }), holdsSession: true)
        return isDownload ? .download(LoadTask(driver, self)) : .upload(LoadTask(driver, self))
    }
}

extension BackgroundTransfers {
    /// Gives each transfer of an earlier program a load, and passes the events to these loads, missed ones first, one
    /// at a time and in order. An event is acknowledged when it was delivered (``LoadTask/delivered()``). Returns when
    /// the session is invalidated.
    /// - Parameters:
    ///   - make: creates the load of a transfer, with ``Session/adopt(_:_:decisions:sink:)``, and resumes it unless the
    ///     transfer is suspended; returns `nil` if the session is gone.
    ///   - adopted: called once, when all transfers have their loads, or the agent cannot be reached.
    ///   - finished: called when all missed events were delivered.
    @concurrent
    package func adopt(
        _ make: @escaping @Sendable (BackgroundTransfer) -> AdoptedLoad?, adopted: @Sendable () -> Void,
        finished: @Sendable () async -> Void
    ) async {
        guard let connection = try? checked() else { return adopted() }
        let loads = Lock<[String: TaskDriver]>([:])
        let load = { @Sendable (record: TransferRecord) async -> TaskDriver? in
            if let known = loads.withLock({ $0[record.id] }), known.background?.hasFailed == false { return known }
            await connection.adopt(record.id)
            guard let made = make(BackgroundTransfer(record, connection))?.driver else {
                await connection.abandon(record.id)
                return nil
            }
            loads.withLock { $0[record.id] = made }
            return made
        }
        for record in (try? await connection.earlierTransfers()) ?? [] { _ = await load(record) }
        adopted()
        var delay = Duration.milliseconds(100)
        while !core.registry.isClosed {
            do {
                try await connection.handleEvents { event in
                    guard let event else { return await finished() }
                    let id = event.record.id
                    guard let driver = await load(event.record) else { throw AgentFailure.cancelled }
                    // The task of a suspended transfer may not have begun.
                    driver.resume()
                    await connection.pass(event)
                    await driver.background?.delivered()
                    if driver.background?.leavesEvent == true { throw AgentFailure.lost }
                    loads.withLock { $0[id] = nil }
                    await connection.abandon(id)
                }
                return
            } catch {
                // The agent cannot be reached, another session has the identifier, or a file could not be taken over:
                // the tasks have said so.
                try? await Task.sleep(for: delay)
                delay = min(delay * 2, .seconds(10))
            }
        }
    }
}

extension LoadTask {
    /// Sets the options of the task's transfer. To be called before the load begins.
    package func setBackground(_ options: BackgroundOptions) {
        guard let order = load.background?.change({ $0.take(options, load.core.configuration) }) else { return }
        do throws(LoadError) { try order.check(request) } catch { load.refuse(error.at(request.url)) }
    }

    /// Acknowledges the event of the task's transfer: the program has its result.
    package func delivered() {
        guard let background = load.background else { return }
        Task { await background.closureReturned(isDone: true) }
    }
}
