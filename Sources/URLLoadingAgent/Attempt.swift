// SPDX-License-Identifier: Apache-2.0

// One attempt of a transfer: the load itself. It does not access the journal; it reports what the service must record.

import FoundationEssentials
import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingWire

/// The result of an attempt.
enum AttemptResult: Sendable {
    /// The complete file is on the disk.
    case file(path: String, size: Int64, response: TransferResponse)
    case answer([UInt8], TransferResponse)
    /// - Parameter mayRepeat: the request was not carried out, or may be repeated without harm.
    case failed(LoadError, mayRepeat: Bool)
    /// The server asks for a retry after some time.
    case delayed(status: Int, seconds: Int64)
    /// A challenge waits for the program, which is away or cannot decide it.
    case parked(question: String)
    /// The program's answer to a challenge ends the transfer.
    case refused(LoadError)
    /// The resumption data are invalid: the transfer restarts from the beginning at once.
    case anew
}

/// An event during an attempt.
enum AttemptReport: Sendable {
    case responded(TransferResponse)
    case token(Data)
    /// The part of another agent was copied: the token of the copy is to replace its token.
    case moved(from: Data, to: Data)
    case uploadToken(String)
    case received(Int64, expected: Int64?)
    case sent(Int64, expected: Int64?)
}

struct Attempt: Sendable {
    let transfer: Transfer
    let session: Session
    let spool: any FileStore
    /// The name of this agent among those that share the journal.
    let agent: String
    let report: @Sendable (AttemptReport) async -> Void
    /// Puts a challenge to the program; returns `nil` if it is away.
    let ask: @Sendable (TransferChallenge) async -> TransferAnswer?
    private let outcome = ChallengeOutcome()

    init(
        transfer: Transfer, session: Session, spool: any FileStore, agent: String = "",
        report: @escaping @Sendable (AttemptReport) async -> Void,
        ask: @escaping @Sendable (TransferChallenge) async -> TransferAnswer?
    ) {
        (self.transfer, self.session, self.spool, self.agent) = (transfer, session, spool, agent)
        (self.report, self.ask) = (report, ask)
    }

    /// The bytes, or the nanoseconds, after which a new resume token is recorded: it moves the point that survives a
    /// power failure.
    private static let tokenBytes: Int64 = 64 << 20
    private static let tokenInterval: Int64 = 5_000_000_000

    func run() async -> AttemptResult {
        guard let request = transfer.order.request(transfer.secrets) else {
            return .failed(LoadError(.badURL, phase: .preparing, party: .local), mayRepeat: false)
        }
        let result = transfer.order.kind == .download ? await download(request) : await upload(request)
        // The load fails with the error of the decision that could not be taken.
        guard case .failed(let error, _) = result, error.phase == .deciding, let ending = outcome.ending else {
            return result
        }
        return ending
    }

    /// The decisions of the load. Each attempt has its own, so a connection that one answer has approved is not used by
    /// transfers for which the program was not asked.
    private var decisions: Decisions? {
        guard transfer.order.challenges != nil else { return nil }
        var decisions = Decisions()
        decisions.challenge = Decision { [ask, outcome] challenge in
            let answer = await ask(TransferChallenge(challenge))
            return try outcome.decision(on: challenge, answer)
        }
        return decisions
    }

    // MARK: Download

    private func download(_ request: Request) async -> AttemptResult {
        let path = spool.complete(transfer)
        let (spool, order) = (spool, transfer.order)
        let checked = await BlockingThreads.files.call(.never) { () -> Result<Void, LoadError> in
            Result { () throws(LoadError) in try spool.checkDestination(order) }
        }
        if case .failure(let error)? = checked { return .failed(error, mayRepeat: true) }
        // The agent was killed after the last byte and before the journal recorded it.
        if transfer.progress.response != nil, !spool.earlierSuffixes(transfer).isEmpty {
            let transfer = transfer
            _ = await BlockingThreads.files.call(.never) { spool.takeOver(transfer) }
        }
        if let response = transfer.progress.response,
            let size = await BlockingThreads.files.call(.never, { Self.size(path) }) ?? nil,
            response.expectedLength == nil || transfer.progress.expectedToReceive.map({ $0 == size }) ?? true
        {
            return .file(path: path, size: size, response: response)
        }
        var options = DownloadOptions(destination: URL(filePath: path), synchronizes: true)
        options.permissions = 0o600
        options.reservesSpace = true
        options.requiresSuccess = order.requiresSuccess
        options.expectedDigest = order.digest.flatMap { try? BodyDigest($0) }
        options.parallelRanges = order.parallelRanges.flatMap { ParallelRanges($0) }
        var held = (transfer.progress.resumption ?? transfer.order.resumption).flatMap { try? ResumeToken($0) }
        if let token = held, spool.mayBeWritten(by: transfer.progress.writer, notBy: agent) {
            held = await takeOver(token)
        }
        let task =
            held.map { session.downloadTask(resuming: $0, request: request, options: options, decisions: decisions) }
            ?? session.downloadTask(request, options: options, decisions: decisions)
        return await withTaskCancellationHandler {
            await follow(task, path, isResumed: held != nil)
        } onCancel: {
            task.cancel()
        }
    }

    /// Copies the part of an agent that may still write it.
    /// - Returns: `nil` if nothing of it can be used.
    private func takeOver(_ token: ResumeToken) async -> ResumeToken? {
        let copied = await BlockingThreads.files.call(.never) { () -> Result<ResumeToken, LoadError> in
            Result { () throws(LoadError) in try token.copied() }
        }
        guard let copy = try? copied?.get() else { return nil }
        await report(.moved(from: token.data, to: copy.data))
        return copy
    }

    private static func size(_ path: String) -> Int64? {
        guard PathIdentity(path)?.isOwnFile == true else { return nil }
        return (try? FileReader(path: path))?.size
    }

    private func follow(_ task: LoadTask<DownloadedFile>, _ path: String, isResumed: Bool) async -> AttemptResult {
        let events = task.events
        task.resume()
        var tokens = TokenClock()
        var isRedirected = false
        for await event in events {
            switch event {
            case .responded(let response):
                if let seconds = Self.retryAfter(response) {
                    _ = await task.cancelProducingResumeToken()
                    return .delayed(status: response.http?.status.code ?? 0, seconds: seconds)
                }
                await report(.responded(TransferResponse(response)))
            case .redirected: isRedirected = true
            case .received(let bytes):
                await report(.received(bytes.total, expected: bytes.expected))
                if tokens.isDue(bytes.total), let token = task.resumeToken {
                    tokens.taken(at: bytes.total)
                    await report(.token(token.data))
                }
            default: break
            }
        }
        do throws(LoadError) {
            let file = try await task.value
            return .file(path: path, size: file.size, response: TransferResponse(file.response))
        } catch { return await failure(error, isResumed: isResumed, isRedirected: isRedirected) }
    }

    private func failure(_ error: LoadError, isResumed: Bool, isRedirected: Bool) async -> AttemptResult {
        // A redirect answers a request that was sent.
        let mayRepeat = transfer.order.isIdempotent || (!isRedirected && Self.precedesSending(error))
        if let token = error.resumeToken { await report(.token(token.data)) }
        guard isResumed else { return .failed(error, mayRepeat: mayRepeat) }
        switch error.reason {
        case .invalidResumeToken, .resumeMismatch, .rangeNotSatisfiable: return .anew
        case .unacceptableStatus:
            if let response = error.response, let seconds = Self.retryAfter(response) {
                return .delayed(status: response.http?.status.code ?? 0, seconds: seconds)
            }
            // A server error may be temporary, and the stored part stays valid. After any other status, the attempt
            // restarts with a full request.
            guard let status = error.status?.code, status >= 500 else { return .anew }
            return .failed(
                LoadError(.connectionLost, phase: .waiting, party: .remote, detail: "status \(status)"), mayRepeat: true
            )
        default: return .failed(error, mayRepeat: mayRepeat)
        }
    }

    /// Whether an attempt without redirects failed before its request was sent.
    private static func precedesSending(_ error: LoadError) -> Bool {
        [.preparing, .resolving, .connecting, .securing].contains(error.phase)
    }

    /// Decides when a new resume token is due.
    private struct TokenClock {
        private var hasToken = false
        private var bytes: Int64 = 0
        private var time: Int64 = 0

        func isDue(_ total: Int64) -> Bool {
            !hasToken || total - bytes >= Attempt.tokenBytes || Poller.coarseNow() - time >= Attempt.tokenInterval
        }
        mutating func taken(at total: Int64) { (hasToken, bytes, time) = (true, total, Poller.coarseNow()) }
    }

    /// The delay in seconds that a 429 or 503 asks for.
    private static func retryAfter(_ response: Response) -> Int64? {
        guard let head = response.http, [429, 503].contains(head.status.code) else { return nil }
        let now = HTTPDate(secondsSince1970: SystemTime.wall / 1_000_000_000)
        return head.headers[.retryAfter].flatMap { RetryAfter($0, now: now) }?.seconds(after: now)
    }

    // MARK: Upload

    /// Whether any part of the body has been given to the system.
    private final class Sent: Sendable { let hasBegun = Atomic(false) }

    private func upload(_ request: Request) async -> AttemptResult {
        guard let path = transfer.order.source else {
            return .failed(LoadError(.fileNotFound, phase: .preparing, party: .local), mayRepeat: false)
        }
        let spool = spool
        if let stamp = transfer.order.sourceStamp,
            await BlockingThreads.files.call(.never, { spool.isUnchanged(path, since: stamp) }) == false
        {
            return .failed(.sourceChanged(path, request.url), mayRepeat: false)
        }
        var options = UploadOptions()
        // The agent itself waits between attempts, and records the upload token.
        options.maximumAttempts = 0
        let token = transfer.progress.uploadToken.flatMap { try? UploadToken($0) }
        let length = transfer.order.sourceStamp?.size
        let sent = Sent()
        do throws(LoadError) {
            let (data, response) = try await session.uploadResumably(
                request, from: .file(URL(filePath: path)), resuming: token, options: options, decisions: decisions
            ) { [report] event in
                switch event {
                case .created(let token): await report(.uploadToken(token.text))
                case .sent(let count):
                    sent.hasBegun.store(true, ordering: .relaxed)
                    await report(.sent(count, expected: length))
                case .acknowledged, .interrupted, .resumed: break
                }
            }
            if let seconds = Self.retryAfter(response) {
                return .delayed(status: response.http?.status.code ?? 0, seconds: seconds)
            }
            if transfer.order.requiresSuccess { try response.requireSuccess() }
            return .answer([UInt8](data), TransferResponse(response))
        } catch {
            if error.reason == .uploadNotFound || error.reason == .invalidUploadToken, token != nil { return .anew }
            if error.reason == .bodyTooLarge { return .failed(Self.answerTooLarge(error), mayRepeat: true) }
            let isKnown = token != nil || error.uploadToken != nil
            // The head is all of a request with an empty file.
            let isUnsent = !sent.hasBegun.load(ordering: .relaxed) && (length != 0 || Self.precedesSending(error))
            let mayRepeat = isKnown || transfer.order.isIdempotent || isUnsent
            return .failed(error, mayRepeat: mayRepeat)
        }
    }

    /// The failure of an upload that was carried out: the body of its response exceeds what the session collects.
    private static func answerTooLarge(_ error: LoadError) -> LoadError {
        LoadError(
            .bodyTooLarge, phase: error.phase, party: error.party, url: error.url,
            detail: "the upload was answered, but limits.collectedBodySize does not permit the body of the response: "
                + (error.detail ?? "too many bytes"))
    }
}
