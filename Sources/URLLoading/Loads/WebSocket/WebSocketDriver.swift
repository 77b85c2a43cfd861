// SPDX-License-Identifier: Apache-2.0

// In this folder: an open WebSocket

// The driver behind a WebSocket task: the load that opens the socket, then its connection, the calls that use it, and
// its end. Reading, sending and the idle timer are extensions in files of their own.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// Receives a WebSocket's events for the classic layer.
package protocol WebSocketSink: AnyObject, Sendable {
    /// Receives the events in order; must not wait.
    func emit(_ event: LoadEvent)
    /// Called before any message of the open socket.
    func opened(_ opening: WebSocketOpening)
}

final class WebSocketDriver: LoadListener, StopListener, @unchecked Sendable {
    // Unchecked: the variables belong to the call that reads or writes, of which `state` allows one each.
    let context: LoadContext
    let options: WebSocketOptions
    /// The maximum size of a received message in bytes. May change.
    let maximumMessageSize: Atomic<Int>
    private let sink: (any WebSocketSink)?
    let state: Lock<WebSocketState>
    /// The URL of the request, with its original scheme.
    let url: URL
    private let offer: WebSocketOffer
    /// Why the request can open no WebSocket; thrown once the task has begun, as every task's request is judged.
    private let refusal: LoadError?

    // Each of these is accessed only by the call that has the role of reader or writer.
    var input: WebSocketInput?
    var output: WebSocketOutput?
    var deflater: MessageDeflater?
    private(set) var deflate: MessageDeflate?
    /// The number of bytes received since the reader last had to wait.
    let receivedInTurn = Atomic<Int>(0)
    let sentCount = Atomic<Int64>(0)
    let receivedCount = Atomic<Int64>(0)

    init(
        _ core: Core, _ request: Request, _ protocols: [String], _ options: WebSocketOptions, _ decisions: Decisions?,
        sink: (any WebSocketSink)? = nil
    ) {
        self.options = options
        self.sink = sink
        maximumMessageSize = Atomic(options.maximumMessageSize)
        state = Lock(WebSocketState(readAhead: options.readAhead))
        offer = WebSocketOffer(protocols, options)
        url = request.url
        var request = request
        var refusal: LoadError?
        do throws(LoadError) {
            request = try request.openingWebSocket(offer.handshake([]).fields(isHTTP2: false))
        } catch {
            refusal = error
        }
        self.refusal = refusal
        // A session that finishes its tasks waits for a classic task even before it is resumed.
        context = LoadContext(
            core, request, decisions, consumer: .reader, owner: LoadOwner(isObserved: true, holdsSession: sink != nil))
        context.setListener(self)
        if !core.registry.enter(context.handle) {
            state.withLock { $0.fail(.sessionInvalidated(url)) }
            settle()
        }
    }

    var core: Core { context.core }
    var clock: LoopClock { context.clock }
    var stopReason: StopReason? { context.stopReason }
    func stop(_ reason: StopReason) { context.stop(reason) }

    func process(_ event: LoadEvent) { sink?.emit(event) }

    // MARK: Opening

    func resume() {
        guard state.withLock({ $0.resume(Task.currentPriority) }) else { return }
        context.handle.holdsSession.store(true, ordering: .relaxed)
        context.handle.startClock()
        core.registry.watch(context.handle)
        Task.here(onLoop: core.configuration.loadsOnLoop) { await self.open() }
    }

    private func open() async {
        do throws(LoadError) {
            if let refusal { throw refusal }
            let load = Load(context: context, purpose: .webSocket(offer))
            let exchange = try await load.run(context.original).body(for: context)
            do throws(LoadError) { try takeOver(exchange) } catch { throw exchange.failed(error) }
        } catch {
            let error = context.handle.worded(LoadError(stopReason, or: error).ofWebSocket(at: url))
            state.withLock { $0.failedToOpen(error) }
        }
        keep(within: Self.idleInterval)
        beginPinging()
        settle()
    }

    private func takeOver(_ exchange: any Exchange) throws(LoadError) {
        guard let head = exchange.head, let network = exchange.network else {
            throw LoadError(.notHTTP, phase: .waiting, party: .local)
        }
        let isHTTP2 = network.isShared
        guard isHTTP2 ? head.status.kind == .successful : head.status == .switchingProtocols else {
            throw LoadError(
                .webSocketRefused, phase: .waiting, party: .remote, detail: "\(head.status)",
                underlying: WebSocketRefusal(response: exchange.response))
        }
        if let violation = head.tolerated.all.first { throw LoadError(violation, .waiting) }
        let response = exchange.response
        guard let handshake = network.handshake else { throw LoadError(.notHTTP, phase: .waiting, party: .local) }
        let agreement: WebSocketHandshake.Agreement
        do throws(WireViolation) {
            agreement = try handshake.agreement(head.headers, isHTTP2: isHTTP2, sha1: DigestHash.sha1.bytes)
        } catch {
            throw LoadError(error, .waiting)
        }
        guard let connection = network.surrender() else {
            throw LoadError(.cancelled, phase: .waiting, party: .local)
        }
        // The resource timeout covers the opening only.
        context.handle.deadline.store(.max, ordering: .relaxed)
        deflate = agreement.deflate
        input = WebSocketInput(
            limit: options.maximumMessageSize, deflate: agreement.deflate, received: connection.received)
        output = WebSocketOutput(allowsCompression: agreement.deflate != nil)
        let opening = WebSocketOpening(
            response: response, subprotocol: agreement.subprotocol, isCompressed: agreement.deflate != nil)
        sink?.opened(opening)
        state.withLock { $0.opened(connection.transport, opening) }
    }

    // MARK: End

    /// A socket ends when its holder or its peer closes it.
    func requireEnd() {}

    func stopped() {
        // The peer is sent a close frame if that is possible without a wait.
        let isOpen = state.withLock { state in
            guard state.transport != nil, state.outcome == nil else { return false }
            state.control.queueFarewell()
            return true
        }
        if isOpen { _ = pump() }
        settle()
    }

    /// Carries out the consequences of a change of the state: wakes the calls that wait for one, closes the transport.
    func settle() {
        let stop = stopReason
        let settlement = state.withLock { state in
            state.settle(stop.map { context.handle.worded(LoadError($0, phase: state.phase).at(url)) })
        }
        for slot in settlement.waking { slot.wake() }
        guard settlement.ends else { return }
        settlement.transport?.close()
        input?.drop(.large)
        (input, output, deflater) = (nil, nil, nil)
        context.end(state.withLock { $0.outcome?.error })
        for slot in state.withLock({ $0.over() }) { slot.wake() }
    }

    func failure(_ reason: LoadError.Reason, _ party: LoadError.Party = .local) -> LoadError {
        LoadError(reason, phase: state.withLock { $0.phase }, party: party, url: url)
    }

    /// Returns the error of a server that has not answered for as long as the limit.
    func failure(_ reason: LoadError.Reason, after limit: Duration?) -> LoadError {
        failure(reason, .remote).with(detail: limit.map { "no answer within \($0)" })
    }

    /// Returns the error for a call on a socket that has ended.
    func ended(_ outcome: WebSocketState.Outcome) -> LoadError {
        switch outcome {
        case .failed(let error): error
        case .closed(let close, _):
            LoadError(
                .webSocketClosed, phase: .receiving, party: .remote, url: url, detail: close?.description,
                underlying: WebSocketClosed(close: close ?? WebSocketClose(.noStatus)))
        }
    }

    /// The time by which the peer must have closed its connection after the close frames; then this side closes it. On
    /// a stream of a shared connection the wait is short, because some servers never end their streams.
    var closeDeadline: Int64 {
        let isTunnel = state.withLock { $0.transport is HTTP2Tunnel }
        return clock.now() &+ LoadHandle.nanoseconds(isTunnel ? tunnelCloseDelay : closeDelay)
    }
    private var closeDelay: Duration { min(options.closeTimeout, .seconds(2)) }
    private var tunnelCloseDelay: Duration { min(options.closeTimeout, .milliseconds(100)) }

    /// Returns whether the wait for the peer's end is over. On a shared connection the connection's writer may not yet
    /// have sent the last frame, and a reset would discard it, so an unsent frame extends the wait to that of a
    /// separate connection.
    /// - Parameter until: the `closeDeadline`.
    func isPastCloseDeadline(_ transport: any Transport, _ until: Int64) -> Bool {
        let now = clock.now()
        guard now >= until, let tunnel = transport as? HTTP2Tunnel, tunnel.holdsUnsent else { return now >= until }
        return now >= until &+ LoadHandle.nanoseconds(closeDelay) - LoadHandle.nanoseconds(tunnelCloseDelay)
    }

    func violated(_ violation: WireViolation) {
        let error = LoadError(violation, .receiving).at(url)
        let moment = closeDeadline
        state.withLock { $0.fail(error, WebSocketClose.Code(violation), until: moment) }
        input?.drop(.large)
        _ = pump()
        settle()
    }
}

extension WebSocketClose.Code {
    fileprivate init(_ violation: WireViolation) {
        self =
            switch violation.code {
            case .messageTooLarge: .messageTooBig
            case .invalidText, .contentDecodingFailed: .invalidContent
            case .webSocketFlood: .policyViolation
            case _ where violation.party == .local: .internalError
            default: .protocolError
            }
    }
}
