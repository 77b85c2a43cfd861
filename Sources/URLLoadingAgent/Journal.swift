// SPDX-License-Identifier: Apache-2.0

// The persistent state of the agent.

import URLLoadingIO

/// The right to change one transfer of a journal. It ends when another agent claims the transfer: that claim has a
/// greater epoch, and a change under the earlier epoch is refused.
struct TransferClaim: Sendable, Hashable {
    /// The order in which transfers were accepted.
    var number: Int64
    var epoch: Int64

    /// Of a transfer that no journal has accepted yet.
    static let none = TransferClaim(number: 0, epoch: 0)

    init(number: Int64, epoch: Int64) { (self.number, self.epoch) = (number, epoch) }
}

/// One transfer as it is recorded.
struct JournaledTransfer: Sendable, Equatable {
    /// The number of the transfer, and the epoch of the last claim.
    var claim: TransferClaim
    var id: String
    var identifier: String
    /// An encoded ``TransferOrder``.
    var order: [UInt8]
    /// An encoded ``TransferState``.
    var state: [UInt8]
    /// The encoded ``TransferProgress``: resumption data and byte counts.
    var progress: [UInt8]
    /// The encoded ``TransferSecrets``; `nil` in rows that are read for a program.
    var secrets: [UInt8]?

    init(
        claim: TransferClaim = .none, id: String, identifier: String, order: [UInt8], state: [UInt8],
        progress: [UInt8], secrets: [UInt8]? = nil
    ) {
        (self.claim, self.id, self.identifier) = (claim, id, identifier)
        (self.order, self.state, self.progress, self.secrets) = (order, state, progress, secrets)
    }
}

/// An identifier as it is recorded.
struct JournaledIdentifier: Sendable, Equatable {
    var name: String
    var settings: [UInt8]
    var secrets: [UInt8]?
    /// The number of its events that no program has acknowledged.
    var undelivered: Int

    init(name: String, settings: [UInt8], secrets: [UInt8]? = nil, undelivered: Int = 0) {
        (self.name, self.settings, self.secrets, self.undelivered) = (name, settings, secrets, undelivered)
    }
}

/// An event that no program has acknowledged, with its transfer.
struct JournaledEvent: Sendable, Equatable {
    var sequence: Int64
    var transfer: JournaledTransfer

    init(sequence: Int64, transfer: JournaledTransfer) { (self.sequence, self.transfer) = (sequence, transfer) }
}

/// One change. The changes of a group are written together or not at all.
enum JournalChange: Sendable, Equatable {
    case identifier(String, settings: [UInt8], secrets: [UInt8])
    /// The program of an identifier has left: the journal forgets the identifier if it has no transfers.
    case leave(identifier: String)
    /// A new transfer, which receives its number. If the journal has a transfer of this id, nothing changes.
    case accept(JournaledTransfer)
    case order(TransferClaim, [UInt8])
    /// Changes the variable part of a transfer.
    case update(TransferClaim, state: [UInt8], progress: [UInt8])
    /// The end of a transfer becomes an event for its program, which receives its sequence; the claim ends.
    case event(TransferClaim)
    /// The program has handled an event: removes the event, its transfer, and the transfer's secrets.
    case acknowledge(sequence: Int64, identifier: String)

    /// The claim under which the change is made; `nil` for changes that need none.
    var claim: TransferClaim? {
        switch self {
        case .order(let claim, _), .update(let claim, _, _), .event(let claim): claim
        case .identifier, .leave, .accept, .acknowledge: nil
        }
    }
}

/// What a journal reports of a group that it has written.
struct JournalReceipt: Sendable, Equatable {
    /// How the journal has answered a new transfer.
    enum Acceptance: Sendable, Equatable {
        /// The transfer is recorded, and the agent that has submitted it has claimed it.
        case claimed(TransferClaim)
        /// A transfer of this identifier has the same id: nothing was written.
        case known(identifier: String)
    }
    var acceptance: Acceptance?
    /// The transfer that was removed with its event; `nil` if the event was acknowledged before.
    var removed: JournaledTransfer?

    init() {}
}

enum JournalFailure: Error, Sendable, Equatable {
    /// Another agent uses the journal.
    case inUse
    /// A later version has written the journal.
    case newer(version: Int64)
    /// Another agent has claimed the transfer since: the group has changed nothing, and never will.
    case stale
    case failed(String)
}

/// The persistent memory of agents.
///
/// An agent works on the transfers that it has claimed, and changes their rows under its claims. Transfers that are over
/// belong to no agent: they wait in the journal until a program acknowledges their events. The journal assigns the
/// numbers of transfers and the sequence of events.
///
/// Groups are written in the order of the calls of `write`. What is read contains all groups that were queued before,
/// except those whose write is being retried.
protocol Journal: Sendable {
    /// A problem that was solved when the journal was opened, for the log.
    var problem: String? { get }

    /// Returns the identifiers, in any order.
    func identifiers() async throws(JournalFailure) -> [JournaledIdentifier]

    /// Claims transfers that are not over, and that no other agent has claimed.
    /// - Parameter count: the maximum number; a journal of one agent returns all of them at the first call.
    /// - Returns: the transfers with their secrets, in the order in which they were accepted.
    func claim(atMost count: Int) async throws(JournalFailure) -> [JournaledTransfer]
    /// Prolongs the claims of this agent.
    /// - Returns: the numbers of the transfers that other agents have claimed since.
    func renew(_ claims: [TransferClaim]) async throws(JournalFailure) -> Set<Int64>
    /// Ends claims of this agent, so that any agent may claim the transfers.
    func release(_ claims: [TransferClaim]) async throws(JournalFailure)

    /// Queues a group of changes. Never blocks.
    /// - Parameters:
    ///   - mayFail: whether a group that cannot be written is dropped; otherwise its write is retried until it
    ///     succeeds, or its claim is stale.
    ///   - done: called on a thread of the journal when the group is on the disk, or was dropped.
    func write(
        _ changes: [JournalChange], mayFail: Bool,
        done: @escaping @Sendable (Result<JournalReceipt, JournalFailure>) -> Void)

    /// Returns transfers of an identifier with greater numbers than `number`, in order, without their secrets.
    func transfers(of identifier: String, after number: Int64, atMost count: Int) async throws(JournalFailure)
        -> [JournaledTransfer]
    /// Returns a transfer without its secrets; `nil` if there is none.
    func transfer(_ id: String) async throws(JournalFailure) -> JournaledTransfer?
    /// Returns events of an identifier with greater sequences than `sequence`, in order.
    func events(of identifier: String, after sequence: Int64, atMost count: Int) async throws(JournalFailure)
        -> [JournaledEvent]
    /// Returns the sequences of all events of an identifier, in order.
    func sequences(of identifier: String) async throws(JournalFailure) -> [Int64]

    /// Waits until every queued group was attempted. Blocks.
    func finish()
}

extension Journal {
    /// Writes a group, and returns when it is on the disk.
    @discardableResult
    func write(_ changes: [JournalChange], mayFail: Bool) async throws(JournalFailure) -> JournalReceipt {
        let result: Result<JournalReceipt, JournalFailure> = await withCheckedContinuation { continuation in
            write(changes, mayFail: mayFail) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }
}
