// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoading

@testable import urlload

struct RetryTests {
    private func policy(_ words: String...) throws -> RetryPolicy? {
        let options = try ArgumentParser.parse(words + ["u"])
        let configuration = Configuration(options, Screen(options))
        #expect(configuration.observers.isEmpty == (configuration.retries.policy == nil))
        return configuration.retries.policy
    }

    @Test("Without --retry there is no retry policy") func withoutTheOptionThereIsOneTry() throws {
        #expect(try policy() == nil)
        #expect(try policy("--retry", "0") == nil)
        #expect(try policy("--retry-delay", "2", "--retry-connrefused") == nil)
    }

    @Test("--retry retries transient failures") func triesAreTransientOnes() throws {
        let policy = try #require(try policy("--retry", "3"))
        #expect(policy.maximumAttempts == 4)
        #expect(policy.statuses == RetryPolicy.transientStatuses)
        #expect(policy.reasons == [.idleTimeout, .connectTimeout, .lookupFailed, .hostNotFound])
        #expect(policy.retriesNonIdempotent)
        #expect(policy.backoff == .exponential(base: .seconds(1), cap: .seconds(600)))
        #expect(policy.maximumDuration == nil && policy.maximumRetryAfter == .seconds(600))
    }

    @Test("The options beside --retry change its policy") func itsCompanionsChangeIt() throws {
        let policy = try #require(
            try policy("--retry=1", "--retry-connrefused", "--retry-delay", "0.5", "--retry-max-time", "30"))
        #expect(policy.reasons.contains(.connectionRefused))
        #expect(policy.backoff == .constant(.milliseconds(500)))
        #expect(policy.maximumDuration == .seconds(30))
    }

    @Test("--retry-all-errors retries after every failure and every status above 399") func allErrors() throws {
        let policy = try #require(try policy("--retry", "1", "--retry-all-errors"))
        #expect(policy.retriesEveryFailure && policy.retriesNonIdempotent)
        #expect(policy.statuses.map(\.code).sorted() == Array(400..<600))
        let plain = try #require(try self.policy("--retry", "1"))
        #expect(!plain.retriesEveryFailure)
    }

    @Test("The largest number of retries is accepted") func moreTriesThanCanBeCountedAreTaken() throws {
        #expect(try policy("--retry", "\(Int.max)")?.maximumAttempts == .max)
    }
}
