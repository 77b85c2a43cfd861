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

    /// The delays in seconds before the attempts that wget's grammar makes after a failure.
    private func delays(_ failure: Report.Failure, _ words: String..., most: Int = 100) throws -> [Duration] {
        var attempts = Attempts(try ArgumentParser.parse(words + ["u"], table: .wget))
        var delays: [Duration] = []
        while delays.count < most, let delay = attempts.next(after: failure) { delays.append(delay) }
        return delays
    }

    private func failure(_ reason: LoadError.Reason) -> Report.Failure {
        Report.Failure(LoadError(reason, phase: .receiving, party: .remote))
    }

    @Test("wget makes 20 attempts by default, and waits a second longer before each, up to ten")
    func attemptsOfWget() throws {
        let usual = try delays(failure(.connectionLost))
        let seconds = Array(1...10) + Array(repeating: 10, count: 9)
        #expect(usual == seconds.map { Duration.seconds($0) })
        #expect(try delays(failure(.truncated), "-t", "3", "--waitretry=0") == [.zero, .zero])
        #expect(try delays(failure(.truncated), "-t", "4", "--waitretry=2") == [.seconds(1), .seconds(2), .seconds(2)])
        #expect(try delays(failure(.idleTimeout), "--tries=1").isEmpty)
        #expect(try delays(failure(.idleTimeout), "-t", "0").count == 100)
        #expect(try delays(failure(.idleTimeout), "--tries=inf").count == 100)
        let options = try ArgumentParser.parse(["u"], table: .wget)
        #expect(Configuration(options, Screen(options)).retries.policy == nil)
        var curl = Attempts(try ArgumentParser.parse(["--retry", "3", "u"]))
        let none = curl.next(after: failure(.connectionLost))
        #expect(none == nil)
    }

    @Test("wget repeats no refused connection, unknown host or status unless an option says so")
    func finalForWget() throws {
        let (refused, unknown) = (failure(.connectionRefused), failure(.hostNotFound))
        let busy = Report.Failure(Status.serviceUnavailable)
        for ending in [refused, unknown, busy, failure(.certificateExpired), Report.Failure(Status.notFound)] {
            #expect(try delays(ending).isEmpty, "\(ending.reason)")
        }
        #expect(try delays(refused, "--retry-connrefused", "-t", "2").count == 1)
        #expect(try delays(unknown, "--retry-on-host-error", "-t", "2").count == 1)
        #expect(try delays(busy, "--retry-on-http-error=429,503", "-t", "2").count == 1)
        #expect(throws: UsageError.self) {
            try ArgumentParser.parse(["--retry-on-http-error=often", "u"], table: .wget)
        }
    }

    @Test("wget's grammar sends a POST again only with --tries")
    func postOfWget() throws {
        #expect(try delays(failure(.connectionLost), "--post-data=a").isEmpty)
        #expect(try delays(failure(.connectionLost), "--post-data=a", "-t", "3").count == 2)
        #expect(try delays(failure(.connectionLost), "--method=PUT", "--body-data=a").count == 19)
    }

    @Test("The largest number of retries is accepted") func moreTriesThanCanBeCountedAreTaken() throws {
        #expect(try policy("--retry", "\(Int.max)")?.maximumAttempts == .max)
    }
}
