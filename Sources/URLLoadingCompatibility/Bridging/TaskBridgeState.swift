// What is known of a task, as a value under the lock of `TaskBridge`. Phases that exclude each other are enums with what
// belongs to the phase: a task that is over has no load, a body has one place to go.

import Foundation
import URLLoading
import URLLoadingIO

extension TaskBridge {
    struct State: Sendable {
        var mailbox: Mailbox
        private var stage: Stage
        var beginning = Beginning.resting
        /// The task is suspended.
        var isHeldUp = false
        var isCanceled = false
        var current: URLRequest
        /// The request after the redirect that is being followed, if the delegate or a class of ``URLProtocol`` chose it.
        var next: URLRequest?
        /// The latest response; of several parts in one body, the latest part's.
        var response: URLResponse?
        /// Known after the end of the task, too.
        var remainder = Remainder.none
        /// The delegate whose decision about servers the load's connections have; `nil` for that of the session.
        var trustee: ObjectIdentifier?

        init(_ mailbox: Mailbox, _ request: URLRequest, _ active: Active) {
            self.mailbox = mailbox
            current = request
            stage = .active(active)
        }

        /// What only a task has whose last call is still to be made; `nil` afterwards, and setting it changes nothing then.
        var active: Active? {
            get { if case .active(let active) = stage { active } else { nil } }
            set { if case .active = stage, let newValue { stage = .active(newValue) } }
        }

        /// The last call is made. Returns what the task held, to be released outside of the lock.
        mutating func leave() -> Active? {
            let active = active
            if let active { stage = .over(active.work.load?.snapshot) }
            return active
        }

        var session: URLSession? { active?.session }
        var task: URLSessionTask? { active?.task }
        var load: BridgedLoad? { active?.work.load }

        /// How the load stands or, after the last call, how it stood then; `nil` without a load.
        var snapshot: LoadSnapshot? {
            switch stage {
            case .active(let active): active.work.load?.snapshot
            case .over(let snapshot): snapshot
            }
        }

        /// What the load says is not for the task: another load has its place, or the task is over.
        var isDeaf: Bool {
            switch stage {
            case .active(let active): if case .replaced = active.work { true } else { false }
            case .over: true
            }
        }
    }

    private enum Stage: Sendable {
        case active(Active)
        /// The last call is made.
        case over(LoadSnapshot?)
    }

    /// A task that has its last call before it holds its session, its objects and its load.
    struct Active: Sendable {
        let session: URLSession
        /// Set as soon as it is made.
        var task: URLSessionTask?
        /// Taken by the last call.
        var handler: Handler?
        var work = Work.unmade
        var origin = Origin.request
        var judgement = Judgement.none
        var body = BodyPath.mailbox
        /// The latest response as the core has it.
        var head: Response?
        /// The body of the request as it was made; taken by the first sending.
        nonisolated(unsafe) var stream: InputStream?
    }

    /// The load behind a task.
    enum Work: Sendable {
        case unmade
        case load(BridgedLoad)
        /// The load gives way to another load, or to another task.
        case replaced(BridgedLoad)
        /// Why no load can be made.
        case impossible(LoadError)

        init(_ made: Result<BridgedLoad, LoadError>) {
            switch made {
            case .success(let load): self = .load(load)
            case .failure(let error): self = .impossible(error)
            }
        }

        var load: BridgedLoad? {
            switch self {
            case .load(let load), .replaced(let load): load
            case .unmade, .impossible: nil
            }
        }

        var error: LoadError? { if case .impossible(let error) = self { error } else { nil } }
    }

    /// What a task's load sends, or goes on with.
    enum Origin: Sendable {
        case request
        case upload(UploadWork)
        case resumedUpload(UploadTicket, UploadWork)
        case resumedDownload(ResumeToken)

        var upload: UploadWork? {
            switch self {
            case .upload(let upload), .resumedUpload(_, let upload): upload
            case .request, .resumedDownload: nil
            }
        }
    }

    /// What the delegate of a data task said about the response before any of the body was read.
    enum Judgement: Sendable {
        /// It is asked when the response is delivered.
        case none
        case allowed(URLResponse)
        case becomesDownload(URLResponse)

        var response: URLResponse? {
            switch self {
            case .none: nil
            case .allowed(let response), .becomesDownload(let response): response
            }
        }
    }

    /// Where pieces of a response's body go.
    enum BodyPath: Sendable {
        case mailbox
        /// The body is several, each in the place of the one before.
        case parts(MixedParts)
        /// The data task became a download, whose file is not open yet: what arrives is kept in the mailbox.
        case opening(Spool)
        case spooling(Spool)

        var spool: Spool? {
            switch self {
            case .mailbox, .parts: nil
            case .opening(let spool), .spooling(let spool): spool
            }
        }

        /// A part was found.
        var hasParts: Bool { if case .parts(let parts) = self { parts.hasBegun } else { false } }
    }

    /// How far a task is on its way to its beginning.
    enum Beginning: Sendable {
        case resting
        /// Until its date, and its delegate's answer.
        case waiting(Task<Void, Never>, Float)
        /// The load may be told to begin.
        case due
        /// The load was told to begin.
        case begun
    }

    /// What a task's end leaves.
    enum Remainder: Sendable {
        case none
        /// With what a failed or cancelled upload can go on.
        case ticket(UploadTicket)
        /// What a WebSocket's server has said in leaving.
        case closing(URLSessionWebSocketTask.CloseCode, reason: Data?)

        var ticket: UploadTicket? { if case .ticket(let ticket) = self { ticket } else { nil } }
    }
}
