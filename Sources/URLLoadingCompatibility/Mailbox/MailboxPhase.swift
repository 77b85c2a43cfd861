// SPDX-License-Identifier: Apache-2.0

// The phase of a load and of the calls about it.
//
//              finish            last call
//   running ──────────▶ ended ──────────────▶ over
//      │ stop  ▲ finish   │ fail                ▲
//      ▼       │          ▼                     │
//   stopped ───┘    endedFailed ────────────────┤ last call
//      │ fail             ▲ finish              │
//      └───▶ failed ──────┘     handedOver ─────┘ finish

import URLLoading

extension Mailbox {
    enum Phase: Sendable {
        case running
        /// The load was stopped and does not wait for the delegate any more. Events that have arrived are still
        /// delivered.
        case stopped
        /// The task has failed with this error; its load has not ended yet.
        case failed(LoadError)
        /// The load has ended; calls are still due.
        case ended(LoadError?)
        /// The load has ended and the task had failed with this error: only the last calls are due.
        case endedFailed(LoadError)
        /// The last call was made and the load has ended.
        case over(LoadError?)
        /// The last call was made: the connection was captured.
        case handedOver

        /// Whether the load has ended.
        var hasEnded: Bool {
            switch self {
            case .ended, .endedFailed, .over: true
            case .running, .stopped, .failed, .handedOver: false
            }
        }

        /// Whether the last call was made.
        var isOver: Bool {
            switch self {
            case .over, .handedOver: true
            case .running, .stopped, .failed, .ended, .endedFailed: false
            }
        }

        /// Whether further calls may become due: the task has neither failed nor made its last call.
        var isOpen: Bool {
            switch self {
            case .running, .stopped, .ended: true
            case .failed, .endedFailed, .over, .handedOver: false
            }
        }

        /// Stops a running load.
        mutating func stop() { if case .running = self { self = .stopped } }

        /// Records the end of the load. If the task has already failed, its first error stays.
        mutating func finish(_ error: LoadError?) {
            switch self {
            case .running, .stopped: self = .ended(error)
            case .failed(let failure): self = .endedFailed(failure)
            case .handedOver: self = .over(error)
            case .ended, .endedFailed, .over: break
            }
        }

        /// Ends the task for its caller. The first error counts.
        mutating func fail(_ error: LoadError) {
            switch self {
            case .running, .stopped: self = .failed(error)
            case .ended: self = .endedFailed(error)
            case .failed, .endedFailed, .over, .handedOver: break
            }
        }

        /// Records the last call of a task whose connection was captured.
        mutating func handOver() {
            if case .ended(let error) = self { self = .over(error) } else { self = .handedOver }
        }
    }
}
