// SPDX-License-Identifier: Apache-2.0

// In this folder: the kernel's reports on links, addresses and routes

// Reads the networks of this machine and waits for their change. A monitor belongs to one observer and runs in the
// observer's task, without a thread or task of its own. While that task does something else the kernel's buffer may
// fill up; lost messages are made good by reading everything again.

import URLLoadingCSystem

/// Used by one task at a time.
package final class PathMonitor {
    private let channel: any PathChannel
    private var state = PathState()
    /// True if something changed since the state was read.
    private var isStale = true
    private var sequence: UInt32 = 0

    /// Larger than any datagram that this code requests from the kernel.
    private static let datagram = 64 * 1024
    /// How many times a state that changes while it is being read is read again at once.
    private static let rounds = 4
    /// Delays before rereading networks that keep changing, in nanoseconds: the first one, and the longest.
    private static let rereadDelays: (first: Int64, most: Int64) = (50_000_000, 5_000_000_000)

    package init(_ source: any PathSource) throws(IOFailure) {
        channel = try source.open(notifiesOfChanges: true)
    }

    private init(once source: any PathSource) throws(IOFailure) {
        channel = try source.open(notifiesOfChanges: false)
    }

    deinit { channel.close() }

    package func close() { channel.close() }

    /// Returns the networks as they are now. The kernel answers within the call.
    package static func read(_ source: any PathSource) throws(IOFailure) -> PathState {
        let monitor = try PathMonitor(once: source)
        defer { monitor.close() }
        try monitor.refresh()
        return monitor.state
    }

    /// Returns the networks as they are now and starts observing changes.
    package func begin() throws(IOFailure) -> PathState {
        try refresh()
        return state
    }

    /// Waits until the networks differ from the last reported state, or until `isDue` returns true; a caller wakes
    /// `token` to have `isDue` evaluated.
    package func change(_ token: StopToken, unless isDue: () -> Bool = { false }) async throws(IOFailure) -> PathState {
        token.attach(channel.slot)
        defer { token.detach(channel.slot) }
        let known = state
        var pause = Self.rereadDelays.first
        while true {
            try token.check(.read)
            try listen()
            if isStale { try refresh() }
            if state != known || isDue() { return state }
            guard !isStale else {
                try await Poller.shared.sleep(until: Poller.now() + pause, token)
                pause = min(pause * 2, Self.rereadDelays.most)
                continue
            }
            await Poller.shared.park(channel.slot, until: token)
        }
    }

    // MARK: Reading

    /// Processes the change notifications that have arrived.
    private func listen() throws(IOFailure) {
        try receive { entry in
            if state.isChange(entry.message) { isStale = true }
            return true
        }
    }

    /// Reads all tables, again if they change meanwhile.
    private func refresh() throws(IOFailure) {
        for _ in 0..<Self.rounds {
            isStale = false
            var new = PathState()
            for table in PathTable.allCases { try read(table, into: &new) }
            state = new
            guard isStale else { return }
        }
    }

    private func read(_ table: PathTable, into new: inout PathState) throws(IOFailure) {
        sequence &+= 1
        try channel.ask(table, sequence)
        var failure: Int32?
        var isComplete = false
        try receive { entry in
            guard entry.port == channel.port, entry.sequence == sequence else {
                if new.isChange(entry.message) || state.isChange(entry.message) { isStale = true }
                return true
            }
            if entry.isInterrupted { isStale = true }
            switch entry.message {
            case .done: isComplete = true
            case .failed(let number): failure = number
            default: new.add(entry.message)
            }
            return !isComplete && failure == nil
        }
        switch failure {
        // EBUSY: the end of the previous answer was lost, so this request came too early.
        case EBUSY?: isStale = true
        case let number?: throw IOFailure(.system(number), .read)
        case nil: if !isComplete { isStale = true }
        }
    }

    /// Passes messages to `handle` until there are none left or `handle` returns false.
    private func receive(_ handle: (RouteMessageReader.Entry) -> Bool) throws(IOFailure) {
        var buffer = [UInt8](repeating: 0, count: Self.datagram)
        while true {
            let datagram = buffer.withUnsafeMutableBytes { bytes in
                Result { () throws(IOFailure) in try channel.receive(into: bytes) }
            }
            switch try datagram.get() {
            case .none: return
            case .lost: isStale = true
            case .bytes(let count):
                var reader = RouteMessageReader(buffer[..<count])
                var wantsMore = true
                while let entry = reader.next() {
                    if entry.message == .damaged { isStale = true }
                    // Finish the datagram in any case: its remaining messages are not delivered again.
                    wantsMore = handle(entry) && wantsMore
                }
                guard wantsMore else { return }
            }
        }
    }
}
