// SPDX-License-Identifier: Apache-2.0

// The questions of a load to its delegate. Most are decisions of the core, which waits for the answer. A response is
// held back in the mailbox instead, so that allowing it costs no wait.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension TaskBridge {
    /// The task whose load a decision of the session concerns.
    @TaskLocal static var current: TaskBridge?

    /// The decisions of this load.
    var decisions: Decisions {
        if kind == .data, !mayBecomeStream {
            guard let challenge = challengeDecision() else { return Self.ofDataTasks }
            var decisions = Self.ofDataTasks
            decisions.challenge = challenge
            return decisions
        }
        var decisions = Decisions()
        // A stream may outlive its task; a challenge is its only decision.
        if kind == .stream {
            decisions.challenge = challengeDecision()
            return decisions
        }
        decisions.redirect = Decision.onLoop { [self] redirect in try await decide(redirect) }
        decisions.bodyProvider = Decision.onLoop { [self] demand in try await makeBody(demand) }
        decisions.challenge = challengeDecision()
        decisions.cache = Self.cacheDecision
        if kind == .data, mayBecomeStream {
            decisions.response = Decision.onLoop { [self] in try await askDisposition($0) }
        }
        return decisions
    }

    /// Decisions shared by all data tasks, which find their task in `current`. Some tasks have a challenge decision of
    /// their own.
    private static let ofDataTasks: Decisions = {
        var decisions = Decisions()
        decisions.redirect = Decision.onLoop { redirect in try await TaskBridge.current?.decide(redirect) ?? .follow }
        decisions.bodyProvider = Decision.onLoop { demand in
            guard let bridge = TaskBridge.current else { throw NoFurtherBody.noStream }
            return try await bridge.makeBody(demand)
        }
        decisions.cache = cacheDecision
        return decisions
    }()

    /// The cache policy of requests without one of their own. The handshake of a WebSocket is never answered from the
    /// cache.
    var cachePolicy: URLRequest.CachePolicy {
        guard kind != .socket else { return .reloadIgnoringLocalCacheData }
        return state.withLock { $0.session }?.requestCachePolicy ?? .useProtocolCachePolicy
    }

    // MARK: Redirects

    private func decide(_ redirect: Redirect) async throws -> RedirectDecision {
        guard taskDelegate != nil, let head = redirect.response.http else { return .follow }
        let own = redirect.response.properties[OwnResponse.self]?.response as? HTTPURLResponse
        let response = own ?? HTTPURLResponse(redirect.response, head)
        let proposed = state.withLock { $0.next ?? URLRequest(redirect.request, like: $0.current) }
        let outcome: Inquiry<URLRequest?>.Outcome = await inquire("willPerformHTTPRedirection") {
            [self] session, task, answer in
            guard let delegate = taskDelegate else { return answer.give(proposed) }
            delegate.urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: proposed) {
                answer.give($0)
            }
        }
        switch outcome {
        case .withdrawn: return .cancel
        case .dropped: throw DroppedAnswer()
        case .reply(nil): return .doNotFollow
        case .reply(let other?):
            if other == proposed { return .follow }
            var request: Request
            switch Request.make(other, cachePolicy) {
            case .success(let made): request = made
            case .failure(let error):
                // Not thrown: the error of a decision would hide the reason.
                cancel(error)
                return .cancel
            }
            // The classic request does not contain the body of an upload.
            if other.hasBody(of: proposed), let body = redirect.request.body { request.setBody(body) }
            if redirect.request.properties[ClassicTask.self] != nil { mark(&request) }
            state.withLock { state in
                state.next = other
                state.offerStream(of: other, insteadOf: proposed)
            }
            return .instead(request)
        }
    }

    // MARK: Bodies

    /// Provides the body for another sending: the `httpBodyStream` of the request can be read only once.
    private func makeBody(_ demand: BodyProviderContext) async throws -> RequestBody {
        if let offset = UploadWork.offset(of: demand.request) { return try await makeBody(demand, from: offset) }
        let request = state.withLock { $0.current }
        let fields = Headers(request.allHTTPHeaderFields ?? [:])
        let length = fields.contains(.transferEncoding) ? nil : fields.contentLength
        return .stream(try await nextStream(), length: length)
    }

    func nextStream() async throws -> sending InputStream {
        nonisolated(unsafe) let first = state.withLock { GivenStream(stream: $0.active?.stream.take()) }.stream
        if let first { return first }
        let outcome: Inquiry<GivenStream>.Outcome = await inquire("needNewBodyStream") { [self] session, task, answer in
            guard let delegate = taskDelegate else { return answer.give(GivenStream(stream: nil)) }
            delegate.urlSession(session, task: task, needNewBodyStream: { answer.give(GivenStream(stream: $0)) })
        }
        return try Self.stream(of: outcome)
    }

    /// Provides the rest of the body for a resumed upload.
    private func makeBody(_ demand: BodyProviderContext, from offset: Int64) async throws -> RequestBody {
        let outcome: Inquiry<GivenStream>.Outcome = await inquire("needNewBodyStreamFrom") {
            [self] session, task, answer in
            guard let delegate = taskDelegate else { return answer.give(GivenStream(stream: nil)) }
            delegate.urlSession(session, task: task, needNewBodyStreamFrom: offset) {
                answer.give(GivenStream(stream: $0))
            }
        }
        let length = demand.request.headers.contentLength
        return .stream(try Self.stream(of: outcome), length: length)
    }

    private static func stream(of outcome: Inquiry<GivenStream>.Outcome) throws -> sending InputStream {
        switch outcome {
        case .reply(let box):
            nonisolated(unsafe) let given = box.stream
            guard let stream = given else { throw NoFurtherBody.noStream }
            return stream
        case .dropped: throw DroppedAnswer()
        case .withdrawn: throw CancellationError()
        }
    }

    // MARK: Challenges

    /// Asks the delegates in Apple's order: a challenge of the connection is the session's, any other the task's.
    func decide(_ challenge: Challenge) async throws -> ChallengeDecision {
        guard sessionDelegate != nil || taskDelegate != nil else { return .performDefaultHandling }
        let request = state.withLock { $0.current }
        if let error = challenge.error, error.reason == .badDecision {
            // The scheme cannot send the delegate's credential, which the delegate would give again.
            let reason = LoadError.Reason.authenticationFailed
            cancel(LoadError(reason, phase: .deciding, party: .local, url: request.url, detail: error.detail))
            return .cancel
        }
        let outcome = await ask(isConnections: challenge.protectionSpace.method.isConnections) {
            URLAuthenticationChallenge(challenge, request, sender: $0)
        }
        switch outcome {
        case .reply(let verdict): return verdict.decision
        case .dropped: throw DroppedAnswer()
        case .withdrawn: return .cancel
        }
    }

    /// Returns the delegate's answer to a challenge from a ``URLProtocol``; `nil` if there will be none.
    func verdict(_ challenge: URLAuthenticationChallenge) async -> Verdict? {
        let unasked = Verdict(disposition: .performDefaultHandling, credential: nil)
        guard sessionDelegate != nil || taskDelegate != nil else { return unasked }
        let outcome = await ask(isConnections: challenge.isConnections) {
            URLAuthenticationChallenge(authenticationChallenge: challenge, sender: $0)
        }
        switch outcome {
        case .reply(let verdict): return verdict
        case .dropped, .withdrawn: return nil
        }
    }

    private func ask(
        isConnections: Bool, _ make: @escaping @Sendable (ChallengeSender) -> URLAuthenticationChallenge
    ) async -> Inquiry<Verdict>.Outcome {
        await inquire("didReceive challenge") { [self] session, task, answer in
            let give: ChallengeSender.Reply = { answer.give(Verdict(disposition: $0, credential: $1)) }
            let asked = make(ChallengeSender(give))
            let askTask: @Sendable () -> Void = { [self] in
                guard let delegate = taskDelegate else { return give(.performDefaultHandling, nil) }
                delegate.urlSession(session, task: task, didReceive: asked, completionHandler: give)
            }
            guard isConnections, let delegate = sessionDelegate else { return askTask() }
            _ = DefaultMark.take()
            delegate.urlSession(session, didReceive: asked) { disposition, credential in
                if DefaultMark.take() { askTask() } else { give(disposition, credential) }
            }
        }
    }

    // MARK: Responses

    func ask(_ response: URLResponse, _ session: URLSession, _ task: URLSessionTask) {
        guard let delegate = dataDelegate, let task = task as? URLSessionDataTask else { return allow() }
        let answer = Answer<URLSession.ResponseDisposition> { [self] outcome in
            switch outcome {
            case .given(.allow): allow()
            case .given(.cancel): if isHeld { cancel() }
            case .given(.becomeDownload):
                let isPart = state.withLock { $0.active?.body.hasParts == true }
                if isPart { refusePart(response) } else { becomeDownload() }
            case .given(.becomeStream): refuseStream(response)
            case .givenAgain: task.report(.completionHandlerCalledAgain, "didReceive response")
            case .dropped:
                guard isHeld else { return }
                task.report(.completionHandlerDropped, "didReceive response")
                cancel(
                    LoadError(
                        .decisionFailed, phase: .deciding, party: .local, url: response.url, underlying: DroppedAnswer()
                    ))
            }
        }
        delegate.urlSession(session, dataTask: task, didReceive: response) { answer.give($0) }
    }

    /// Fails a multipart response that was to become a download: a single file cannot begin in the middle of several
    /// bodies.
    private func refusePart(_ response: URLResponse) {
        cancel(
            LoadError(
                .badDecision, phase: .deciding, party: .local, url: response.url,
                detail: "a part cannot become a download"))
    }

    var isHeld: Bool { state.withLock { $0.mailbox.isHeld } }

    private func allow() {
        state.withLock { $0.mailbox.answered() }
        schedule()
    }
}

/// A delegate's answer to a challenge.
struct Verdict: Sendable {
    let disposition: URLSession.AuthChallengeDisposition
    let credential: URLCredential?

    var decision: ChallengeDecision {
        switch disposition {
        // Without a credential the response that carried the challenge is the result, whichever other schemes it
        // offers.
        case .useCredential: credential?.decision ?? .continueWithoutCredential
        case .performDefaultHandling: .performDefaultHandling
        case .cancelAuthenticationChallenge: .cancel
        case .rejectProtectionSpace: .rejectProtectionSpace
        }
    }
}

extension Challenge.Method {
    /// Whether the challenge is connection-level: the session's delegate is asked first.
    fileprivate var isConnections: Bool { [.ntlm, .negotiate, .serverTrust, .clientCertificate].contains(self) }
}

extension URLAuthenticationChallenge {
    /// Whether a challenge from a ``URLProtocol`` is connection-level: the session's delegate is asked first (checklist
    /// 66).
    fileprivate var isConnections: Bool {
        [
            NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate, NSURLAuthenticationMethodServerTrust,
            NSURLAuthenticationMethodClientCertificate,
        ].contains(protectionSpace.authenticationMethod)
    }
}

/// The error of a load whose delegate dropped a completion handler.
struct DroppedAnswer: Error, CustomStringConvertible {
    var description: String { "the delegate dropped the completion handler without calling it" }
}

extension NoFurtherBody {
    /// The body must be sent, or sent again, and the delegate provided no stream.
    static var noStream: NoFurtherBody { NoFurtherBody("no delegate provided a body stream with needNewBodyStream") }
}
