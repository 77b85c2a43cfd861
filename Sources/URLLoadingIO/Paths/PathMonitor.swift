// The networks of this machine, and the wait for their change. It belongs to whoever listens and runs in
// his task: no thread, no task of its own. While he does something else the kernel's buffer fills, at most; what
// is lost then is made good by asking anew.

import Synchronization
import URLLoadingCSystem

/// One user at a time.
package final class PathMonitor: @unchecked Sendable {
    private let channel: any PathChannel
    private var state = PathState()
    /// Something has happened since the state was read.
    private var isStale = true
    private var sequence: UInt32 = 0

    /// Larger than any datagram of the kernel that we ask for.
    private static let datagram = 64 * 1024
    /// How often a state that changes while it is read is read again at once.
    private static let rounds = 4
    /// How long to leave a network alone that does not come to rest, in nanoseconds: longer each time.
    private static let unrest: (first: Int64, most: Int64) = (50_000_000, 5_000_000_000)

    package init(_ source: any PathSource) throws(IOFailure) {
        channel = try source.open(hearsChanges: true)
    }

    private init(once source: any PathSource) throws(IOFailure) {
        channel = try source.open(hearsChanges: false)
    }

    deinit { channel.close() }

    package func close() { channel.close() }

    /// The networks now. The kernel answers within the call.
    package static func look(_ source: any PathSource) throws(IOFailure) -> PathState {
        let monitor = try PathMonitor(once: source)
        defer { monitor.close() }
        try monitor.refresh()
        return monitor.state
    }

    /// The networks now, and from now on changes are heard of.
    package func begin() throws(IOFailure) -> PathState {
        try refresh()
        return state
    }

    /// Waits until they are not as they were when last told, or until something else is due: `token` is
    /// woken to look.
    package func change(_ token: StopToken, unless isDue: () -> Bool = { false }) async throws(IOFailure) -> PathState {
        token.attach(channel.slot)
        defer { token.detach(channel.slot) }
        let known = state
        var pause = Self.unrest.first
        while true {
            try token.check(.read)
            try listen()
            if isStale { try refresh() }
            if state != known || isDue() { return state }
            guard !isStale else {
                try await Poller.shared.sleep(until: Poller.now() + pause, token)
                pause = min(pause * 2, Self.unrest.most)
                continue
            }
            await Poller.shared.park(channel.slot, until: token)
        }
    }

    // MARK: Reading

    /// Hears what has been said unasked.
    private func listen() throws(IOFailure) {
        try receive { entry in
            if state.isNews(entry.message) { isStale = true }
            return true
        }
    }

    /// Asks for everything, again if it changes meanwhile.
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
                if new.isNews(entry.message) || state.isNews(entry.message) { isStale = true }
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
        // The end of an answer before was lost: this question came too early.
        case EBUSY?: isStale = true
        case let number?: throw IOFailure(.system(number), .read)
        case nil: if !isComplete { isStale = true }
        }
    }

    /// Hands on messages until there is none, or `handle` wants no more.
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
                    // To the end of the datagram all the same: what came behind is not heard again.
                    wantsMore = handle(entry) && wantsMore
                }
                guard wantsMore else { return }
            }
        }
    }
}
