// SPDX-License-Identifier: Apache-2.0

// A resumable upload task of the classic API: one load, whose responses lead to further requests if necessary
// (`Load.uploadStep`). `UploadPlan` interprets the responses, as for `ResumableUpload`; but failures are not retried:
// an error ends the task, and its delegate gets a ticket.

import FoundationEssentials
import Synchronization
package import URLLoadingIO
import URLLoadingWire

package final class UploadWork: UploadSteps, Sendable {
    private enum Step: Sendable {
        /// The caller's request, with the whole content or its first part (draft §4.2).
        case create(Range<Int64>)
        /// The query of the offset (draft §4.3).
        case ask
        /// The request that appends a part, or the rest (draft §4.4).
        case append(Range<Int64>)

        var range: Range<Int64> {
            switch self {
            case .create(let range), .append(let range): range
            case .ask: 0..<0
            }
        }
    }

    private struct State: Sendable {
        var step: Step
        /// The URL of the current request: after redirects, the final one.
        var url: URL
        var place: URL?
        var limits = UploadLimits()
        var acknowledged: Int64 = 0
        var sentOffset: Int64?
        /// True once the final response was requested again, after the server had everything.
        var hasRepeated = false
        var questions = 0
        var length: Int64?
        /// The modification time of the file when it was opened.
        var modified: Int64?
        var identity: UploadIdentity?
        /// True once the server has everything, or does not know the upload any more.
        var isOver = false
    }
    private let state: Lock<State>
    /// The request as the caller made it.
    let request: Request
    package let source: UploadTicket.Source
    private let isResumption: Bool

    /// The length used if the true one is unknown (draft §4.1.3): longer than any content.
    private static let unknown = Int64.max

    /// - Parameter request: the request with its body. The result is `nil` if its protocol has no resumable uploads.
    package init?(_ request: Request, _ source: UploadTicket.Source) {
        guard case .success = request.destination, request.method != .get, request.method != .head else { return nil }
        (self.request, self.source, isResumption) = (request, source, false)
        state = Lock(State(step: .create(0..<(source.length ?? Self.unknown)), url: request.url, length: source.length))
    }

    /// Creates the work that resumes an upload.
    package init(_ ticket: UploadTicket) {
        var request = ticket.request
        request.body = ticket.source.body(0..<(ticket.length ?? Self.unknown))
        (self.request, source, isResumption) = (request, ticket.source, true)
        state = Lock(
            State(step: .ask, url: ticket.place, place: ticket.place, length: ticket.length, identity: ticket.identity))
    }

    // MARK: Before sending

    /// Returns the first request.
    func begin(_ control: StopToken) async throws(LoadError) -> Request {
        guard isResumption else { return request }
        try await checkSource(control)
        return try question()
    }

    /// Checks that the source has not changed, because several requests must carry parts of the same content.
    private func checkSource(_ control: StopToken) async throws(LoadError) {
        guard case .file(let url) = source, let known = state.withLock({ $0.identity }) else { return }
        let now = try await UploadSource.file(url).identity(control)
        guard now.matches(known) else {
            throw .sourceChanged(url.path(percentEncoded: false), request.url)
        }
    }

    /// Adds the fields of the current step to a request with a body; those of a creation announce that the upload is
    /// resumable (draft §4.2.1).
    func complete(_ prepared: inout PreparedRequest) throws(LoadError) {
        var fields = Headers()
        var file: FileReader?
        if case .parts(let parts)? = prepared.body, case .file(let reader, _)? = parts.first { file = reader }
        let isChanged = state.withLock { state -> Bool in
            guard case .create(let range) = state.step else {
                // Otherwise a part of another file would be appended to the bytes at the server.
                return file.map { $0.size != state.length || $0.modified != state.modified ?? state.identity?.modified }
                    ?? false
            }
            // A repeated creation makes another upload resource.
            (state.place, state.acknowledged) = (nil, 0)
            if let file { (state.modified, state.length) = (file.modified, file.size) }
            if state.length == nil { state.length = prepared.body?.length }
            fields[.uploadComplete] = StructuredField.text(range.upperBound >= state.length ?? Self.unknown)
            fields[.uploadLength] = state.length.flatMap { StructuredField.text($0) }
            fields[.uploadInteropVersion] = StructuredField.text(ResumableUploads.interopVersion)
            return false
        }
        if isChanged {
            let path = if case .file(let url) = source { url.path(percentEncoded: false) } else { nil as String? }
            throw .sourceChanged(path, request.url)
        }
        if !fields.isEmpty { prepared.set(fields) }
    }

    // MARK: Events of a request

    /// The URL after a redirect to another server stays the one there.
    func note(_ redirect: Redirect) {
        state.withLock { if Request(url: $0.url).goes(where: request) { $0.url = redirect.request.url } }
    }

    func note(_ head: HTTPHead) {
        guard let answer = UploadAnswer(interim: head) else { return }
        state.withLock { state in
            if let limits = answer.limits { state.limits = limits }
            if case .create = state.step { learn(answer, &state) }
            if let offset = answer.offset, offset <= state.step.range.upperBound {
                state.acknowledged = max(state.acknowledged, offset)
            }
        }
    }

    private func learn(_ answer: UploadAnswer, _ state: inout State) {
        guard state.place == nil, let location = answer.location else { return }
        state.place = request.uploadPlace(location, from: state.url)
    }

    /// Returns the progress relative to the whole content.
    func counted(_ bytes: TransferProgress) -> TransferProgress {
        let (offset, length) = state.withLock { ($0.step.range.lowerBound, $0.length) }
        return TransferProgress(count: bytes.count, total: offset + bytes.total, expected: length ?? bytes.expected)
    }

    // MARK: Next steps

    /// Returns the next request; `nil` if the response is the result.
    func next(after head: HTTPHead?, to sent: Request) throws(LoadError) -> Request? {
        guard let head else { return nil }
        let answer = UploadAnswer(head)
        let (step, facts) = state.withLock { state in
            if let limits = answer.limits { state.limits = limits }
            if case .create = state.step, answer.isComplete == false { learn(answer, &state) }
            return (state.step, Self.facts(state, answer))
        }
        switch step {
        case .create:
            // 303 (See Other) has led to the result.
            guard sent.method == request.method else { return deliver() }
            return try follow(.make(creation: answer, facts), answer, facts)
        case .ask:
            return try follow(question: .make(offset: answer, facts))
        case .append:
            guard sent.method == .patch else { return deliver() }
            return try follow(.make(append: answer, facts), answer, facts)
        }
    }

    private static func facts(_ state: State, _ answer: UploadAnswer) -> UploadPlan.Facts {
        let length = state.length ?? answer.length ?? unknown
        var range = state.step.range
        // A range of unknown length ends at the length that was found.
        if range.upperBound > length { range = min(range.lowerBound, length)..<length }
        return UploadPlan.Facts(
            range: range, length: length, acknowledged: state.acknowledged, knowsResource: state.place != nil,
            limits: state.limits, now: HTTPDate(secondsSince1970: Int64(Date().timeIntervalSince1970)))
    }

    private func follow(
        _ plan: UploadPlan, _ answer: UploadAnswer, _ facts: UploadPlan.Facts
    ) throws(LoadError) -> Request? {
        // The server does not repeat its response; that the upload is complete is itself a final response.
        if state.withLock({ $0.hasRepeated }), answer.isComplete != true { return try question() }
        switch plan {
        case .finish, .repeatForResponse: return deliver()
        case .ask: return try question()
        // A refusal with a limit: the rest is sent in parts.
        case .append(let offset, _): return try maySplit ? part(from: offset) : nil
        case .retry where answer.status == .contentTooLarge && maySplit && facts.knowsResource: return try question()
        // The server's response is delivered unchanged; the caller may resume the upload.
        case .retry: return nil
        case .fail(let error):
            guard error.reason == .uploadRefused else { throw over(error) }
            return nil
        }
    }

    private func follow(question plan: UploadPlan) throws(LoadError) -> Request? {
        switch plan {
        case .append(let offset, _): return try part(from: offset)
        case .repeatForResponse:
            // The final response was lost. The server may repeat it for a request that adds no bytes (draft §4.4.2);
            // otherwise the current response is the final one.
            guard let length = state.withLock({ $0.hasRepeated ? nil : $0.length }) else { return deliver() }
            state.withLock { $0.hasRepeated = true }
            return try addition(length..<length)
        case .retry(let error, _): throw error
        case .fail(let error): throw over(error)
        case .finish, .ask: return deliver()
        }
    }

    private func deliver() -> Request? {
        state.withLock { $0.isOver = true }
        return nil
    }

    private func over(_ error: LoadError) -> LoadError {
        if !error.leavesUpload { state.withLock { $0.isOver = true } }
        return error
    }

    /// True if the content can be sent in parts. A provided stream cannot, because its parts have no known ends.
    private var maySplit: Bool { if case .provided = source { false } else { true } }

    // MARK: Requests

    private func question() throws(LoadError) -> Request {
        let (place, questions) = state.withLock { state in
            state.step = .ask
            state.questions += 1
            return (state.place, state.questions)
        }
        guard let place, questions <= Self.maximumQuestions else {
            throw UploadPlan.inconsistent("the offset was queried too often")
        }
        var question = request.toUpload(at: place, .head)
        // A cached response does not have the current offset.
        question.cachePolicy = .reload
        return question
    }

    /// The maximum number of offset queries, each after a response from which the upload could not continue.
    private static let maximumQuestions = 16

    private func part(from offset: Int64) throws(LoadError) -> Request {
        let (end, isAgain, place) = state.withLock { state in
            let isAgain = state.sentOffset.map { offset <= $0 } ?? false
            state.sentOffset = offset
            state.acknowledged = max(state.acknowledged, offset)
            return (
                state.limits.end(of: offset, length: state.length ?? Self.unknown, wanted: nil), isAgain, state.place
            )
        }
        if isAgain { throw UploadPlan.inconsistent("the server accepted none of the bytes sent") }
        guard let end, maySplit || end == state.withLock({ $0.length ?? Self.unknown }) else {
            throw UploadPlan.tooLarge("the server accepts no possible part size")
        }
        return place == nil ? creation(offset..<end) : try addition(offset..<end)
    }

    private func creation(_ range: Range<Int64>) -> Request {
        state.withLock { $0.step = .create(range) }
        var creation = request
        creation.setSource(source.body(range), like: request)
        return creation
    }

    private func addition(_ range: Range<Int64>) throws(LoadError) -> Request {
        let (place, length) = state.withLock { state in
            state.step = .append(range)
            return (state.place, state.length)
        }
        guard let place else { throw UploadPlan.inconsistent("the server gave no location for the upload") }
        var addition = request.toUpload(at: place, .patch)
        addition.body = range.isEmpty ? .data(Data()) : source.body(range)
        addition.headers[.contentType] = ResumableUploads.mediaType
        addition.headers[.uploadOffset] = StructuredField.text(range.lowerBound)
        addition.headers[.uploadComplete] = StructuredField.text(range.upperBound == length ?? Self.unknown)
        if case .provided = source, let length, !range.isEmpty {
            addition.headers[.contentLength] = "\(length - range.lowerBound)"
        }
        return addition
    }

    // MARK: The ticket

    /// Returns the resume data; `nil` if the upload would have to start anew, or has ended.
    /// - Parameter control: ends the look at the file, whose server may be away.
    package func ticket(_ control: StopToken = .ending(after: 10_000_000_000)) async -> UploadTicket? {
        let (place, length, modified, known) = state.withLock { state in
            (state.isOver ? nil : state.place, state.length, state.modified, state.identity)
        }
        guard let place else { return nil }
        var identity = known
        if identity == nil, case .file(let url) = source {
            // The identity must be that of the content sent, so the file must not have changed since.
            guard let now = try? await UploadSource.file(url).identity(control), now.modified == modified,
                now.length == length
            else { return nil }
            identity = now
        }
        return UploadTicket(request, source, place: place, length: length, identity: identity)
    }

    /// Returns the offset from which a provided body must continue, if `request` resumes an upload.
    package static func offset(of request: Request) -> Int64? {
        guard request.method == .patch, request.headers.contains(.uploadComplete) else { return nil }
        return request.headers[.uploadOffset].flatMap(StructuredField.integer)
    }
}

extension Request {
    /// Replaces the body by another part.
    fileprivate mutating func setSource(_ body: RequestBody, like other: Request) {
        var body = body
        body.contentType = other.body?.contentType
        self.body = body
    }
}

extension LoadError {
    fileprivate var leavesUpload: Bool {
        ![.uploadNotFound, .uploadTooLarge, .uploadInconsistent, .uploadNotSupported].contains(reason)
    }
}
