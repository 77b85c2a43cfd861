// SPDX-License-Identifier: Apache-2.0

/// The time during which a program is attached, as a value: the events that it receives, and whether it has handled all
/// that had waited for it.
struct ProgramVisit {
    private(set) var delivery = Delivery.none
    private(set) var backlog = Backlog.none
    /// Whether the program was started for events or challenges, and has not handled all that had waited: what it
    /// submits meanwhile is discretionary.
    var isInBackground = false

    enum Delivery {
        /// The program has not asked for events.
        case none
        /// - unsent: the events that its connection has no room for yet, in order.
        case listening(unsent: ArraySlice<Int64>)
    }

    /// What had waited for the program, and it was not told yet that there is no more.
    enum Backlog {
        case none
        /// - events: those that existed when the program asked for them, and are not acknowledged yet.
        /// - transfers: those that waited for the program when it attached, and whose attempts have not got past their
        ///   challenges yet.
        case waiting(events: Set<Int64>, transfers: Set<String>)
    }

    var isListening: Bool {
        if case .listening = delivery { true } else { false }
    }

    var isBehind: Bool {
        if case .waiting = backlog { true } else { false }
    }

    /// A transfer had waited for the program, and goes on.
    mutating func unpark(_ transfer: String) {
        guard case .waiting(let events, var transfers) = backlog else {
            return backlog = .waiting(events: [], transfers: [transfer])
        }
        // Not referred to twice, so that a change copies nothing. The same below.
        backlog = .none
        transfers.insert(transfer)
        backlog = .waiting(events: events, transfers: transfers)
    }

    /// Begins to deliver events to the program, which has asked for them.
    /// - Parameter missed: the sequence numbers of the events that it has not acknowledged yet, in order.
    mutating func listen(_ missed: [Int64]) {
        delivery = .listening(unsent: missed[...])
        if case .waiting(_, let transfers) = backlog {
            backlog = .waiting(events: Set(missed), transfers: transfers)
        } else if !missed.isEmpty {
            backlog = .waiting(events: Set(missed), transfers: [])
        }
    }

    /// Adds an event, if the program listens.
    mutating func add(_ event: Int64) {
        guard case .listening(var unsent) = delivery else { return }
        delivery = .none
        unsent.append(event)
        delivery = .listening(unsent: unsent)
    }

    mutating func takeUnsent() -> Int64? {
        guard case .listening(var unsent) = delivery else { return nil }
        defer { delivery = .listening(unsent: unsent) }
        return unsent.popFirst()
    }

    /// Whether events wait for room in the connection.
    var hasUnsent: Bool {
        guard case .listening(let unsent) = delivery else { return false }
        return !unsent.isEmpty
    }

    /// The program has acknowledged an event, or a transfer has got past its challenges.
    /// - Returns: whether the program, which listens, has just handled the last that had waited for it.
    mutating func handled(event: Int64? = nil, transfer: String? = nil) -> Bool {
        guard case .waiting(var events, var transfers) = backlog else { return false }
        backlog = .none
        if let event { events.remove(event) }
        if let transfer { transfers.remove(transfer) }
        guard isListening, events.isEmpty, transfers.isEmpty else {
            backlog = .waiting(events: events, transfers: transfers)
            return false
        }
        isInBackground = false
        return true
    }
}
