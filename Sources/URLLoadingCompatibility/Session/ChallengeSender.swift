// SPDX-License-Identifier: Apache-2.0

// The challenge's sender that delegates receive. It shares one answer with the completion handler of the same
// challenge; the first answer counts.

import Foundation

final class ChallengeSender: NSObject, URLAuthenticationChallengeSender, Sendable {
    typealias Reply = @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    typealias Cancellation = @Sendable (URLAuthenticationChallenge) -> Void
    private let reply: Reply
    private let cancelled: Cancellation?

    init(_ reply: @escaping Reply, cancelled: Cancellation? = nil) {
        (self.reply, self.cancelled) = (reply, cancelled)
    }

    /// - Parameter notify: tells a delegate of the older classes of a cancellation, before the end of the load, which
    ///   follows from it.
    convenience init(_ reply: @escaping Reply, on session: URLSession, _ notify: @escaping Cancellation) {
        let lane = session.lane
        self.init(reply) { challenge in
            lane.append(
                .call {
                    notify(challenge)
                    reply(.cancelAuthenticationChallenge, nil)
                })
        }
    }

    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
        reply(.useCredential, credential)
    }
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { reply(.useCredential, nil) }
    func cancel(_ challenge: URLAuthenticationChallenge) {
        if let cancelled { cancelled(challenge) } else { reply(.cancelAuthenticationChallenge, nil) }
    }
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) { reply(.performDefaultHandling, nil) }
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
        reply(.rejectProtectionSpace, nil)
    }
}
