// SPDX-License-Identifier: Apache-2.0

/// The time during which a program is attached, as a value: the events that it receives, and whether it has handled all
/// that had waited for it.
struct ProgramVisit {
    private(set) var delivery = Delivery.none
    private(set) var backlog = Backlog.none
    /// Whether the program was started for events or challenges, and has not handled all that had waited: what it
    /// submits meanwhile is discretionary.
    var isInBackground = false
    /// Whether the challenges that had waited in a shared journal are free to be put to the program.
    var hasUnparked = false

    /// Events are read from the journal in order, each once, and sent as fast as the program reads them.
    enum Delivery: Equatable {
        /// The program has not asked for events.
        case none
        /// The program was sent all events up to a sequence, and no later ones were found.
        case listening(sent: Int64)
        /// A task sends further events. - isBehind: whether one was recorded since it last looked for them.
        case sending(sent: Int64, isBehind: Bool)
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
        delivery != .none
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

    /// The program has asked for its events.
    /// - Parameter missed: the sequences of those that it has not acknowledged yet.
    mutating func listen(_ missed: [Int64]) {
        delivery = .listening(sent: 0)
        if case .waiting(_, let transfers) = backlog {
            backlog = .waiting(events: Set(missed), transfers: transfers)
        } else if !missed.isEmpty {
            backlog = .waiting(events: Set(missed), transfers: [])
        }
    }

    /// An event was recorded, or may have been.
    /// - Returns: whether to begin to send events.
    mutating func hasEvents() -> Bool {
        switch delivery {
        case .none: return false
        case .listening(let sent):
            delivery = .sending(sent: sent, isBehind: false)
            return true
        case .sending(let sent, _):
            delivery = .sending(sent: sent, isBehind: true)
            return false
        }
    }

    /// Returns the sequence after which to look for events now; `nil` if none are being sent.
    mutating func look() -> Int64? {
        guard case .sending(let sent, _) = delivery else { return nil }
        delivery = .sending(sent: sent, isBehind: false)
        return sent
    }

    /// The events up to a sequence were sent.
    mutating func sent(upTo sequence: Int64) {
        guard case .sending(_, let isBehind) = delivery else { return }
        delivery = .sending(sent: sequence, isBehind: isBehind)
    }

    /// No more events were found.
    /// - Returns: whether to look again, because one was recorded meanwhile.
    mutating func foundNone() -> Bool {
        guard case .sending(let sent, let isBehind) = delivery else { return false }
        if !isBehind { delivery = .listening(sent: sent) }
        return isBehind
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
