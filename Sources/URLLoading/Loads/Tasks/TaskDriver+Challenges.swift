// SPDX-License-Identifier: Apache-2.0

// The decisions of this program about the challenges of transfers.

extension TaskDriver {
    /// What of this program decides about the challenges of the task's transfer.
    var challengeAuthority: ChallengeAuthority? {
        guard context.decidesChallenges else { return nil }
        guard let sink else { return .decision }
        return sink.decidesServerTrust ? .delegate : nil
    }

    /// Answers a challenge of the task's transfer by the decision of the task, or of the session.
    func answer(_ challenge: Challenge) async -> TransferAnswer {
        guard context.decidesChallenges else { return .undecided }
        let answer = await TransferAnswer.by { () async throws(LoadError) in
            TransferAnswer(try await context.decide(challenge), to: challenge)
        }
        // The call has shown whether the delegate has a method for challenges.
        return sink?.decidesServerTrust == false ? .noMethod : answer
    }
}

extension Core {
    /// Answers the challenges of transfers by the session's decision; `nil` without one.
    var decideChallenges: BackgroundConnection.ChallengeHandler? {
        guard let decision = decisions?.challenge else { return nil }
        let clock = configuration.clock
        return { challenge in
            let handle = LoadHandle(idle: nil, resource: nil, clock: clock)
            return await TransferAnswer.by { () async throws(LoadError) in
                TransferAnswer(try await handle.ask(decision, challenge, by: nil), to: challenge)
            }
        }
    }
}

extension TransferAnswer {
    fileprivate static func by(_ ask: () async throws(LoadError) -> TransferAnswer) async -> TransferAnswer {
        do throws(LoadError) { return try await ask() } catch {
            var failure = TransferError(error)
            // The error of the closure does not cross, but its description does.
            failure.detail = failure.detail ?? error.underlying.map { "\($0)" }
            return .failed(failure)
        }
    }
}
