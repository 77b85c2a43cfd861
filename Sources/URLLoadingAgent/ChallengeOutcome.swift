// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoading
import URLLoadingIO

/// Turns the program's answers to the challenges of one attempt into decisions, and keeps the one that ends the
/// attempt.
final class ChallengeOutcome: Sendable {
    private let state = Lock<AttemptResult?>(nil)

    /// The end of the attempt, if an answer was missing or ended it.
    var ending: AttemptResult? { state.withLock { $0 } }

    /// - Parameter answer: `nil` if the program is away.
    /// - Throws: an error that ends the load; ``ending`` has the reason.
    func decision(on challenge: Challenge, _ answer: TransferAnswer?) throws -> ChallengeDecision {
        if let decision = answer?.decision(on: challenge) { return decision }
        let ending: AttemptResult
        switch answer {
        case .cancel?:
            ending = .refused(LoadError(.cancelled, phase: .deciding, party: .local, detail: Self.words(challenge)))
        case .failed(let error)?: ending = .refused(error.loadError)
        case .accept?, .present?:
            ending = .refused(
                LoadError(.badDecision, phase: .deciding, party: .local, detail: Self.words(challenge)))
        default: ending = .parked(question: Self.words(challenge))
        }
        state.withLock { $0 = $0 ?? ending }
        throw NoDecision()
    }

    private struct NoDecision: Error {}

    private static func words(_ challenge: Challenge) -> String { "challenge of \(challenge.protectionSpace)" }
}
