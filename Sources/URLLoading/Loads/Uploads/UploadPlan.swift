// SPDX-License-Identifier: Apache-2.0

// Decides the next step after a response, or a failure, of a resumable upload: draft §4.2.1, §4.3.1, §4.4.1 and the
// heuristics of §4.7. Pure.

import URLLoadingWire

enum UploadPlan {
    /// The response is the result.
    case finish
    /// The server has everything and has answered before, but the answer was lost: request it again.
    case recall
    /// Append the next part from this offset; with an error if this counts as a failed attempt.
    case append(from: Int64, after: LoadError?)
    /// Query the offset, without an error.
    case ask
    /// Query the offset after a delay; `seconds` is the delay that the server asks for.
    case retry(LoadError, seconds: Int64?)
    case fail(LoadError)

    /// The range that was sent, and the facts known so far.
    struct Situation {
        var range: Range<Int64>
        var length: Int64
        /// The offset up to which the server has acknowledged the bytes.
        var acknowledged: Int64
        var knowsResource: Bool
        var limits: UploadLimits
        var now: HTTPDate

        var isLast: Bool { range.upperBound == length }
    }

    // MARK: Creating the upload

    static func make(creation answer: UploadAnswer, _ situation: Situation) -> UploadPlan {
        if answer.isComplete == true { return .finish }
        switch answer.status.kind {
        case .successful: return created(answer, situation)
        case .serverError where situation.knowsResource:
            return .retry(refused(answer), seconds: retryAfter(answer, situation))
        case .clientError
        where answer.status == .contentTooLarge && answer.limits?.largestPart ?? .max < situation.range.count:
            // §4.1.4: the limits show that the server supports uploads in parts.
            guard situation.knowsResource else { return .append(from: 0, after: refused(answer)) }
            guard let offset = answer.offset else { return .retry(refused(answer), seconds: retryAfter(answer, situation)) }
            return checked(offset, situation) ?? .append(from: offset, after: refused(answer))
        default:
            // The answer of the target resource itself: the server does not support uploads, or refuses the request.
            return situation.isLast ? .finish : .fail(refused(answer))
        }
    }

    private static func created(_ answer: UploadAnswer, _ situation: Situation) -> UploadPlan {
        // A server without support for resumable uploads has taken the content for the whole.
        if situation.isLast, answer.isComplete == nil || !situation.knowsResource { return .finish }
        guard situation.knowsResource else {
            return .fail(
                LoadError(
                    .uploadNotSupported, phase: .receiving, party: .remote, detail: "\(answer.status) without Location")
            )
        }
        if situation.isLast { return .ask }
        return appended(answer, situation)
    }

    // MARK: Querying the offset

    static func make(offset answer: UploadAnswer, _ situation: Situation) -> UploadPlan {
        if let refusal = refusal(answer, situation) { return refusal }
        guard let offset = answer.offset else {
            return .retry(inconsistent("no Upload-Offset in \(answer.status)"), seconds: retryAfter(answer, situation))
        }
        if let length = answer.length, length != situation.length {
            return .fail(inconsistent("the upload has the length \(length), not \(situation.length)"))
        }
        if answer.isComplete == true { return .recall }
        return checked(offset, situation) ?? .append(from: offset, after: nil)
    }

    // MARK: Appending a part

    static func make(append answer: UploadAnswer, _ situation: Situation) -> UploadPlan {
        if answer.isComplete == true { return .finish }
        switch answer.status {
        case .conflict:
            // §4.4.2: a 409 response has the right offset; if it does not, the offset is queried.
            guard let offset = answer.offset else { return .retry(refused(answer), seconds: retryAfter(answer, situation)) }
            return checked(offset, situation) ?? .append(from: offset, after: refused(answer))
        case .contentTooLarge:
            guard let limit = answer.limits?.largestPart, limit > 0, limit < situation.range.count else {
                return .fail(tooLarge("\(answer.status)"))
            }
            return .retry(refused(answer), seconds: nil)
        default: return refusal(answer, situation) ?? (situation.isLast ? .ask : appended(answer, situation))
        }
    }

    /// Returns the step after a part that was accepted and is not the last.
    private static func appended(_ answer: UploadAnswer, _ situation: Situation) -> UploadPlan {
        let end = situation.range.upperBound
        guard let offset = answer.offset else { return .append(from: end, after: nil) }
        guard offset <= end else { return .fail(inconsistent("offset \(offset) after \(end) bytes")) }
        return checked(offset, situation)
            ?? .append(from: offset, after: offset > situation.range.lowerBound ? nil : refused(answer))
    }

    // MARK: Common rules

    /// Returns the failure of a response; `nil` for a success.
    private static func refusal(_ answer: UploadAnswer, _ situation: Situation) -> UploadPlan? {
        switch answer.status {
        case .notFound, .gone:
            return .fail(LoadError(.uploadNotFound, phase: .receiving, party: .remote, detail: "\(answer.status)"))
        case .tooManyRequests, .requestTimeout: return .retry(refused(answer), seconds: retryAfter(answer, situation))
        default: break
        }
        switch answer.status.kind {
        case .successful, .informational: return nil
        case .serverError: return .retry(refused(answer), seconds: retryAfter(answer, situation))
        case .redirection:
            return .fail(
                LoadError(
                    .redirectRefused, phase: .redirecting, party: .remote,
                    detail: "an upload follows 307 and 308 within its origin, not \(answer.status.code)"))
        case .clientError: return .fail(refused(answer))
        }
    }

    /// Checks an offset (§4.1.1): it must not decrease, and must not lie beyond the end. Returns the failure.
    private static func checked(_ offset: Int64, _ situation: Situation) -> UploadPlan? {
        if offset > situation.length { return .fail(inconsistent("offset \(offset) of \(situation.length) bytes")) }
        if offset < situation.acknowledged {
            return .fail(inconsistent("offset \(offset) after \(situation.acknowledged) was acknowledged"))
        }
        return nil
    }

    private static func retryAfter(_ answer: UploadAnswer, _ situation: Situation) -> Int64? {
        answer.retryAfter?.seconds(after: situation.now)
    }

    static func refused(_ answer: UploadAnswer) -> LoadError {
        LoadError(.uploadRefused, phase: .receiving, party: .remote, detail: "\(answer.status)")
    }

    static func tooLarge(_ words: String) -> LoadError {
        LoadError(.uploadTooLarge, phase: .receiving, party: .remote, detail: words)
    }

    static func inconsistent(_ words: String) -> LoadError {
        LoadError(.uploadInconsistent, phase: .receiving, party: .remote, detail: words)
    }
}
