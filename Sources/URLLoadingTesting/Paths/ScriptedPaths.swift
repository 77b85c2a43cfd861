// SPDX-License-Identifier: Apache-2.0

// A simulated kernel for tests of networks: its tables consist of messages, observers are notified of changes, and it
// can lose and damage messages.

import Synchronization
package import URLLoadingIO

package final class ScriptedPaths: PathSource {
    package struct Tables: Sendable {
        package var links: [[UInt8]] = []
        package var addresses: [[UInt8]] = []
        package var routes: [[UInt8]] = []

        package init(links: [[UInt8]] = [], addresses: [[UInt8]] = [], routes: [[UInt8]] = []) {
            self.links = links
            self.addresses = addresses
            self.routes = routes
        }

        fileprivate subscript(table: PathTable) -> [[UInt8]] {
            switch table {
            case .links: links
            case .addresses: addresses
            case .routes: routes
            }
        }
    }

    /// A datagram, or a loss, that an open channel is still to deliver.
    fileprivate enum Delivery: Sendable {
        case bytes([UInt8])
        case lost
    }

    /// What was asked of the kernel, all taken at the same moment.
    package struct Counts: Sendable {
        /// The number of times that a table was requested.
        package fileprivate(set) var questions = 0
        /// The number of channels open now.
        package fileprivate(set) var open = 0
        /// The number of channels ever opened.
        package fileprivate(set) var opened = 0
        /// The number of times that the local address was requested.
        package fileprivate(set) var asked = 0
    }

    struct State: ServerState {
        fileprivate var tables: Tables
        fileprivate var channels: [ScriptedChannel] = [] {
            didSet { counts.open = channels.count }
        }
        fileprivate var counts = Counts()
        fileprivate var refusal: IOFailure?
        /// Runs once, in the middle of the next answer.
        fileprivate var meanwhile: (@Sendable (ScriptedPaths) -> Void)?
        fileprivate var local: SocketAddress?
        var watchers: [PollSlot] = []
        var shown: String { "\(counts)" }

        fileprivate init(_ tables: Tables) { self.tables = tables }
    }
    fileprivate let state: Lock<State>

    package init(_ tables: Tables = Tables()) { state = Lock(State(tables)) }

    package var counts: Counts { state.withLock { $0.counts } }
    package var questions: Int { counts.questions }
    package var open: Int { counts.open }
    package var opened: Int { counts.opened }

    /// Waits until the counts fulfil a condition.
    /// - Throws: ``WaitTimedOut`` after ``WaitTimedOut/usualLimit``; `CancellationError`.
    package nonisolated(nonsending) func wait(
        file: StaticString = #fileID, line: UInt = #line, until condition: @Sendable (Counts) -> Bool
    ) async throws {
        try await wait(WaitLimit(WaitTimedOut.usualLimit, "the counts of the simulated kernel", file, line)) {
            condition($0.counts) ? () : nil
        }
    }

    /// Makes opening a channel fail from now on.
    package func refuse(_ number: Int32) { state.withLock { $0.refusal = IOFailure(.system(number), .open) } }

    /// Changes the tables, and notifies observers with these messages in one datagram; without messages, they are not
    /// notified.
    package func change(telling messages: [[UInt8]] = [], _ change: (inout Tables) -> Void = { _ in }) {
        let channels = state.withLock { state in
            change(&state.tables)
            return state.channels
        }
        guard !messages.isEmpty else { return }
        for channel in channels { channel.deliver(.bytes(messages.flatMap { $0 })) }
    }

    /// Notifies observers that messages were lost.
    package func lose() {
        for channel in state.withLock({ $0.channels }) { channel.deliver(.lost) }
    }

    /// Runs `body` once, when the next table is requested and before it is answered.
    package func meanwhile(_ body: @escaping @Sendable (ScriptedPaths) -> Void) {
        state.withLock { $0.meanwhile = body }
    }

    /// Makes every peer reachable from this address from now on.
    package func reach(by local: SocketAddress?) { state.withLock { $0.local = local } }

    package func localAddress(towards peer: SocketAddress) -> SocketAddress? {
        change { (state: inout State) in
            state.counts.asked += 1
            return state.local
        }
    }

    package func open(notifiesOfChanges: Bool) throws(IOFailure) -> any PathChannel {
        let channel = ScriptedChannel(self, notifiesOfChanges: notifiesOfChanges)
        let refusal = change { (state: inout State) -> IOFailure? in
            guard state.refusal == nil else { return state.refusal }
            state.counts.opened += 1
            state.channels.append(channel)
            return nil
        }
        if let refusal {
            channel.close()
            throw refusal
        }
        return channel
    }

    fileprivate func answer(_ table: PathTable) -> [[UInt8]] {
        let meanwhile = state.withLock { state in
            defer { state.meanwhile = nil }
            return state.meanwhile
        }
        meanwhile?(self)
        return change { (state: inout State) in
            state.counts.questions += 1
            return state.tables[table]
        }
    }

    fileprivate func closed(_ channel: ScriptedChannel) {
        change { (state: inout State) in state.channels.removeAll { $0 === channel } }
    }
}

extension ScriptedPaths: WatchedServer {
    func withState<R: Sendable>(_ use: (inout State) -> R) -> R { state.withLock { use(&$0) } }
}

private final class ScriptedChannel: PathChannel {
    let slot: PollSlot
    let port: UInt32 = 4711
    private let source: ScriptedPaths
    private let notifiesOfChanges: Bool
    private let deliveries = Lock<[ScriptedPaths.Delivery]?>([])

    init(_ source: ScriptedPaths, notifiesOfChanges: Bool) {
        self.source = source
        self.notifiesOfChanges = notifiesOfChanges
        slot = Poller.shared.borrowSlot()
    }

    func deliver(_ delivery: ScriptedPaths.Delivery) {
        guard notifiesOfChanges else { return }
        deliveries.withLock { $0?.append(delivery) }
        slot.wake()
    }

    func ask(_ table: PathTable, _ sequence: UInt32) throws(IOFailure) {
        let messages = source.answer(table).map { RouteBytes.answering($0, sequence, port) }
        let end = RouteBytes.answering(RouteBytes.done, sequence, port)
        // One datagram for each message, as if the kernel's datagrams were small.
        deliveries.withLock { $0?.append(contentsOf: (messages + [end]).map { .bytes($0) }) }
    }

    func receive(into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> PathDatagram {
        let delivery = deliveries.withLock { $0?.isEmpty == false ? $0?.removeFirst() : nil }
        switch delivery {
        case nil: return .none
        case .lost?: return .lost
        case .bytes(let bytes)?:
            guard bytes.count <= buffer.count else { return .lost }
            buffer.copyBytes(from: bytes)
            return .bytes(bytes.count)
        }
    }

    func close() {
        let wasOpen = deliveries.withLock { deliveries in
            defer { deliveries = nil }
            return deliveries != nil
        }
        guard wasOpen else { return }
        source.closed(self)
        Poller.shared.returnSlot(slot)
    }
}
