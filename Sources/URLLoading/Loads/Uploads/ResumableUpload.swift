// SPDX-License-Identifier: Apache-2.0

// In this folder: uploads that are resumed

// The steps of a resumable upload: create, then query the offset and append until the server has everything.
// `UploadPlan` interprets the responses; `ResumableUpload+Requests` makes the requests.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// A resumable upload in progress. Used by one task.
final class ResumableUpload {
    let core: Core
    let request: Request
    let source: UploadSource
    let identity: UploadIdentity
    /// What the caller chose.
    struct Settings {
        let options: UploadOptions
        let decisions: Decisions?
        /// Receives the events.
        let report: @Sendable (UploadEvent) async throws -> Void
    }
    private let settings: Settings
    private var options: UploadOptions { settings.options }
    var decisions: Decisions? { settings.decisions }

    private(set) var token: UploadToken?
    var limits = UploadLimits()
    /// The offset up to which the server has acknowledged the bytes.
    var acknowledged: Int64 = 0
    /// The greatest offset the server has reported, and the number of attempts since.
    private var furthest: Int64 = 0
    private var attempts = 0
    /// A response that may be the final one, if the server gives no other.
    private var candidate: (Data, Response)?

    init(
        _ core: Core, _ request: Request, source: UploadSource, identity: UploadIdentity, token: UploadToken?,
        _ settings: Settings
    ) {
        (self.core, self.request, self.source, self.identity, self.token) = (core, request, source, identity, token)
        self.settings = settings
    }

    var length: Int64 { identity.length }

    // MARK: The loop

    private enum Step {
        case create(inParts: Bool)
        case ask
        case append(from: Int64)

        var isQuestion: Bool { if case .ask = self { true } else { false } }
    }

    func run() async throws(LoadError) -> (Data, Response) {
        // The offset of the last request: a server that accepts it without taking bytes makes no progress.
        var sentOffset: Int64?
        var step = token == nil ? Step.create(inParts: (options.partSize ?? .max) < length) : .ask
        while true {
            let (plan, answer) = try await take(step)
            switch plan {
            case .finish:
                guard let answer else { throw LoadError(.uploadInconsistent, phase: .receiving, party: .remote) }
                return answer
            case .repeatForResponse: return try await repeatForResponse(answer)
            case .ask: step = .ask
            case .append(let offset, let refusal):
                if let refusal {
                    try await setBack(refusal)
                } else if let sentOffset, offset <= sentOffset {
                    try await setBack(
                        LoadError(
                            .uploadInconsistent, phase: .receiving, party: .remote,
                            detail: "the server accepted none of the bytes sent"))
                    try await pause(nil)
                }
                sentOffset = offset
                try await advance(to: offset)
                if step.isQuestion { try await report(.resumed(from: offset)) }
                step = token == nil ? .create(inParts: true) : .append(from: offset)
            case .retry(let error, let seconds):
                if !step.isQuestion, let answer, answer.1.http?.headers.contains(.uploadComplete) == false {
                    candidate = answer
                }
                try await setBack(error)
                try await pause(seconds)
                // The failure counts as an attempt, so it must not also count as no progress.
                sentOffset = nil
                step = .ask
            case .fail(let error): throw error
            }
        }
    }

    private func take(_ step: Step) async throws(LoadError) -> (UploadPlan, (Data, Response)?) {
        switch step {
        case .create(let isInParts): try await create(inParts: isInParts)
        case .ask: try await ask()
        case .append(let offset): try await append(from: offset)
        }
    }

    // MARK: Steps

    private func create(inParts: Bool) async throws(LoadError) -> (UploadPlan, (Data, Response)?) {
        let end = inParts ? try end(of: 0) : length
        let exchange = UploadExchange(creating: creation(0..<end), 0..<end)
        return try await exchanged(exchange) { .make(creation: $0, $1) }
    }

    private func ask() async throws(LoadError) -> (UploadPlan, (Data, Response)?) {
        try await exchanged(UploadExchange(asking: try question(), length)) { .make(offset: $0, $1) }
    }

    private func append(from offset: Int64) async throws(LoadError) -> (UploadPlan, (Data, Response)?) {
        try await checkSource()
        let range = offset..<(try end(of: offset))
        return try await exchanged(UploadExchange(appending: try addition(range), range)) { .make(append: $0, $1) }
    }

    /// Requests the final response again with a request that adds no bytes (draft §4.4.2); if the server does not
    /// repeat it, the known response is returned.
    private func repeatForResponse(_ known: (Data, Response)?) async throws(LoadError) -> (Data, Response) {
        let end = length..<length
        do throws(LoadError) {
            let (plan, answer) = try await exchanged(UploadExchange(appending: try addition(end), end)) {
                .make(append: $0, $1)
            }
            if case .finish = plan, let answer { return answer }
        } catch  where error.reason == .cancelled || error.reason == .decisionFailed {
            throw error
        } catch {}
        guard let answer = candidate ?? known else {
            throw LoadError(.uploadInconsistent, phase: .receiving, party: .remote)
        }
        return answer
    }

    /// Sends a request and returns the next step.
    private func exchanged(
        _ exchange: UploadExchange, _ decide: (UploadAnswer, UploadPlan.Facts) -> UploadPlan
    ) async throws(LoadError) -> (UploadPlan, (Data, Response)?) {
        do throws(LoadError) {
            let load = try UploadLoad(core, exchange.request, decisions(for: exchange))
            let answer = try await load.run { event throws(LoadError) in try await self.process(event, exchange, load) }
            guard let head = answer.1.http else { return (.finish, answer) }
            let answered = UploadAnswer(head)
            if exchange.kind == .creation { try await learn(answered, exchange) }
            if let limits = answered.limits { self.limits = limits }
            return (exchange.isAnswered ? .finish : decide(answered, facts(exchange)), answer)
        } catch {
            if let refusal = exchange.refusal { try await refuse(refusal) }
            // The client aborted the request itself, because it exceeds the server's limit.
            if exchange.isTooLong { return (.ask, nil) }
            guard error.interruptsUpload, token != nil else { throw error }
            return (.retry(error, seconds: nil), nil)
        }
    }

    private func facts(_ exchange: UploadExchange) -> UploadPlan.Facts {
        UploadPlan.Facts(
            range: exchange.range, length: length, acknowledged: acknowledged, knowsResource: token != nil,
            limits: limits, now: HTTPDate(secondsSince1970: Int64(Date().timeIntervalSince1970)))
    }

    // MARK: Events of a request

    private func process(_ event: LoadEvent, _ exchange: UploadExchange, _ load: UploadLoad) async throws(LoadError) {
        switch event {
        case .bodySent(let bytes): try await report(.sent(exchange.range.lowerBound + bytes.total))
        case .redirected(let redirect): exchange.note(redirect)
        case .informational(let head):
            guard let answer = UploadAnswer(interim: head) else { return }
            if let limits = answer.limits { self.limits = limits }
            if exchange.kind == .creation { try await learn(answer, exchange) }
            if let offset = answer.offset, offset <= exchange.range.upperBound, offset > acknowledged {
                acknowledged = offset
                try await report(.acknowledged(offset))
            }
            abortIfRefused(exchange, load)
        default: break
        }
    }

    /// Learns the location of the upload and the server's limits.
    private func learn(_ answer: UploadAnswer, _ exchange: UploadExchange) async throws(LoadError) {
        // The Location of a response to the whole upload names its result, not the upload resource.
        guard answer.status.kind == .informational || exchange.range.upperBound < length || answer.isComplete == false,
            let location = answer.location, let url = request.uploadPlace(location, from: exchange.url)
        else { return }
        if let token {
            // §4.2.2: all responses to one request must name the same location.
            guard token.url == url else { throw UploadPlan.inconsistent("the upload's URL changed") }
            return
        }
        let token = UploadToken(url: url, identity: identity, target: UploadToken.target(of: request))
        self.token = token
        try await report(.created(token))
    }

    /// Aborts a request that the server will refuse, before more of it is sent (draft §4.2.1).
    private func abortIfRefused(_ exchange: UploadExchange, _ load: UploadLoad) {
        guard exchange.kind == .creation, token != nil else { return }
        if let largest = limits.largest, largest < length {
            exchange.refusal = UploadPlan.tooLarge("at most \(largest) bytes")
        } else if let most = limits.largestPart, most < exchange.range.count {
            exchange.isTooLong = true
        } else {
            return
        }
        load.stop()
    }

    /// Gives up the upload, and tells the server that it may delete it.
    private func refuse(_ error: LoadError) async throws(LoadError) {
        if let token { try? await UploadCancellation.send(core, request, token, decisions) }
        throw error
    }

    /// Checks that the source has not changed, because several requests must carry parts of the same content.
    private func checkSource() async throws(LoadError) {
        guard source.mayChange else { return }
        let now = try await source.identity(in: core, at: request.url)
        guard now.matches(identity) else {
            throw .sourceChanged(source.path, request.url)
        }
    }

    private func end(of offset: Int64) throws(LoadError) -> Int64 {
        guard let end = limits.end(of: offset, length: length, wanted: options.partSize.map { max(1, $0) }) else {
            throw UploadPlan.tooLarge("the server accepts no possible part size")
        }
        return end
    }

    // MARK: Progress and retries

    private func advance(to offset: Int64) async throws(LoadError) {
        if offset > furthest { (furthest, attempts) = (offset, 0) }
        guard offset > acknowledged else { return }
        acknowledged = offset
        try await report(.acknowledged(offset))
    }

    private func setBack(_ error: LoadError) async throws(LoadError) {
        attempts += 1
        guard attempts <= options.maximumAttempts else { throw error }
        try await report(.interrupted(error))
    }

    private func pause(_ retryAfter: Int64?) async throws(LoadError) {
        let nanoseconds = options.delay(attempts, retryAfter: retryAfter, share: .random(in: 0.5...1))
        if nanoseconds > 0 { try await UploadPause(core: core).wait(nanoseconds, at: request.url) }
    }

    private func report(_ event: UploadEvent) async throws(LoadError) {
        do { try await settings.report(event) } catch {
            throw LoadError(.decisionFailed, phase: .sending, party: .local, url: request.url, underlying: error)
        }
    }
}
