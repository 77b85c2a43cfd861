// SPDX-License-Identifier: Apache-2.0

// The interface of a load towards the code that makes, authenticates and uses its connections.

import URLLoadingIO
import URLLoadingWire

protocol ConnectionClient: AnyObject, Sendable {
    /// Ends, suspends and times the work.
    var handle: LoadHandle { get }

    /// The decision about server certificates and client identities; nil without one.
    var handshakeDecision: HandshakeDecision? { get }
    /// Calls the decisions of a classic task; nil for decisions that are called directly.
    var decisionCaller: (any DecisionCaller)? { get }
    /// Asks the decision about a challenge for credentials; without one, `performDefaultHandling`.
    func decide(_ challenge: Challenge) async throws(LoadError) -> ChallengeDecision
    /// Notifies observers that a decision is about to be asked.
    func challenged(_ challenge: Challenge)

    /// Whether HSTS forbids decisions to trust a server of this name whose checks failed (RFC 6797 §8.4).
    func forbidsTrust(in host: String) async -> Bool
    /// Notifies that the handshake decision has trusted a server.
    func trusted(_ trust: TLSTrust, _ peer: TLSPeer)

    /// Passes on an interim response (RFC 9110 §15.2).
    func receivedInterim(_ head: HTTP1ResponseHead)
    /// Reports that a part of the request's body was sent.
    func sent(_ bytes: TransferProgress)
    /// Gives the connection's slot in the pool away while the load is suspended, or takes one again.
    func setUnread(_ isUnread: Bool, _ route: Route)
}

extension ConnectionClient {
    func challenged(_ challenge: Challenge) {}
    func forbidsTrust(in host: String) async -> Bool { false }
    func trusted(_ trust: TLSTrust, _ peer: TLSPeer) {}
    func receivedInterim(_ head: HTTP1ResponseHead) {}
    func sent(_ bytes: TransferProgress) {}
    func setUnread(_ isUnread: Bool, _ route: Route) {}

    /// Asks a decision of the caller, and waits for the answer, its deadline, or the end of the load.
    func ask<Question: Sendable, Answer: Sendable>(
        _ decision: Decision<Question, Answer>, _ question: Question
    ) async throws(LoadError) -> Answer {
        try await handle.ask(decision, question, by: decisionCaller)
    }
}

extension ConnectionClient {
    var clock: LoopClock { handle.clock }
    var stopReason: StopReason? { handle.stopReason }
    var isSuspended: Bool { handle.isSuspended }
}
