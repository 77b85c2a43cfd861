// SPDX-License-Identifier: Apache-2.0

// In this folder: where servers offer HTTP/3

import FoundationEssentials
import URLLoadingWire

/// Where servers offer HTTP/3 (RFC 7838), in memory or with a file beside that of an `HSTSStore`, which owns it: both
/// are what servers have said of how they are reached, and both identify a user who does not forget them.
final class AlternativeServiceStore: Sendable {
    private let table: PersistedStore<AlternativeServiceTable>

    /// - Parameter folder: the folder of the file; `nil` for a store in memory only.
    init(folder: String? = nil) { table = PersistedStore(AlternativeServiceTable(), folder: folder) }

    /// Returns where HTTP/3 is to be tried; see ``AlternativeServiceTable/target(for:isPreferred:now:)``.
    func target(for origin: Origin, isPreferred: Bool) -> AlternativeServiceTable.Target? {
        guard table.count > 0 else { return isPreferred ? AlternativeServiceTable.Target() : nil }
        let now = Date.now
        return table.read { $0.target(for: origin, isPreferred: isPreferred, now: now) }
    }

    /// Whether the origin has offered HTTP/3.
    func knows(_ origin: Origin) -> Bool {
        guard table.count > 0 else { return false }
        let now = Date.now
        return table.read { $0.knows(origin, now: now) }
    }

    // MARK: Changes

    /// Learns the field of a response. The caller makes sure that the origin is secure, and its certificate was
    /// verified.
    func learn(_ field: AlternativeServices, from origin: Origin) {
        let now = Date.now
        // Without reading the file, which may take long: this is the task of a load, perhaps on the event loop.
        table.changeMemory { $0.learn(field, from: origin, now: now) }
    }

    /// Notes that loads did not wait for the end of an attempt.
    func isSlow(_ origin: Origin) { change(origin) { record, _ in record.isSlow = true } }

    /// Removes the offer of an origin.
    func forget(_ origin: Origin) { change(origin) { record, _ in record.forget() } }

    func failed(_ origin: Origin) { change(origin) { record, now in record.failed(now: now) } }

    func succeeded(_ origin: Origin) {
        guard table.count > 0 else { return }
        change(origin) { record, _ in record.succeeded() }
    }

    private func change(_ origin: Origin, _ body: (inout AlternativeServiceRecord, Date) -> Void) {
        let now = Date.now
        table.change { state in state.change(origin, now: now) { body(&$0, now) } }
    }

    /// Removes what was learned at a moment or later. May block, as any access to the file.
    func removeAll(since moment: Date) { table.change { $0.removeAll(since: moment) } }

    // MARK: The file

    var problem: String? { table.problem }
    @concurrent func flush() async { await table.flush() }
    @concurrent func reload() async { await table.reload() }

    /// Whether the store can be asked without reading the file.
    var isReady: Bool { table.isFresh }
    /// Reads the file on a thread that may block.
    func load(for load: LoadHandle) async { await table.refresh(for: load) }
}
