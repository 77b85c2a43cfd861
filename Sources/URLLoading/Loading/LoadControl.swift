// The one handle by which a load is ended from outside (by its task's cancellation, by a timer, by
// its session), and held up and let go again. See `StopToken` for how a stop wakes it.

import Synchronization
import URLLoadingIO
import URLLoadingWire

class LoadControl: StopToken, @unchecked Sendable {
    /// The moment the whole load must have ended; `.max` for none, or while it has not begun.
    let deadline = Atomic<Int64>(.max)
    private let resourceLimit: Int64
    /// How long an attempt to connect may take, in nanoseconds; `.max` for no limit.
    let connectLimit: Int64
    /// Where the registry keeps it. Reached only under the registry's lock.
    var registryIndex = -1

    /// Who calls its decisions, if that matters to them.
    var asker: (any LoadSink)? { nil }

    init(idle: Duration?, resource: Duration?, connect: Duration? = nil, clock: LoopClock = .system) {
        resourceLimit = resource.map(Self.nanoseconds) ?? .max
        connectLimit = connect.map(Self.nanoseconds) ?? .max
        super.init(idleLimit: idle.map(Self.nanoseconds) ?? .max, clock: clock)
    }

    /// From now on the time of the whole load runs.
    final func startClock() {
        guard resourceLimit != .max else { return }
        deadline.store(clock.now().addingReportingOverflow(resourceLimit).partialValue, ordering: .relaxed)
    }

    /// Whether a session that finishes its tasks waits for this one: not for a handle nobody resumed.
    var isGoingOn: Bool { true }

    /// A piece of the body of one of its requests has gone out.
    func sent(_ bytes: ByteCount) {}

    /// Who decides about the peers of the connections it makes; `nil` for nobody.
    var handshakeDecision: HandshakeDecision? { nil }

    /// The decision has let a server pass.
    func passed(_ trust: TLSTrust, _ peer: TLSPeer) {}
    /// What to do with a challenge: whoever decides is asked, if somebody does.
    func decide(_ challenge: Challenge) async throws(LoadError) -> ChallengeDecision { .performDefaultHandling }
    /// Whether somebody does.
    var decidesChallenges: Bool { false }

    /// A decision is about to be asked.
    func challenged(_ challenge: Challenge) {}

    /// Whether no decision may trust a server of this name whose checks failed.
    func forbidsTrust(in host: String) async -> Bool { false }

    /// It asks for another protocol than HTTP on its connection, and takes that over (RFC 9110 §7.8).
    var takesUpgrade: Bool { false }
    /// Somebody will be asked what to do with a 101, and may take the connection.
    var mayTakeUpgrade: Bool { takesUpgrade }

    /// An interim response has come.
    func informed(_ head: HTTP1ResponseHead) {}

    /// It has a stream of a shared connection, or has none any more.
    func hasStream(_ stream: HTTP2Stream?, on connection: HTTP2Connection) {}

    /// Its connection moves no byte for now, or does again.
    func setResting(_ isResting: Bool, _ route: Route) {}

    /// Where a proxy may be asked again; see `RefusedTunnel`. Requests of a load that run at once take turns: the
    /// connection is that of the one that takes it.
    final let refusedTunnel = Lock<RefusedTunnel?>(nil)

    /// Where closures are counted that go on although the load no longer waits for them.
    var abandoned: AbandonedCount { Self.abandoned }
    private static let abandoned = AbandonedCount()

    /// At least one nanosecond, at most about 146 years.
    static func nanoseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        guard seconds >= 0 else { return 1 }
        guard seconds < Int64.max / 2_000_000_000 else { return .max / 2 }
        return max(1, seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }

    // MARK: Suspension

    private let suspended = Atomic<Bool>(false)

    /// While true no byte is read or written, and the peer's silence does not count.
    final var isSuspended: Bool { suspended.load(ordering: .relaxed) }

    final func setSuspended(_ isSuspended: Bool) {
        let wasSuspended = suspended.exchange(isSuspended, ordering: .sequentiallyConsistent)
        guard wasSuspended != isSuspended else { return }
        if !isSuspended { restartIdle() }
        // What waits for the peer looks again, and waits to be resumed; what waited for that, however many of it, goes
        // on.
        wake()
    }

    /// What was not heard while we did not listen is not held against the peer.
    private func restartIdle() {
        let seen = idleDeadline.load(ordering: .relaxed)
        guard seen != .max else { return }
        _ = idleDeadline.compareExchange(expected: seen, desired: clock.now() &+ idleLimit, ordering: .relaxed)
    }

    /// Returns when the load is not, or no longer, suspended, or was stopped.
    final func untilResumed() async {
        guard isSuspended else { return }
        // The time of a suspension is not the peer's.
        let paused = pauseAttempt()
        defer { continueAttempt(paused) }
        let slot = Poller.shared.borrowSlot()
        attach(slot)
        while suspended.load(ordering: .sequentiallyConsistent), stopReason == nil {
            await Poller.shared.park(slot, until: self)
        }
        detach(slot)
        Poller.shared.returnSlot(slot)
    }
}
