// SPDX-License-Identifier: Apache-2.0

// The persistent state of the agent.

import URLLoadingIO

/// One transfer as it is recorded.
struct JournaledTransfer: Sendable, Equatable {
    var id: String
    /// The order in which transfers were accepted.
    var number: Int64
    var identifier: String
    /// An encoded ``TransferOrder``.
    var order: [UInt8]
    /// An encoded ``TransferState``.
    var state: [UInt8]
    /// The encoded ``TransferProgress``: resumption data and byte counts.
    var progress: [UInt8]

    init(id: String, number: Int64, identifier: String, order: [UInt8], state: [UInt8], progress: [UInt8]) {
        (self.id, self.number, self.identifier) = (id, number, identifier)
        (self.order, self.state, self.progress) = (order, state, progress)
    }
}

/// An event that has not been delivered to its program.
struct JournaledEvent: Sendable, Equatable {
    var sequence: Int64
    var identifier: String
    var transfer: String

    init(sequence: Int64, identifier: String, transfer: String) {
        (self.sequence, self.identifier, self.transfer) = (sequence, identifier, transfer)
    }
}

/// One change. The changes of a group are written together or not at all.
enum JournalChange: Sendable, Equatable {
    case identifier(String, settings: [UInt8])
    case removeIdentifier(String)
    case transfer(JournaledTransfer)
    /// Changes the variable part of a transfer.
    case update(number: Int64, state: [UInt8], progress: [UInt8])
    case removeTransfer(id: String)
    /// Secrets of a transfer or of an identifier, in a separate table.
    case secrets(owner: String, [UInt8])
    case removeSecrets(owner: String)
    case event(JournaledEvent)
    case removeEvent(sequence: Int64)
}

/// The complete content of a journal.
struct JournalContent: Sendable, Equatable {
    var identifiers: [String: [UInt8]] = [:]
    var transfers: [JournaledTransfer] = []
    var secrets: [String: [UInt8]] = [:]
    var events: [JournaledEvent] = []
    /// Greater than the number of any transfer and the sequence of any event so far, including removed ones.
    var nextNumber: Int64 = 1

    init() {}
}

enum JournalFailure: Error, Sendable, Equatable {
    /// Another agent uses the journal.
    case inUse
    /// A later version has written the journal.
    case newer(version: Int64)
    case failed(String)
}

/// The persistent memory of the agent. Groups are written in the order of the calls of `write`.
protocol Journal: Sendable {
    /// A problem that was solved when the journal was opened, for the log.
    var problem: String? { get }
    /// Returns the content when the journal was opened, and lets go of it: later calls return `nil`.
    func takeContent() -> JournalContent?
    /// Queues a group of changes. Never blocks.
    /// - Parameters:
    ///   - mayFail: whether a group that cannot be written is dropped; otherwise its write is retried until it
    ///     succeeds.
    ///   - done: called on a thread of the journal when the group is on the disk, or was dropped.
    func write(_ changes: [JournalChange], mayFail: Bool, done: @escaping @Sendable (JournalFailure?) -> Void)
    /// Waits until every queued group was attempted. Blocks.
    func finish()
}

extension Journal {
    /// Writes a group, and returns when it is on the disk.
    func write(_ changes: [JournalChange], mayFail: Bool) async throws(JournalFailure) {
        let failure: JournalFailure? = await withCheckedContinuation { continuation in
            write(changes, mayFail: mayFail) { continuation.resume(returning: $0) }
        }
        if let failure { throw failure }
    }
}
