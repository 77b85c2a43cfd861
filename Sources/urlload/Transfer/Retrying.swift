// SPDX-License-Identifier: Apache-2.0

// `--retry` and its companions with curl's meaning, as a `RetryPolicy`: any method is retried, because the user chose
// it together with `--retry`. wget's attempts, which continue a body that was cut, are made by the command.

import FoundationEssentials
import Glibc
import URLLoading

extension RetryPolicy {
    /// Returns `nil` without `--retry`, and where the command makes the attempts.
    init?(_ options: Options) {
        guard options.retries.count > 0, !options.retries.continuesBodies else { return nil }
        self.init(maximumAttempts: options.retries.count < .max ? options.retries.count + 1 : .max)
        reasons = [.idleTimeout, .connectTimeout, .lookupFailed, .hostNotFound]
        if options.retries.includesRefused { reasons.insert(.connectionRefused) }
        statuses = Self.transientStatuses
        if options.retries.includesEverything {
            retriesEveryFailure = true
            statuses = Set((400..<600).compactMap { Status($0) })
        }
        retriesNonIdempotent = true
        maximumDuration = options.retries.maximumTime
        maximumRetryAfter = Self.longest
        backoff = options.retries.delay.map { .constant($0) } ?? .exponential(base: .seconds(1), cap: Self.longest)
    }

    private static let longest = Duration.seconds(600)
}

/// Writes a message to standard error for each retry.
struct RetryNotes: LoadObserver {
    let screen: Screen

    func observe(_ event: LoadEvent, of load: LoadIdentity) {
        guard case .retrying(let retry) = event else { return }
        screen.message("\(AddressText.inMessage(load.request.url.absoluteString)): \(retry)")
    }
}

/// wget's attempts at one load.
struct Attempts: Sendable {
    private let retries: RetryOptions
    private let mayRepeat: Bool
    /// The number of attempts so far.
    private(set) var count = 1

    init(_ options: Options) {
        retries = options.retries
        let method = options.request.method ?? (options.sendsBody ? .post : .get)
        mayRepeat = retries.continuesBodies && (retries.repeatsAnyMethod || method.isIdempotent)
    }

    /// Counts another attempt.
    /// - Returns: the delay before it, which grows by a second for each attempt; `nil` if the failure is final.
    mutating func next(after failure: Report.Failure) -> Duration? {
        guard mayRepeat, count <= retries.count, isTransient(failure) else { return nil }
        defer { count += 1 }
        return min(.seconds(count), retries.delay ?? .seconds(10))
    }

    /// As in wget, a refused connection, an unknown host and a status are final unless an option says otherwise.
    private func isTransient(_ failure: Report.Failure) -> Bool {
        if let status = failure.status { return retries.statuses.contains(status) }
        var reasons: [LoadError.Reason] = [.connectionLost, .truncated, .streamReset, .idleTimeout, .connectTimeout]
        if retries.includesRefused { reasons += [.connectionRefused, .unreachable, .cannotConnect] }
        if retries.includesHosts { reasons += [.hostNotFound, .lookupFailed] }
        return reasons.contains { $0.name == failure.reason }
    }

    /// `attempt 2 of 20 in 1 s`
    func words(_ delay: Duration) -> String {
        let of = retries.count < .max ? " of \(retries.count + 1)" : ""
        return "attempt \(count)\(of) in \(delay.components.seconds) s"
    }
}

extension Transfer {
    /// Returns the transfer for the next attempt: it continues a body of which a part was written, and otherwise begins
    /// anew.
    /// - Parameters:
    ///   - first: the transfer of the first attempt.
    ///   - attempt: the one that has failed.
    /// - Returns: `nil` if the part that was written can be neither continued nor taken back.
    func repeated(_ first: Transfer, after attempt: Attempt) -> Transfer? {
        var next = self
        if case .from = first.options.output.resuming, attempt.response != nil { return nil }
        if let kept = attempt.kept {
            guard !kept.isResumable else {
                next.options.output.resuming = .always
                return next
            }
            // The next attempt loads the whole.
            unlink(PartialFile.partName(kept.file))
            next.options.output.resuming = first.options.output.resuming
        }
        guard options.output.destination == .standardOutput || options.output.joined?.hasBegun == true else {
            return next
        }
        let written = max(attempt.bytes, rest?.offset ?? 0)
        guard written > 0 || options.output.includesHead, attempt.response != nil || rest != nil else { return next }
        guard attempt.failure == nil, !options.output.includesHead, options.request.acceptsCompressed != true,
            var begun = rest ?? attempt.response?.http.map({ BodyRest($0) })
        else { return nil }
        begun.offset = written
        next.rest = begun
        return next
    }
}

/// What is still to be written of a body whose beginning an earlier attempt wrote to standard output, or to a file of
/// several bodies.
struct BodyRest: Sendable {
    /// The number of bytes that were written.
    var offset: Int64 = 0
    private let tag: String?
    private let date: String?

    /// - Parameter head: that of the response with the beginning.
    init(_ head: HTTPHead) { (tag, date) = (head.headers[.etag], head.headers[.lastModified]) }

    /// Asks for the rest, of the same version if the server can tell it.
    func request(in request: inout Request) {
        request.headers[.range] = "bytes=\(offset)-"
        if let tag, !tag.hasPrefix("W/") { request.headers[.ifRange] = tag }
    }

    /// Returns how many bytes of the response were written before: none of the rest, all those of the whole.
    func skipped(_ head: HTTPHead?) throws(LoadError) -> Int64 {
        guard let head, head.headers[.etag] == tag, head.headers[.lastModified] == date else { throw Self.mismatch }
        if head.status != .partialContent { return offset }
        guard head.headers[.contentRange]?.hasPrefix("bytes \(offset)-") == true else { throw Self.mismatch }
        return 0
    }

    private static let mismatch = LoadError(
        .rangeNotSatisfiable, phase: .receiving, party: .remote,
        detail: "the beginning, which is written already, is of another version")
}
