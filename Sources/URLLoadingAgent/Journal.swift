// SPDX-License-Identifier: Apache-2.0

// The persistent state of the agent.

import URLLoading

/// The right to change one transfer of a journal. It ends when another agent claims the transfer: that claim has a
/// greater epoch, and a change under the earlier epoch is refused.
struct TransferClaim: Sendable, Hashable {
    /// The order in which transfers were accepted.
    var number: Int64
    var epoch: Int64

    /// Of a transfer that no journal has accepted yet.
    static let none = TransferClaim(number: 0, epoch: 0)
}

/// Which agent has to do with a transfer next.
enum TransferStanding: Sendable, Equatable {
    /// The one that has claimed it, which keeps it.
    case working
    /// Any.
    case ready
    /// Any, after some time in nanoseconds.
    case later(Int64)
    /// None, until its program resumes it or answers a challenge. - isParked: whether a challenge waits.
    case none(isParked: Bool)
    /// None, until its program attaches again: it was asked, and has not answered.
    case refused
}

/// What a journal must know of a transfer to give it to an agent.
struct JournaledTerms: Sendable, Equatable {
    var host = ""
    var priority = TransferOrder.usualPriority
    var isDiscretionary = false
    /// Transfers of an identifier with the same affinity belong to one agent while it lives.
    var affinity: String?
    var standing = TransferStanding.ready
}

/// One transfer as it is recorded.
struct JournaledTransfer: Sendable, Equatable {
    /// The number of the transfer, and the epoch of the last claim.
    var claim = TransferClaim.none
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
    /// Of a new transfer. Journals need not return them.
    var terms = JournaledTerms()
}

/// An identifier as it is recorded.
struct JournaledIdentifier: Sendable, Equatable {
    var name: String
    var settings: [UInt8]
    var secrets: [UInt8]?
    /// The number of its events that no program has acknowledged.
    var undelivered = 0
}

/// An event that no program has acknowledged, with its transfer.
struct JournaledEvent: Sendable, Equatable {
    var sequence: Int64
    var transfer: JournaledTransfer
}

/// Which transfers an agent claims.
enum ClaimRequest: Sendable, Equatable {
    /// Transfers that may begin now.
    /// - room: the agent's own places for them.
    /// - after: the identifier whose transfer the agent has claimed last; the next one comes first.
    /// - takesDiscretionary: whether those are meant too that leave their moment to the agent.
    case ready(atMost: Int, room: Room = Room(), after: String? = nil, takesDiscretionary: Bool = true)
    /// One, whatever it waits for.
    case one(id: String)

    /// The places that an agent has left.
    struct Room: Sendable, Equatable {
        /// For hosts and identifiers of transfers that it works on.
        var hosts: [String: Int] = [:]
        var identifiers: [String: Int] = [:]
        /// For each other host and identifier.
        var ofHost = Int(Int32.max)
        var ofIdentifier = Int(Int32.max)
    }
}

/// The transfers that an agent has claimed.
struct ClaimedTransfers: Sendable, Equatable {
    /// With their secrets, in the order in which they were accepted.
    var transfers: [JournaledTransfer] = []
    /// The nanoseconds until others may begin; `nil` if that is not known, or none waits until a time.
    var next: Int64?
    /// The identifier that had its turn last; `nil` without transfers, and of a journal of one agent.
    var last: String?

    init(_ transfers: [JournaledTransfer] = []) { self.transfers = transfers }
}

/// What the agents of a shared journal tell each other. A signal may be lost, and only saves time.
enum JournalSignal: Sendable, Equatable {
    /// Transfers may begin.
    case work
    /// A program has an event.
    case event(identifier: String)
    /// A challenge waits for a program, which is not connected to the agent that says so, or has not answered.
    case parked(agent: String, identifier: String)
    /// Programs have commands for transfers of an agent.
    case command(agent: String)
    /// The journal was not reached for some time.
    case reconnected
    /// An agent of a later version has changed the journal: this agent cannot use it any more.
    case outdated
}

/// A command of a program for a transfer, which waits for the agent that has claimed it, or will.
struct JournaledCommand: Sendable, Equatable {
    var number: Int64
    /// The id of the transfer.
    var transfer: String
    /// Of the transfer.
    var identifier: String
    var verb: String
    var argument: [UInt8]
}

/// What an agent has lost without knowing it, because it was stopped or away for longer than its leases.
struct JournalRenewal: Sendable, Equatable {
    /// The numbers of transfers that this agent has no claim on any more.
    var lost: Set<Int64> = []
    /// The identifiers whose programs are attached to this agent as far as the journal knows.
    var identifiers: Set<String> = []
}

/// One change. The changes of a group are written together or not at all.
enum JournalChange: Sendable, Equatable {
    case identifier(String, settings: [UInt8], secrets: [UInt8])
    /// The program of an identifier has left: the journal forgets the identifier if it has no transfers.
    case leave(identifier: String)
    /// A new transfer, which receives its number. If the journal has a transfer of this id, nothing changes.
    case accept(JournaledTransfer)
    case order(TransferClaim, [UInt8], priority: UInt8)
    /// Changes the variable part of a transfer. With a standing other than `working`, the claim ends if the journal is
    /// shared.
    case update(TransferClaim, state: [UInt8], progress: [UInt8], standing: TransferStanding)
    /// The end of a transfer becomes an event for its program, which receives its sequence; the claim ends.
    case event(TransferClaim)
    /// The program has handled an event: removes the event, its transfer, and the transfer's secrets.
    case acknowledge(sequence: Int64, identifier: String)
    /// A server has asked for a pause: no transfer of the host begins for some nanoseconds, by any agent that shares
    /// the journal. One of a single agent records nothing.
    case pause(host: String, nanoseconds: Int64)
    /// A command of a program for a transfer that another agent works on.
    case command(transfer: String, verb: String, argument: [UInt8])
    /// A command has taken effect.
    case carriedOut(command: Int64)

    /// The claim under which the change is made; `nil` for changes that need none.
    var claim: TransferClaim? {
        switch self {
        case .order(let claim, _, _), .update(let claim, _, _, _), .event(let claim): claim
        case .identifier, .leave, .accept, .acknowledge, .pause, .command, .carriedOut: nil
        }
    }
}

/// What a journal reports of a group that it has written.
struct JournalReceipt: Sendable, Equatable {
    /// How the journal has answered a new transfer.
    enum Acceptance: Sendable, Equatable {
        /// The transfer is recorded, and the agent that has submitted it has claimed it.
        case claimed(TransferClaim)
        /// The transfer is recorded, and any agent may claim it.
        case queued
        /// A transfer of this identifier has the same id: nothing was written.
        case known(identifier: String)
    }
    var acceptance: Acceptance?
    /// The transfer that was removed with its event; `nil` if the event was acknowledged before.
    var removed: JournaledTransfer?
}

enum JournalFailure: Error, Sendable, Equatable {
    /// Another agent uses the journal.
    case inUse
    /// A later version has written the journal.
    case newer(version: Int64)
    /// Another agent has claimed the transfer since: the group has changed nothing, and never will.
    case stale
    /// A program is attached to another agent with this identifier.
    case elsewhere
    case failed(String)
}

/// Called when a group was written, or will not be.
typealias JournalAnswer = @Sendable (Result<JournalReceipt, JournalFailure>) -> Void

/// The persistent memory of agents.
///
/// An agent works on the transfers that it has claimed, and changes their rows under its claims. Transfers that are
/// over belong to no agent: they wait in the journal until a program acknowledges their events. The journal assigns the
/// numbers of transfers and the sequence of events.
///
/// Groups are written in the order of the calls of `write`. What is read contains all groups that were queued before,
/// except those whose write is being retried.
protocol Journal: Sendable {
    /// A problem that was solved when the journal was opened, for the log.
    var problem: String? { get }
    /// What other agents tell; `nil` for a journal of one agent, which has claimed all transfers that are not over.
    var signals: AsyncStream<JournalSignal>? { get }
    /// The name of this agent among those that share the journal.
    var agent: String { get }
    /// Whether so many changes wait to be written that the journal takes no new work.
    var isFull: Bool { get }
    /// Whether changes reach the journal now, as far as is known.
    var isReached: Bool { get }

    /// Returns the identifiers, in any order.
    func identifiers() async throws(JournalFailure) -> [JournaledIdentifier]
    /// Returns an identifier; `nil` if there is none.
    func identifier(_ name: String) async throws(JournalFailure) -> JournaledIdentifier?

    /// Claims transfers that are not over, and that no other agent has claimed. A journal of one agent returns all of
    /// them at the first call.
    func claim(_ request: ClaimRequest) async throws(JournalFailure) -> ClaimedTransfers
    /// Prolongs the claims of this agent, and its hold on the identifiers of attached programs. Ends those of agents
    /// that have not done so for too long, and claims of this agent that it does not know: the answer in which it would
    /// have received them was lost.
    /// - Parameter claims: the claims that this agent knows, except those that waiting groups will end.
    func renew(_ claims: [TransferClaim]) async throws(JournalFailure) -> JournalRenewal
    /// Ends claims of this agent, so that any agent may claim the transfers.
    func release(_ claims: [TransferClaim]) async throws(JournalFailure)
    /// Returns the commands for transfers that this agent has claimed, or no agent, in the order in which they were
    /// given.
    func commands() async throws(JournalFailure) -> [JournaledCommand]
    /// Lets other agents carry out the transfers of this agent's affinities: it takes no more work.
    func stopClaiming() async throws(JournalFailure)
    /// Returns what the agents do that share the journal; `nil` for a journal of one agent.
    func fleet() async throws(JournalFailure) -> FleetReport?
    /// Makes the transfers of an identifier ready whose challenges wait for its program, for this agent alone while it
    /// lives.
    /// - Parameter again: whether also those whose challenges a program that is attached to this agent has not
    ///   answered.
    func unpark(_ identifier: String, again: Bool) async throws(JournalFailure)

    /// Queues a group of changes. Never blocks.
    /// - Parameters:
    ///   - mayFail: whether a group that cannot be written is dropped; otherwise its write is retried until it
    ///     succeeds, or its claim is stale.
    ///   - done: called on a thread of the journal when the group is on the disk, or was dropped.
    func write(_ changes: [JournalChange], mayFail: Bool, done: @escaping JournalAnswer)

    /// Queues a new transfer, in a group that is dropped if it cannot be written.
    /// - Parameter isWanted: whether its program is still there; asked just before each attempt to write it.
    func submit(
        _ transfer: JournaledTransfer, while isWanted: @escaping @Sendable () -> Bool, done: @escaping JournalAnswer)

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
    var isFull: Bool { false }
    var isReached: Bool { true }
    func unpark(_ identifier: String, again: Bool) async throws(JournalFailure) {}
    func submit(
        _ transfer: JournaledTransfer, while isWanted: @escaping @Sendable () -> Bool, done: @escaping JournalAnswer
    ) {
        write([.accept(transfer)], mayFail: true, done: done)
    }
    func commands() async throws(JournalFailure) -> [JournaledCommand] { [] }
    func stopClaiming() async throws(JournalFailure) {}
    func fleet() async throws(JournalFailure) -> FleetReport? { nil }

    /// Writes a group, and returns when it is on the disk.
    @discardableResult
    func write(_ changes: [JournalChange], mayFail: Bool) async throws(JournalFailure) -> JournalReceipt {
        let result: Result<JournalReceipt, JournalFailure> = await withCheckedContinuation { continuation in
            write(changes, mayFail: mayFail) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }
}
