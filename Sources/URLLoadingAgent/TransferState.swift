// SPDX-License-Identifier: Apache-2.0

// The states of one transfer and their transitions, as a value. It knows no file, no socket and no clock.

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
    /// The large payloads are indirect: most transfers of an agent wait.
    enum Phase: Codable, Sendable, Equatable {
        /// May begin when it is scheduled.
        case queued
        case waiting(Wait)
        /// An attempt is running.
        case running
        /// A challenge of the server waits for the program's answer.
        case parked(question: String)
        /// The complete file is about to be renamed.
        indirect case placing(Placing)
        /// Finished; the event waits for the program.
        indirect case finished(TransferOutcome)
        /// The program has acknowledged the event; everything about the transfer is removed.
        case delivered
    }

    struct Wait: Codable, Sendable, Equatable {
        enum Reason: String, Codable, Sendable {
            /// After a temporary failure.
            case backoff
            /// The server has asked for it (Retry-After).
            case retryAfter
            /// Until the earliest start that the program set.
            case notBefore
            /// Until the disk has room.
            case disk
        }
        var reason: Reason
        /// Nanoseconds since 1970.
        var until: Int64
        /// A description of the failure, for logs.
        var detail: String
        /// The end in nanoseconds since the start of the system (CLOCK_BOOTTIME), and the identity of that start: until
        /// a reboot, setting the wall clock does not change the wait. `nil` for a wait until a date.
        var bootUntil: Int64?
        var boot: String?

        init(_ reason: Reason, until: Int64, detail: String = "") {
            (self.reason, self.until, self.detail) = (reason, until, detail)
        }

        /// Makes the wait a duration from now on instead of a date.
        mutating func makeRelative(wall: Int64, boot: Int64, _ identity: String) {
            (bootUntil, self.boot) = (boot.saturatingAdd(until.saturatingSubtract(wall)), identity)
        }

        /// The end of a wait, on the clock that decides it since the start of the system.
        struct End: Sendable, Equatable {
            var moment: Int64
            var isOfBoot: Bool

            /// Returns the nanoseconds until the end; 0 or less if it has come.
            func left(wall: Int64, boot: Int64) -> Int64 { moment.saturatingSubtract(isOfBoot ? boot : wall) }
        }

        /// Returns the end of the wait.
        /// - Parameter identity: the identity of the system's start.
        func end(_ identity: String) -> End {
            if let bootUntil, boot == identity, !identity.isEmpty { return End(moment: bootUntil, isOfBoot: true) }
            return End(moment: until, isOfBoot: false)
        }
    }

    /// A rename that is about to happen. After a crash, the inode shows whether it did.
    struct Placing: Codable, Sendable, Equatable {
        var from: String
        var to: String
        var file: FilePlace
        var outcome: TransferOutcome
    }

    private(set) var phase = Phase.queued
    private(set) var isPaused = false
    /// The failed attempts since the last progress.
    private(set) var failures = 0
    /// The number of all attempts.
    private(set) var attempts = 0
    /// The time of the first attempt in nanoseconds since 1970; the resource timeout begins here.
    private(set) var firstAttempt: Int64?

    init(notBefore: Int64? = nil) {
        if let notBefore { phase = .waiting(Wait(.notBefore, until: notBefore)) }
    }

    enum Input: Sendable, Equatable {
        /// The transfer is scheduled.
        case start(now: Int64)
        /// Bytes were transferred: earlier failures no longer count.
        case progress
        /// The attempt failed, and another one will follow.
        case wait(Wait)
        /// The end or the reason of a wait has come.
        case wake
        case park(question: String)
        case answered
        /// The file is complete and must be renamed.
        case place(Placing)
        case finish(TransferOutcome)
        case pause
        case resume
        /// The program cancels the transfer.
        case cancel(TransferOutcome)
        /// The attempt ends for a more urgent transfer, or for a pause.
        case yield
        /// The agent has restarted.
        case restart
        case acknowledge
    }

    /// The action that an input requires.
    enum Action: Sendable, Equatable {
        case none
        case begin
        case stop
        /// Rename the file, or check whether that has happened.
        case rename(Placing)
        /// Record the event for the program.
        case announce(TransferOutcome)
        /// Remove everything about the transfer.
        case remove
        /// The input is not allowed in this state and changes nothing.
        case refuse
    }

    var isOver: Bool {
        switch phase {
        case .finished, .delivered: true
        default: false
        }
    }

    /// The wait until a time; `nil` in other states.
    var wait: Wait? {
        if case .waiting(let wait) = phase { return wait }
        return nil
    }

    /// Whether the agent has something to do for the transfer, now or later, without a program.
    var needsAgent: Bool {
        switch phase {
        case .finished, .delivered, .parked: false
        case .queued, .waiting, .running, .placing: !isPaused
        }
    }

    /// Whether the transfer may begin when there is room.
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
        // A rename that may have happened cannot be undone.
        case (.placing, .cancel): return .refuse
        case (_, .cancel(let outcome)):
            phase = .finished(outcome)
            return .announce(outcome)
        case (_, .pause):
            isPaused = true
            return phase == .running ? .stop : .none
        case (.waiting(let wait), .resume) where wait.reason == .backoff || wait.reason == .disk:
            // A person or a program says that the failure has passed.
            isPaused = false
            phase = .queued
            return .none
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
    /// The state as listings show it.
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
