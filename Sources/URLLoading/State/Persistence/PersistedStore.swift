// SPDX-License-Identifier: Apache-2.0

// In this folder: a table in memory with a file behind it

// A table with an optional file: read at first use, written in the background, compared with the changes of other
// processes once a second at most. `StateDisk` says how. Cookies and HSTS hosts are stored in one each.

import URLLoadingIO

final class PersistedStore<Table: PersistedTable>: Sendable {
    private let memory: TableMemory<Table>
    private let disk: StateDisk<TableMemory<Table>>?
    private let threads: BlockingThreads

    /// - Parameters:
    ///   - folder: the folder of the file; `nil` for a table in memory only.
    ///   - threads: access the file.
    ///   - notify: called after changes that observers are notified of, on the thread that makes them.
    init(
        _ table: Table, folder: String?, threads: BlockingThreads = .files, notify: @escaping @Sendable () -> Void = {}
    ) {
        let memory = TableMemory(table, hasFile: folder != nil, notify)
        self.memory = memory
        self.threads = threads
        disk = folder.map { StateDisk(folder: $0, memory: memory) }
    }

    deinit {
        guard let disk, memory.hasPending else { return }
        threads.run { disk.write() }
    }

    /// The number of rows in memory.
    var count: Int { memory.count }
    var hasFile: Bool { disk != nil }

    /// Reads the table, as it is in memory.
    func read<R: Sendable>(_ body: (Table) -> R) -> R { memory.read(body) }

    /// Changes the table. May block at the first call, which reads the file.
    func change<R: Sendable>(_ body: (inout TableState<Table>) -> R) -> R {
        disk?.load()
        return changeMemory(body)
    }

    /// Changes the table without waiting for the file. If that has not been read, it is merged with the changes later.
    func changeMemory<R: Sendable>(_ body: (inout TableState<Table>) -> R) -> R {
        let (result, isPending) = memory.change(body)
        if isPending { disk?.schedule() }
        return result
    }

    // MARK: The file

    /// A description of the first failure with the file; `nil` without a failure or without a file.
    var problem: String? { disk?.problem }
    /// Whether the table can be used without reading the file.
    var isFresh: Bool { disk?.isFresh ?? true }
    /// Whether the file has been read before, or there is none.
    var isKnown: Bool { disk?.isKnown ?? true }

    /// Reads the file, if it has not been read. May block.
    func load() { disk?.load() }

    /// Reads the file, or checks it for changes of other processes. May block.
    func refresh() { disk?.refresh() }

    /// Refreshes the table on a thread that may block.
    ///
    /// Without this check, an idle process would send cookies that another process has removed or renewed. A check that
    /// takes too long is given up, and the table is used as it is in memory: file access that hangs must not stop the
    /// loads. Only the first read of the file is waited for without limit.
    func refresh(for load: LoadHandle) async {
        guard let disk else { return }
        guard disk.isLoaded else {
            _ = await threads.call(load) { disk.load() }
            return
        }
        guard disk.claimsCheck() else { return }
        _ = await threads.call(load, until: load.clock.now() &+ Self.checkTimeout) { disk.check() }
    }

    /// The maximum duration of a check, in nanoseconds.
    private static var checkTimeout: Int64 { 1_000_000_000 }

    /// Returns when all earlier changes are in the file. Cancelling the calling task does not shorten the wait.
    @concurrent func flush() async {
        guard let disk else { return }
        _ = await threads.call(.never) { disk.finish() }
    }

    /// Reads the changes of other processes now.
    @concurrent func reload() async {
        guard let disk else { return }
        _ = await threads.call(.never) {
            disk.load()
            disk.readChanges()
        }
    }
}
