// SPDX-License-Identifier: Apache-2.0

// The state of a task, as a value under the lock of `TaskBridge`. Phases that exclude each other are enum cases with
// the data of the phase: a task that is over has no load, a body has one destination.

import Foundation
import URLLoading

extension TaskBridge {
    struct State: Sendable {
        var mailbox: Mailbox
        /// `nil` after the last call, like the task.
        private(set) var session: URLSession?
        private(set) var task: URLSessionTask?
        private var stage = Stage.active(.notCreated)
        /// The data of a task that has not made its last call; `nil` afterwards.
        private(set) var active: Active?
        var beginning = Beginning.resting
        /// Whether the task is suspended.
        var isSuspended = false
        var isCanceled = false
        var current: URLRequest
        /// The next request of a redirect that is being followed, if the delegate or a ``URLProtocol`` class chose it.
        var next: URLRequest?
        /// The latest response; for a multipart body, the response of the latest part.
        var response: URLResponse?
        /// The data available after the end of the task.
        var remainder = Remainder.none
        /// The delegate that decides about server trust for the load's connections; `nil` for the session's delegate.
        var trustDelegate: ObjectIdentifier?

        init(_ mailbox: Mailbox, _ request: URLRequest, _ session: URLSession, _ details: Active) {
            self.mailbox = mailbox
            current = request
            self.session = session
            active = details
        }

        /// The load of a task that has not made its last call. Setting it afterwards has no effect.
        var work: Work {
            get { if case .active(let work) = stage { work } else { .notCreated } }
            set { if case .active = stage { stage = .active(newValue) } }
        }

        /// Sets the task object, unless the last call was made.
        mutating func setTask(_ task: URLSessionTask) { if session != nil { self.task = task } }

        /// The objects that a task held.
        struct Released: Sendable {
            let session: URLSession?
            let task: URLSessionTask?
            let work: Work
            let details: Active?
        }

        /// Ends the task after the last call to its delegate or handler. Returns the objects that the task held, to be
        /// destroyed outside of the lock.
        mutating func leave() -> Released {
            let released = Released(session: session, task: task, work: work, details: active)
            if case .active(let work) = stage { stage = .over(work.load?.snapshot) }
            (session, task, active) = (nil, nil, nil)
            return released
        }

        /// Sends the body stream of a request that the program supplied in place of `proposed`, without asking the
        /// delegate for one. A stream that `proposed` already had may have been read.
        mutating func offerStream(of request: URLRequest, insteadOf proposed: URLRequest?) {
            guard let stream = request.httpBodyStream, stream !== proposed?.httpBodyStream else { return }
            active?.stream = stream
        }

        var load: BridgedLoad? { work.load }

        /// The state of the load, or its final state after the last call; `nil` without a load.
        var snapshot: LoadSnapshot? {
            switch stage {
            case .active(let work): work.load?.snapshot
            case .over(let snapshot): snapshot
            }
        }

        /// Whether events of the load are ignored, because another load has replaced it or the task is over.
        var ignoresEvents: Bool {
            switch stage {
            case .active(.replaced), .over: true
            case .active: false
            }
        }
    }

    private enum Stage: Sendable {
        case active(Work)
        /// The last call was made.
        case over(LoadSnapshot?)
    }

    /// The data of a task before its last call. An object, because reading a part of an optional value copies all of
    /// it.
    final class Active: @unchecked Sendable {
        // Unchecked: used under the lock of the state that holds it.
        /// The receiver of the result, removed by the last call.
        var handler: Handler?
        var origin = Origin.request
        var disposition = Disposition.none
        var body = BodyPath.mailbox
        /// The latest response in the core's form.
        var head: Response?
        /// The body stream of the next request, from the original request or from one that the program supplied
        /// instead; removed when that request is sent. `nil` if the delegate has to provide the stream.
        var stream: InputStream?

        init(handler: Handler?, stream: InputStream?) {
            (self.handler, self.stream) = (handler, stream)
        }
    }

    /// The load behind a task.
    enum Work: Sendable {
        case notCreated
        case load(BridgedLoad)
        /// The load is being replaced by another load, or moved to another task.
        case replaced(BridgedLoad)
        /// The reason why no load can be created.
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
            case .notCreated, .impossible: nil
            }
        }

        var error: LoadError? { if case .impossible(let error) = self { error } else { nil } }
    }

    /// The source of a task's load: a request, or the state from which it is resumed.
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

    /// The answer of a data task's delegate about the response, given before any of the body was read.
    enum Disposition: Sendable {
        /// Not asked yet: the delegate is asked when the response is delivered.
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

    /// The destination of the pieces of a response's body.
    enum BodyPath: Sendable {
        case mailbox
        /// A multipart body: each part replaces the previous one.
        case parts(MixedParts)
        /// The data task became a download whose file is not open yet: pieces are kept in the mailbox.
        case opening(Spool)
        case spooling(Spool)

        var spool: Spool? {
            switch self {
            case .mailbox, .parts: nil
            case .opening(let spool), .spooling(let spool): spool
            }
        }

        /// Whether a part was found.
        var hasParts: Bool { if case .parts(let parts) = self { parts.hasBegun } else { false } }
    }

    /// The phase of a task before its load begins.
    enum Beginning: Sendable {
        case resting
        /// The task waits for its date and for its delegate's answer.
        case waiting(Task<Void, Never>, Float)
        /// The load may be begun.
        case due
        /// The load was begun.
        case begun
    }

    /// The data that remains after a task's end.
    enum Remainder: Sendable {
        case none
        /// The state from which a failed or cancelled upload can be resumed.
        case ticket(UploadTicket)
        /// The close code and reason that a WebSocket server sent.
        case closing(URLSessionWebSocketTask.CloseCode, reason: Data?)

        var ticket: UploadTicket? { if case .ticket(let ticket) = self { ticket } else { nil } }
    }
}
