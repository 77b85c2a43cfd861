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

    fileprivate struct State: Sendable {
        var tables: Tables
        var channels: [ScriptedChannel] = []
        var questions = 0
        var opened = 0
        var refusal: IOFailure?
        /// Runs once, in the middle of the next answer.
        var meanwhile: (@Sendable (ScriptedPaths) -> Void)?
        var local: SocketAddress?
        var asked = 0
    }
    fileprivate let state: Lock<State>

    package init(_ tables: Tables = Tables()) { state = Lock(State(tables: tables)) }

    /// The number of times that a table was requested.
    package var questions: Int { state.withLock { $0.questions } }
    /// The number of channels open now, and of all channels ever opened.
    package var open: Int { state.withLock { $0.channels.count } }
    package var opened: Int { state.withLock { $0.opened } }

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

    /// The number of times that the local address was requested.
    package var asked: Int { state.withLock { $0.asked } }

    package func localAddress(towards peer: SocketAddress) -> SocketAddress? {
        state.withLock { state in
            state.asked += 1
            return state.local
        }
    }

    package func open(notifiesOfChanges: Bool) throws(IOFailure) -> any PathChannel {
        let channel = ScriptedChannel(self, notifiesOfChanges: notifiesOfChanges)
        let refusal = state.withLock { state in
            guard state.refusal == nil else { return state.refusal }
            state.opened += 1
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
        return state.withLock { state in
            state.questions += 1
            return state.tables[table]
        }
    }

    fileprivate func closed(_ channel: ScriptedChannel) {
        state.withLock { state in state.channels.removeAll { $0 === channel } }
    }
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
