// SPDX-License-Identifier: Apache-2.0

// In this folder: server-sent events with reconnection

// One iteration of server-sent events: connect, read, wait, reconnect. Each connection is the load of a task handle, so
// that the session can end it even between two events, when no library code runs.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

struct EventStream: Sendable {
    private let session: Session
    private let request: Request
    private let decisions: Decisions?
    private let reconnection: ServerSentEvents.Reconnection
    private var reader: EventReader?
    private var connection: Connection?
    private var lastEventID: String
    private var history = ReconnectionPlan.History()
    /// The time at which the stream was lost; `nil` while it is connected.
    private var lostAt: Int64?
    /// The deadline of the whole iteration; `nil` before the first call.
    private var deadline: Int64?
    private var ending: Result<Void, LoadError>?

    private static let lastEventIDField = FieldName("Last-Event-ID")

    init(_ session: Session, _ request: Request, _ decisions: Decisions?, _ reconnection: ServerSentEvents.Reconnection)
    {
        self.session = session
        self.request = request.forEvents
        self.decisions = decisions
        self.reconnection = reconnection
        lastEventID = request.headers[Self.lastEventIDField] ?? ""
    }

    private var clock: LoopClock { session.core.configuration.clock }

    /// Returns the next event, parsed off the caller's actor.
    @concurrent mutating func nextOffActor() async throws(LoadError) -> ServerSentEvent? { try await next() }

    mutating func next() async throws(LoadError) -> ServerSentEvent? {
        if deadline == nil {
            deadline = request.resourceTimeout.map { clock.now() &+ LoadHandle.nanoseconds($0) } ?? .max
        }
        while ending == nil {
            var failure: LoadError?
            do throws(LoadError) {
                if reader == nil, !(try await connect()) { break }
                if let event = try await reader?.next() { return event }
            } catch {
                failure = error.at(request.url)
            }
            await recover(after: failure)
        }
        (reader, connection) = (nil, nil)
        try ending?.get()
        return nil
    }

    /// Ends its load together with the iteration, even if the body is still referenced elsewhere.
    private final class Connection: Sendable {
        private let task: LoadTask<Data>
        init(_ task: LoadTask<Data>) { self.task = task }
        deinit { task.cancel() }
    }

    // MARK: Connecting

    /// Connects. Returns false if the server forbids to reconnect.
    private mutating func connect() async throws(LoadError) -> Bool {
        let task = session.dataTask(prepared(), decisions: decisions)
        connection = Connection(task)
        task.resume()
        let response = try await task.response
        if response.http?.status == .noContent {
            ending = .success(())
            return false
        }
        if let status = response.http?.status, status != .ok {
            throw LoadError(refusing: response, .unacceptableStatus, status.description)
        }
        guard response.mediaType?.essence == "text/event-stream" else {
            throw LoadError(
                refusing: response, .unacceptableContentType,
                "the type is \(response.mediaType?.essence ?? "not stated"), and text/event-stream is required")
        }
        let source = try await task.body.source
        guard source.claim() else { throw .bodyUnavailable }
        history.wasConnected = true
        reader = EventReader(source, lastEventID: lastEventID)
        return true
    }

    private func prepared() -> Request {
        var request = request
        // An event ID may contain characters that a header field must not; such an ID is never sent.
        let isSendable = lastEventID.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F || $0 == "\t" }
        request.headers[Self.lastEventIDField] = lastEventID.isEmpty || !isSendable ? nil : lastEventID
        request.resourceTimeout =
            deadline.flatMap { $0 == .max ? nil : .nanoseconds(max(1, $0 - clock.now())) } ?? .unlimited
        return request
    }

    // MARK: Reconnecting

    private mutating func recover(after failure: LoadError?) async {
        note(reader)
        (reader, connection) = (nil, nil)
        let now = clock.now()
        history.lostFor = now - (lostAt ?? now)
        lostAt = lostAt ?? now
        switch ReconnectionPlan.make(after: failure, history, reconnection, chance: .random(in: 0..<1)) {
        case .end: ending = .success(())
        case .fail(let error): ending = .failure(error)
        case .connect(let delay):
            history.failures += 1
            do throws(LoadError) { try await wait(until: now &+ delay) } catch { ending = .failure(error) }
        }
    }

    private mutating func note(_ reader: EventReader?) {
        guard let reader else { return }
        lastEventID = reader.lastEventID
        history.retry = reader.retry ?? history.retry
        guard reader.hasReceived else { return }
        history.failures = 0
        lostAt = nil
    }

    private func wait(until moment: Int64) async throws(LoadError) {
        let deadline = deadline ?? .max
        // When the session is invalidated it ends a waiting stream, and does not wait for it.
        let pause = LoadHandle(idle: nil, resource: nil, clock: clock, holdsSession: false)
        guard session.core.registry.enter(pause) else { throw .sessionInvalidated(request.url) }
        defer { session.core.registry.leave(pause) }
        let clock = clock
        let slept: Result<Void, IOFailure> = await withTaskCancellationHandler {
            do throws(IOFailure) { return .success(try await clock.sleep(until: min(moment, deadline), pause)) } catch {
                return .failure(error)
            }
        } onCancel: {
            pause.stop(.cancelled)
        }
        if case .failure = slept { throw LoadError(pause.stopReason ?? .cancelled, phase: .waiting).at(request.url) }
        guard moment < deadline else { throw LoadError(.deadline, phase: .waiting).at(request.url) }
    }
}

extension Duration {
    /// A duration longer than any program runs.
    fileprivate static let unlimited = Duration.seconds(Int64.max / 4)
}

extension Request {
    /// The request with the fields that an event stream needs, unless the caller has set them.
    fileprivate var forEvents: Request {
        var request = self
        if !headers.contains(.accept) { request.headers[.accept] = "text/event-stream" }
        if !headers.contains(.cacheControl) { request.headers[.cacheControl] = "no-store" }
        request.idleTimeout = idleTimeout ?? Duration.unlimited
        return request
    }
}
