// While nobody waits for a WebSocket nobody reads it. The poller's thread then looks now and then, without waiting, so
// that a ping is answered, a close heard, and what did not go out at once goes out. No task and no buffer per socket.

import Synchronization
import URLLoadingIO

final class WebSocketKeeper: TimerTarget {
    private let load: WebSocketLoad
    init(_ load: WebSocketLoad) { self.load = load }
    func timerFired(now: Int64) { load.keep() }
}

extension WebSocketLoad {
    static let rest: Int64 = 1_000_000_000
    /// While something is on its way out, or the peer is about to close.
    static let soon: Int64 = 20_000_000
    /// At most so many reads in one look, and of so many bytes: the poller has other work.
    private static let looks = 4
    private static let lookSize = 16 * 1024

    /// Has somebody look after the socket, unless somebody is about to.
    /// - Parameter hasLeftover: also if somebody reads, for something did not go out.
    func keep(within interval: Int64, hasLeftover: Bool = false) {
        let (isNeeded, isLingering) = state.withLock { state in
            guard state.needsKeeper || (hasLeftover && state.mayHaveKeeper) else { return (false, false) }
            state.isKeeperSet = true
            return (true, state.isLingering)
        }
        guard isNeeded else { return }
        clock.schedule(WebSocketKeeper(self), at: clock.coarseNow() &+ (isLingering ? min(interval, Self.soon) : interval))
    }

    /// On the poller's thread.
    fileprivate func keep() {
        state.withLock { $0.isKeeperSet = false }
        look()
        // What is left over sees to it that somebody looks again.
        _ = pump()
        keep(within: Self.rest)
    }

    /// Reads what is here if nobody does.
    func look() {
        guard let transport = state.withLock({ $0.beginReading() }) else { return }
        look(transport)
        state.withLock { $0.endReading() }
        settle()
    }

    private func look(_ transport: any Transport) {
        let (isLingering, until) = state.withLock { ($0.isLingering, $0.lingersUntil) }
        if isLingering, isPatienceOver(transport, until) { return lost(nil) }
        // A large message waits for its receiver with the rest of it in the kernel.
        guard isLingering || (input?.held ?? 0) <= options.readAhead else { return }
        guard isLingering || input?.mayHoldMore == true || transport.hasPendingInput(askingKernel: clock.manual != nil)
        else { return }
        for _ in 0..<Self.looks {
            guard isLingering || ((input?.held ?? 0) <= options.readAhead && state.withLock { $0.mayReadOn }) else { break }
            if case .blocked = read(from: transport, atMost: Self.lookSize, looks: Self.looks) { return }
        }
        input?.leave()
    }
}
