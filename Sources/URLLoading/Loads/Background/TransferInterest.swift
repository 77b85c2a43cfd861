// SPDX-License-Identifier: Apache-2.0

import URLLoadingWire

/// What a program wants of one transfer, as a value: the receiver of its event, and what waits for it.
struct TransferInterest {
    typealias Waiter = CheckedContinuation<Result<PendingEvent, AgentFailure>, Never>

    var recipient = Recipient.handler
    private(set) var end = End.none
    private(set) var challenges = Challenges.none
    var progress: BackgroundConnection.ProgressHandler?

    /// The receiver of the event.
    enum Recipient {
        case handler
        /// A task that has submitted the transfer.
        case task
        /// A task for an earlier program's transfer: the handler passes the event on, in order.
        case adoptedTask
    }

    enum End {
        case none
        /// The task waits for the event.
        case awaited(Waiter)
        /// The handler has passed the event on before the task waited.
        case passedOn(PendingEvent)
    }

    enum Challenges {
        case none
        /// Challenges that came before the task waited for the end.
        case unanswered([AgentMessage.Challenge])
        case answered(by: BackgroundConnection.ChallengeHandler)
    }

    /// Whether there is nothing to remember.
    var isEmpty: Bool {
        guard case (.handler, .none, .none, nil) = (recipient, end, challenges, progress) else { return false }
        return true
    }

    var isAwaited: Bool {
        if case .awaited = end { true } else { false }
    }

    var challengeHandler: BackgroundConnection.ChallengeHandler? {
        guard case .answered(let handler) = challenges else { return nil }
        return handler
    }

    // MARK: The event

    mutating func awaitEnd(_ waiter: Waiter) { end = .awaited(waiter) }

    /// Returns the task that waits; it must be resumed.
    mutating func takeWaiter() -> Waiter? {
        guard case .awaited(let waiter) = end else { return nil }
        end = .none
        return waiter
    }

    /// Keeps an event until the task waits. Returns the task, if it does.
    mutating func passOn(_ event: PendingEvent) -> Waiter? {
        if let waiter = takeWaiter() { return waiter }
        end = .passedOn(event)
        return nil
    }

    mutating func takePassedOn() -> PendingEvent? {
        guard case .passedOn(let event) = end else { return nil }
        end = .none
        return event
    }

    /// The task waits no more, nor will it.
    mutating func endWait() {
        progress = nil
        if case .answered = challenges { challenges = .none }
        if recipient == .task { recipient = .handler }
    }

    /// Forgets an adopted task, and an event that was passed on to it.
    mutating func abandon() {
        recipient = .handler
        _ = takePassedOn()
    }

    // MARK: Challenges

    /// Keeps a challenge until the task waits.
    mutating func keep(_ challenge: AgentMessage.Challenge) {
        if case .unanswered(let others) = challenges {
            challenges = .unanswered(others + [challenge])
        } else {
            challenges = .unanswered([challenge])
        }
    }

    /// Returns the challenges that were kept.
    mutating func answerChallenges(by handler: BackgroundConnection.ChallengeHandler?) -> [AgentMessage.Challenge] {
        defer { challenges = handler.map { .answered(by: $0) } ?? .none }
        guard case .unanswered(let kept) = challenges else { return [] }
        return kept
    }

    /// Forgets the challenges of a connection that was lost: the agent repeats them.
    mutating func connectionWasLost() {
        if case .unanswered = challenges { challenges = .none }
    }
}
