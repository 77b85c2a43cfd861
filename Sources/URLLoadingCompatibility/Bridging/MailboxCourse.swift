// How far a load and the calls about it have come.
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
    enum Course: Sendable {
        case running
        /// The load was stopped and waits for the delegate no more. What has arrived is delivered all the same.
        case stopped
        /// The task is over for its caller, with this error; its load has not ended yet.
        case failed(LoadError)
        /// The load has ended; calls remain.
        case ended(LoadError?)
        /// The load has ended, and the task was ended with this error: only the last calls remain.
        case endedFailed(LoadError)
        /// The last call is made, and the load has ended.
        case over(LoadError?)
        /// The last call is made: the connection was given away.
        case handedOver

        /// The load has ended.
        var hasEnded: Bool {
            switch self {
            case .ended, .endedFailed, .over: true
            case .running, .stopped, .failed, .handedOver: false
            }
        }

        /// The last call is made.
        var isOver: Bool {
            switch self {
            case .over, .handedOver: true
            case .running, .stopped, .failed, .ended, .endedFailed: false
            }
        }

        /// Calls may still become due: the task has neither failed nor made its last call.
        var isOpen: Bool {
            switch self {
            case .running, .stopped, .ended: true
            case .failed, .endedFailed, .over, .handedOver: false
            }
        }

        /// The load is stopped.
        mutating func stop() { if case .running = self { self = .stopped } }

        /// The load has ended. The error of a task that has failed already outweighs this one.
        mutating func finish(_ error: LoadError?) {
            switch self {
            case .running, .stopped: self = .ended(error)
            case .failed(let failure): self = .endedFailed(failure)
            case .handedOver: self = .over(error)
            case .ended, .endedFailed, .over: break
            }
        }

        /// The task is over for its caller. The first error counts.
        mutating func fail(_ error: LoadError) {
            switch self {
            case .running, .stopped: self = .failed(error)
            case .ended: self = .endedFailed(error)
            case .failed, .endedFailed, .over, .handedOver: break
            }
        }

        /// The last call is made of a task whose connection was given away.
        mutating func handOver() {
            if case .ended(let error) = self { self = .over(error) } else { self = .handedOver }
        }
    }
}
