// What those who make, open and use a connection ask and tell the load that they work for.

import URLLoadingIO
import URLLoadingWire

protocol ConnectionClient: AnyObject, Sendable {
    /// Ends, suspends and times the work.
    var handle: LoadHandle { get }

    /// The decision about server certificates and client identities; nil without one.
    var handshakeDecision: HandshakeDecision? { get }
    /// Calls the decisions of a classic task; nil for decisions that are called directly.
    var asker: (any DecisionCaller)? { get }
    /// Whether a decision answers challenges for credentials.
    var decidesChallenges: Bool { get }
    /// Asks the decision about a challenge for credentials; without one, `performDefaultHandling`.
    func decide(_ challenge: Challenge) async throws(LoadError) -> ChallengeDecision
    /// A decision is about to be asked.
    func challenged(_ challenge: Challenge)

    /// Whether HSTS forbids decisions to trust a server of this name whose checks failed (RFC 6797 §8.4).
    func forbidsTrust(in host: String) async -> Bool
    /// The handshake decision has trusted a server.
    func trusted(_ trust: TLSTrust, _ peer: TLSPeer)

    /// An interim response has arrived (RFC 9110 §15.2).
    func informed(_ head: HTTP1ResponseHead)
    /// A part of a request's body has been sent.
    func sent(_ bytes: TransferProgress)
    /// The load's connection gives its place in the pool away while the load is suspended, or takes it again.
    func setResting(_ isResting: Bool, _ route: Route)
}

extension ConnectionClient {
    func challenged(_ challenge: Challenge) {}
    func forbidsTrust(in host: String) async -> Bool { false }
    func trusted(_ trust: TLSTrust, _ peer: TLSPeer) {}
    func informed(_ head: HTTP1ResponseHead) {}
    func sent(_ bytes: TransferProgress) {}
    func setResting(_ isResting: Bool, _ route: Route) {}

    /// Puts a question to the caller, and waits for the answer, its deadline, or the end of the load.
    func ask<Question: Sendable, Answer: Sendable>(
        _ decision: Decision<Question, Answer>, _ question: Question
    ) async throws(LoadError) -> Answer {
        try await handle.ask(decision, question, by: asker)
    }
}

extension ConnectionClient {
    var clock: LoopClock { handle.clock }
    var stopReason: StopReason? { handle.stopReason }
    var isSuspended: Bool { handle.isSuspended }
}

/// What is asked of the pool or the connector: for whom, and over which networks.
struct ConnectionRequest: Sendable {
    let client: any ConnectionClient
    /// The networks that a new connection may use.
    var access = NetworkAccess.open
    /// Told when the stages of making a connection happen.
    var record: TransactionRecord?
    /// Keeps a connection on which a proxy asked for credentials, for the next attempt; nil closes it.
    var refused: RefusedTunnels?

    var handle: LoadHandle { client.handle }
}
