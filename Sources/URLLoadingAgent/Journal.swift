// What the agent must not forget.

import URLLoadingIO

/// One transfer as it is written down.
struct JournaledTransfer: Sendable, Equatable {
    var id: String
    /// In the order they were accepted.
    var number: Int64
    var identifier: String
    /// A ``TransferOrder``.
    var order: [UInt8]
    /// A ``TransferState``.
    var state: [UInt8]
    /// What the transfer goes on with, and how far it had come.
    var progress: [UInt8]

    init(id: String, number: Int64, identifier: String, order: [UInt8], state: [UInt8], progress: [UInt8]) {
        (self.id, self.number, self.identifier) = (id, number, identifier)
        (self.order, self.state, self.progress) = (order, state, progress)
    }
}

/// An event that waits for its program.
struct JournaledEvent: Sendable, Equatable {
    var sequence: Int64
    var identifier: String
    var transfer: String

    init(sequence: Int64, identifier: String, transfer: String) {
        (self.sequence, self.identifier, self.transfer) = (sequence, identifier, transfer)
    }
}

/// One change; the changes of a group are written together or not at all.
enum JournalChange: Sendable, Equatable {
    case identifier(String, settings: [UInt8])
    case removeIdentifier(String)
    case transfer(JournaledTransfer)
    /// What of a transfer changes.
    case update(number: Int64, state: [UInt8], progress: [UInt8])
    case removeTransfer(id: String)
    /// Secrets of a transfer or of an identifier, in a table of their own.
    case secrets(owner: String, [UInt8])
    case removeSecrets(owner: String)
    case event(JournaledEvent)
    case removeEvent(sequence: Int64)
}

/// All that a journal holds.
struct JournalContent: Sendable, Equatable {
    var identifiers: [String: [UInt8]] = [:]
    var transfers: [JournaledTransfer] = []
    var secrets: [String: [UInt8]] = [:]
    var events: [JournaledEvent] = []
    /// Greater than the number of any transfer, and the sequence of any event, that ever was.
    var nextNumber: Int64 = 1

    init() {}
}

enum JournalFailure: Error, Sendable, Equatable {
    /// Another agent has the journal.
    case inUse
    /// A later version has written it.
    case newer(version: Int64)
    case failed(String)
}

/// Where the agent's memory outlives it. Groups are written in the order of ``write(_:isRequired:)``.
protocol Journal: Sendable {
    /// What was found when the journal was opened; a problem that was met and overcome, for the log.
    var content: JournalContent { get }
    var problem: String? { get }
    /// Queues a group of changes. Never blocks.
    /// - Parameters:
    ///   - mayFail: whether a group that cannot be written is dropped; otherwise it is written as soon as that is possible.
    ///   - done: called when the group is on the disk, or was dropped; from a thread of the journal.
    func write(_ changes: [JournalChange], mayFail: Bool, done: @escaping @Sendable (JournalFailure?) -> Void)
    /// Waits until all that is queued was tried. Blocks.
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
