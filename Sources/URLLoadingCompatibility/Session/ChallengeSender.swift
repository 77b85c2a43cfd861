// SPDX-License-Identifier: Apache-2.0

// The challenge's sender that delegates receive. It shares one answer with the completion handler of the same
// challenge; the first answer counts.

import Foundation

final class ChallengeSender: NSObject, URLAuthenticationChallengeSender, Sendable {
    typealias Reply = @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    private let reply: Reply

    init(_ reply: @escaping Reply) { self.reply = reply }

    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
        reply(.useCredential, credential)
    }
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { reply(.useCredential, nil) }
    func cancel(_ challenge: URLAuthenticationChallenge) { reply(.cancelAuthenticationChallenge, nil) }
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) { reply(.performDefaultHandling, nil) }
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
        reply(.rejectProtectionSpace, nil)
    }
}
