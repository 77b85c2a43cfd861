// SPDX-License-Identifier: Apache-2.0

// Decides the next step after a response, or a failure, of a resumable upload: draft §4.2.1, §4.3.1, §4.4.1 and the
// heuristics of §4.7. Pure.

import URLLoadingWire

enum UploadPlan {
    /// The response is the result.
    case finish
    /// The server has everything and has answered before, but the answer was lost: request it again.
    case repeatForResponse
    /// Append the next part from this offset; with an error if this counts as a failed attempt.
    case append(from: Int64, after: LoadError?)
    /// Query the offset, without an error.
    case ask
    /// Query the offset after a delay; `seconds` is the delay that the server asks for.
    case retry(LoadError, seconds: Int64?)
    case fail(LoadError)

    /// The range that was sent, and the facts known so far.
    struct Facts {
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

    static func make(creation answer: UploadAnswer, _ facts: Facts) -> UploadPlan {
        if answer.isComplete == true { return .finish }
        switch answer.status.kind {
        case .successful: return created(answer, facts)
        case .serverError where facts.knowsResource:
            return .retry(refused(answer), seconds: retryAfter(answer, facts))
        case .clientError
        where answer.status == .contentTooLarge && answer.limits?.largestPart ?? .max < facts.range.count:
            // §4.1.4: the limits show that the server supports uploads in parts.
            guard facts.knowsResource else { return .append(from: 0, after: refused(answer)) }
            guard let offset = answer.offset else { return .retry(refused(answer), seconds: retryAfter(answer, facts)) }
            return checked(offset, facts) ?? .append(from: offset, after: refused(answer))
        default:
            // The answer of the target resource itself: the server does not support uploads, or refuses the request.
            return facts.isLast ? .finish : .fail(refused(answer))
        }
    }

    private static func created(_ answer: UploadAnswer, _ facts: Facts) -> UploadPlan {
        // A server without support for resumable uploads has taken the content for the whole.
        if facts.isLast, answer.isComplete == nil || !facts.knowsResource { return .finish }
        guard facts.knowsResource else {
            return .fail(
                LoadError(
                    .uploadNotSupported, phase: .receiving, party: .remote, detail: "\(answer.status) without Location")
            )
        }
        if facts.isLast { return .ask }
        return appended(answer, facts)
    }

    // MARK: Querying the offset

    static func make(offset answer: UploadAnswer, _ facts: Facts) -> UploadPlan {
        if let refusal = refusal(answer, facts) { return refusal }
        guard let offset = answer.offset else {
            return .retry(inconsistent("no Upload-Offset in \(answer.status)"), seconds: retryAfter(answer, facts))
        }
        if let length = answer.length, length != facts.length {
            return .fail(inconsistent("the upload has the length \(length), not \(facts.length)"))
        }
        if answer.isComplete == true { return .repeatForResponse }
        return checked(offset, facts) ?? .append(from: offset, after: nil)
    }

    // MARK: Appending a part

    static func make(append answer: UploadAnswer, _ facts: Facts) -> UploadPlan {
        if answer.isComplete == true { return .finish }
        switch answer.status {
        case .conflict:
            // §4.4.2: a 409 response has the right offset; if it does not, the offset is queried.
            guard let offset = answer.offset else { return .retry(refused(answer), seconds: retryAfter(answer, facts)) }
            return checked(offset, facts) ?? .append(from: offset, after: refused(answer))
        case .contentTooLarge:
            guard let limit = answer.limits?.largestPart, limit > 0, limit < facts.range.count else {
                return .fail(tooLarge("\(answer.status)"))
            }
            return .retry(refused(answer), seconds: nil)
        default: return refusal(answer, facts) ?? (facts.isLast ? .ask : appended(answer, facts))
        }
    }

    /// Returns the step after a part that was accepted and is not the last.
    private static func appended(_ answer: UploadAnswer, _ facts: Facts) -> UploadPlan {
        let end = facts.range.upperBound
        guard let offset = answer.offset else { return .append(from: end, after: nil) }
        guard offset <= end else { return .fail(inconsistent("offset \(offset) after \(end) bytes")) }
        return checked(offset, facts)
            ?? .append(from: offset, after: offset > facts.range.lowerBound ? nil : refused(answer))
    }

    // MARK: Common rules

    /// Returns the failure of a response; `nil` for a success.
    private static func refusal(_ answer: UploadAnswer, _ facts: Facts) -> UploadPlan? {
        switch answer.status {
        case .notFound, .gone:
            return .fail(LoadError(.uploadNotFound, phase: .receiving, party: .remote, detail: "\(answer.status)"))
        case .tooManyRequests, .requestTimeout: return .retry(refused(answer), seconds: retryAfter(answer, facts))
        default: break
        }
        switch answer.status.kind {
        case .successful, .informational: return nil
        case .serverError: return .retry(refused(answer), seconds: retryAfter(answer, facts))
        case .redirection:
            return .fail(
                LoadError(
                    .redirectRefused, phase: .redirecting, party: .remote,
                    detail: "an upload follows 307 and 308 within its origin, not \(answer.status.code)"))
        case .clientError: return .fail(refused(answer))
        }
    }

    /// Checks an offset (§4.1.1): it must not decrease, and must not lie beyond the end. Returns the failure.
    private static func checked(_ offset: Int64, _ facts: Facts) -> UploadPlan? {
        if offset > facts.length { return .fail(inconsistent("offset \(offset) of \(facts.length) bytes")) }
        if offset < facts.acknowledged {
            return .fail(inconsistent("offset \(offset) after \(facts.acknowledged) was acknowledged"))
        }
        return nil
    }

    private static func retryAfter(_ answer: UploadAnswer, _ facts: Facts) -> Int64? {
        answer.retryAfter?.seconds(after: facts.now)
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
