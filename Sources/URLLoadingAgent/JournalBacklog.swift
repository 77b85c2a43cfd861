// SPDX-License-Identifier: Apache-2.0

/// Changes that are written together or not at all, and what is called when that has been decided.
struct JournalGroup: Sendable {
    let changes: [JournalChange]
    /// Whether the group is dropped if it cannot be written.
    let mayFail: Bool
    /// Whether the group is still to be written.
    let isWanted: @Sendable () -> Bool
    let done: JournalAnswer

    init(
        _ changes: [JournalChange], mayFail: Bool, while isWanted: @escaping @Sendable () -> Bool = { true },
        done: @escaping JournalAnswer
    ) {
        (self.changes, self.mayFail, self.isWanted, self.done) = (changes, mayFail, isWanted, done)
    }

    /// The claim under which the changes are made; `nil` if they need none.
    var claim: TransferClaim? { changes.lazy.compactMap(\.claim).first }

    /// The claims that the group ends with events.
    var ended: [TransferClaim] { changes.compactMap { if case .event(let claim) = $0 { claim } else { nil } } }

    /// Returns the order in which groups are written in one transaction: pauses by their hosts, events last. Agents
    /// that lock rows of the same hosts and identifiers do so in the same order, and do not wait for each other.
    static func order(of groups: [JournalGroup]) -> [Int] {
        func rank(_ group: JournalGroup) -> (Int, String) {
            for change in group.changes {
                if case .event = change { return (2, "") }
                if case .pause(let host, _) = change { return (1, host) }
            }
            return (0, "")
        }
        let ranks = groups.map(rank)
        return groups.indices.sorted { (ranks[$0].0, ranks[$0].1, $0) < (ranks[$1].0, ranks[$1].1, $1) }
    }

    /// The bytes that the group takes while it waits, roughly.
    var size: Int { changes.reduce(256) { $0 + $1.size } }
}

/// The groups that wait for a database, in order. Pure.
///
/// The database may be away for days. What an agent has accepted waits for as long as that takes, which is little: it
/// works on a few transfers at a time, and queues the next step of one when the step before is written. New work has no
/// such bound, so none is taken while the groups are larger than ``limit``.
struct JournalBacklog: Sendable {
    /// In bytes.
    static let limit = 16 << 20

    private(set) var groups: [JournalGroup] = []
    private(set) var size = 0

    /// Whether only changes of accepted work are added.
    var isFull: Bool { size >= Self.limit }

    /// Adds a group at the end.
    /// - Returns: false for new work that finds no room; nothing has changed then.
    mutating func add(_ group: JournalGroup) -> Bool {
        guard !group.mayFail || !isFull else { return false }
        groups.append(group)
        size += group.size
        return true
    }

    mutating func takeAll() -> [JournalGroup] {
        defer { self = JournalBacklog() }
        return groups
    }

    /// The claims of the groups.
    var claims: Set<TransferClaim> { Set(groups.lazy.flatMap(\.changes).compactMap(\.claim)) }

    /// Puts groups that could not be written before those that have come since.
    mutating func putBack(_ left: some Sequence<JournalGroup>) {
        groups = left + groups
        size = groups.reduce(0) { $0 + $1.size }
    }
}

extension JournalChange {
    /// The bytes of the values, roughly.
    fileprivate var size: Int {
        switch self {
        case .identifier(let name, let settings, let secrets): name.utf8.count + settings.count + secrets.count
        case .accept(let transfer):
            transfer.order.count + transfer.state.count + transfer.progress.count + (transfer.secrets?.count ?? 0)
        case .order(_, let order, _): order.count
        case .update(_, let state, let progress, _): state.count + progress.count
        case .command(_, _, let argument): argument.count
        case .leave, .event, .acknowledge, .pause, .carriedOut: 0
        }
    }
}
