// The life of one transfer as a value: what may follow what. It knows no file, no socket and no clock.

import FoundationEssentials
import URLLoading
import URLLoadingIO

/// ```
/// queued ⇄ waiting(why, until)
///   │  ↖──────┐
/// running ────┤ a failure that may pass, a pause, a restart of the agent
///   │         └→ parked(question)
/// placing(inode) → finished(outcome) → delivered
/// ```
struct TransferState: Codable, Sendable, Equatable {
    enum Phase: Codable, Sendable, Equatable {
        /// May begin when its turn comes.
        case queued
        case waiting(Wait)
        /// An attempt is under way.
        case running
        /// A question of the server waits for the program.
        case parked(question: String)
        /// The complete file is about to get its name.
        case placing(Placing)
        /// Over; its event waits for the program.
        case finished(TransferOutcome)
        /// The program has acknowledged it: nothing of it is kept.
        case delivered
    }

    struct Wait: Codable, Sendable, Equatable {
        enum Reason: String, Codable, Sendable {
            /// After a failure that may pass.
            case backoff
            /// The server has asked for it (Retry-After).
            case retryAfter
            /// Until the date the program gave.
            case notBefore
            /// For room on the disk.
            case disk
        }
        var reason: Reason
        /// Nanoseconds since 1970.
        var until: Int64
        /// What failed, for people.
        var detail: String
        /// Nanoseconds since the start of the system (CLOCK_BOOTTIME), and what that start is known by: while that system
        /// runs, no change of the calendar makes the wait longer or shorter. `nil` where the calendar decides.
        var bootUntil: Int64?
        var boot: String?

        init(_ reason: Reason, until: Int64, detail: String = "") {
            (self.reason, self.until, self.detail) = (reason, until, detail)
        }

        /// The wait is a length of time from now on, and no date.
        mutating func countFromNow(wall: Int64, boot: Int64, _ identity: String) {
            (bootUntil, self.boot) = (boot + (until - wall), identity)
        }

        /// Nanoseconds until the end of the wait; 0 or less if it has come.
        func left(wall: Int64, boot: Int64, _ identity: String) -> Int64 {
            if let bootUntil, self.boot == identity, !identity.isEmpty { return bootUntil - boot }
            return until - wall
        }
    }

    /// A rename that is about to happen: after a crash the inode tells whether it has.
    struct Placing: Codable, Sendable, Equatable {
        var from: String
        var to: String
        var file: FilePlace
        var outcome: TransferOutcome

        init(from: String, to: String, file: FilePlace, outcome: TransferOutcome) {
            (self.from, self.to, self.file, self.outcome) = (from, to, file, outcome)
        }
    }

    private(set) var phase = Phase.queued
    private(set) var isPaused = false
    /// Attempts that failed since the last byte of progress.
    private(set) var failures = 0
    /// All attempts.
    private(set) var attempts = 0
    /// Nanoseconds since 1970 of the first attempt: the resource timeout counts from here.
    private(set) var firstAttempt: Int64?

    init(notBefore: Int64? = nil) {
        if let notBefore { phase = .waiting(Wait(.notBefore, until: notBefore)) }
    }

    enum Input: Sendable, Equatable {
        /// Its turn has come.
        case start(now: Int64)
        /// Bytes have come or gone: earlier failures no longer count.
        case progress
        /// The attempt failed, and another follows.
        case wait(Wait)
        /// The time of a wait has come, or what it waited for.
        case wake
        case park(question: String)
        case answered
        /// The file is complete and must get its name.
        case place(Placing)
        case finish(TransferOutcome)
        case pause
        case resume
        /// The program gives it up.
        case cancel(TransferOutcome)
        /// The attempt gives way to a more urgent transfer, or to a pause.
        case yield
        /// The agent was started again.
        case restart
        case acknowledge
    }

    /// What has to be done because of an input.
    enum Action: Sendable, Equatable {
        case none
        case begin
        case stop
        /// Give the file its name, or look whether it has it.
        case rename(Placing)
        /// Write down the event for the program.
        case announce(TransferOutcome)
        /// Remove all that is kept.
        case remove
        /// The input fits no transition: nothing changes.
        case refuse
    }

    var isOver: Bool {
        switch phase {
        case .finished, .delivered: true
        default: false
        }
    }

    /// Whether it may begin when there is room.
    var isReady: Bool { phase == .queued && !isPaused }

    mutating func receive(_ input: Input) -> Action {
        switch (phase, input) {
        case (.queued, .start(let now)) where !isPaused:
            phase = .running
            attempts += 1
            if firstAttempt == nil { firstAttempt = now }
            return .begin
        case (.running, .progress):
            failures = 0
            return .none
        case (.running, .wait(let wait)):
            failures += 1
            phase = .waiting(wait)
            return .none
        case (.waiting, .wake), (.parked, .answered):
            phase = .queued
            return .none
        case (.running, .park(let question)):
            phase = .parked(question: question)
            return .none
        case (.running, .yield):
            phase = .queued
            return .none
        case (.running, .place(let placing)):
            phase = .placing(placing)
            return .rename(placing)
        default: return receiveAnywhere(input)
        }
    }

    private mutating func receiveAnywhere(_ input: Input) -> Action {
        switch (phase, input) {
        case (.running, .finish(let outcome)), (.placing, .finish(let outcome)):
            phase = .finished(outcome)
            return .announce(outcome)
        case (.finished, .acknowledge):
            phase = .delivered
            return .remove
        case (.finished, _), (.delivered, _): return .refuse
        case (.running, .cancel(let outcome)):
            phase = .finished(outcome)
            return .stop
        case (.placing(let placing), .restart): return .rename(placing)
        // A rename that may have happened cannot be taken back.
        case (.placing, .cancel): return .refuse
        case (_, .cancel(let outcome)):
            phase = .finished(outcome)
            return .announce(outcome)
        case (_, .pause):
            isPaused = true
            return phase == .running ? .stop : .none
        case (_, .resume):
            isPaused = false
            return .none
        case (.running, .restart):
            phase = .queued
            return .none
        case (_, .restart): return .none
        default: return .refuse
        }
    }
}

extension TransferState {
    /// What listings show.
    var shown: (state: TransferRecord.State, reason: String?, until: Int64?, outcome: TransferOutcome?) {
        if isPaused, !isOver { return (.paused, nil, nil, nil) }
        return switch phase {
        case .queued: (.queued, nil, nil, nil)
        case .waiting(let wait):
            (
                .waiting, wait.detail.isEmpty ? wait.reason.rawValue : "\(wait.reason.rawValue): \(wait.detail)",
                wait.until, nil
            )
        case .running: (.running, nil, nil, nil)
        case .parked(let question): (.parked, question, nil, nil)
        case .placing: (.placing, nil, nil, nil)
        case .finished(let outcome): (.finished, nil, nil, outcome)
        case .delivered: (.finished, nil, nil, nil)
        }
    }
}
