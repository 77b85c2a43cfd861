// SPDX-License-Identifier: Apache-2.0

// Answers requests from a recording. `ReplayState` selects the exchange for a request without waiting; this file
// handles timing.

import FoundationEssentials
import Synchronization
public import URLLoading
import URLLoadingIO
import URLLoadingWire

/// Answers requests from a recording: the same statuses, fields, body pieces and errors, without opening a socket.
///
/// ```swift
/// let replay = ReplayHandler(try Recording(contentsOf: file))
/// var configuration = Configuration.ephemeral
/// configuration.handlers = [replay]
/// try await withSession(configuration) { session in … }
/// #expect(replay.unused.isEmpty)
/// ```
/// A request is answered by the first unused exchange with the same method, URL (ignoring userinfo and fragment) and
/// body; each exchange is used once. A body that was recorded only in part, or without its end, is replayed that far
/// and then fails with `LoadError.Reason.notRecorded`. A 401 response makes the session renew its bearer token and
/// retry, as a server's does.
public final class ReplayHandler: ProtocolHandler {
    /// The timing of responses.
    public enum Timing: Sendable, Hashable {
        /// As soon as they are requested.
        case immediate
        /// With the recorded delays, by the session's clock.
        case asRecorded
    }

    /// The treatment of a request that no exchange answers.
    public enum Unmatched: Sendable, Hashable {
        /// The request fails with `LoadError.Reason.notRecorded`.
        case fail
        /// The request is passed to the handlers after this one, and finally the network.
        case forward
    }

    private let timing: Timing
    private let unmatched: Unmatched
    private let comparesBodies: Bool
    private let state: Lock<ReplayState>

    /// Creates a handler.
    /// - Parameters:
    ///   - recording: the exchanges to answer with.
    ///   - timing: the timing of responses.
    ///   - unmatched: the treatment of requests without an exchange.
    ///   - comparesBodies: whether a request must have the recorded body. A body that is a sequence is read for the
    ///     comparison, and again if the request is forwarded.
    public init(
        _ recording: Recording, timing: Timing = .immediate, unmatched: Unmatched = .fail, comparesBodies: Bool = true
    ) {
        self.timing = timing
        self.unmatched = unmatched
        self.comparesBodies = comparesBodies
        state = Lock(ReplayState(recording))
    }

    /// The exchanges that no request has used, in order.
    public var unused: [Recording.Exchange] { state.withLock { $0.unused } }

    /// Returns true: every request passes this handler.
    public func canHandle(_ request: Request) -> Bool { true }

    /// Answers the request from the recording.
    public func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
        // Taken before anything is awaited, because times are relative to the request.
        var began = client.clock.now()
        let isRecorded = state.withLock { $0.knows(request) }
        let token = isRecorded ? try await client.takeToken(for: request) : nil
        while true {
            let answer = try await answer(request, client, began)
            guard let token, answer.isRefusal, try await token.renew(answer.refusedToken, after: answer.answer.response)
            else { return answer.answer }
            began = client.clock.now()
        }
    }

    /// - Parameter began: when the request was made or repeated.
    private func answer(_ request: Request, _ client: ProtocolClient, _ began: Int64) async throws -> Replayed {
        let exchange: Recording.Exchange
        switch try await match(request) {
        case .found(let found): exchange = found
        case .none where unmatched == .forward: return Replayed(answer: try await client.next.load(request))
        case .none(let why): throw LoadError.notRecorded(request, why)
        }
        let pace = Pace(client.clock, began: began, recorded: exchange.began, isKept: timing == .asRecorded)
        guard let answer = exchange.answer else {
            try await exchange.throwEnding(request.url, pace)
            throw LoadError.notRecorded(request, "no response was recorded")
        }
        try await pace.wait(until: answer.at)
        let response = Response(
            url: answer.url ?? request.url, mediaType: answer.mediaType, expectedLength: answer.expectedLength,
            http: answer.http.map { HTTPHead(status: $0.status, version: $0.version, headers: $0.headers) })
        if let redirect = answer.redirect {
            return Replayed(answer: .redirect(response, to: Request(url: redirect.url, method: redirect.method)))
        }
        let body = ReplayedBody(request: request, exchange: exchange, answer: answer, pace: pace)
        return Replayed(
            answer: ProtocolResponse.response(response, data: Data()).with(body: body) { answer.trailers },
            isRefusal: answer.http?.status == .unauthorized, refusedToken: answer.refusedToken)
    }

    /// A response, and whether it refuses the session's bearer token.
    private struct Replayed {
        let answer: ProtocolResponse
        /// Whether the recorded server requested another token. A forwarded request's refusal is handled by the session
        /// itself.
        var isRefusal = false
        var refusedToken: Int?
    }

    private func match(_ request: Request) async throws -> ReplayState.Match {
        var sum = BodySum()
        // Computed only if it matters, because the body may be a long sequence.
        if comparesBodies, state.withLock({ $0.knows(request) }) {
            try await request.body?.forEachPiece { sum.add($0) }
        }
        return state.withLock { [sum] in $0.take(request, comparesBodies ? sum : nil) }
    }
}

extension LoadError.Reason {
    /// A ``ReplayHandler`` has no unused exchange for the request.
    public static let notRecorded = Self("notRecorded", -1008)
}

extension LoadError {
    fileprivate static func notRecorded(_ request: Request, _ why: String) -> LoadError {
        LoadError(
            .notRecorded, phase: .waiting, party: .local, url: request.url,
            detail: "\(request.method) \(request.url.shown): \(why)")
    }
}

/// The speed at which a recording is replayed.
private struct Pace: Sendable {
    private let clock: LoopClock
    /// The moment that corresponds to the beginning of the recording; `nil` without delays.
    private let beginning: Int64?

    init(_ clock: LoopClock, began: Int64, recorded: Duration, isKept: Bool) {
        self.clock = clock
        beginning = isKept ? began - recorded.inNanoseconds : nil
    }

    func wait(until moment: Duration) async throws {
        guard let beginning else { return }
        try await clock.sleep(until: beginning + moment.inNanoseconds)
    }
}

extension Recording.Exchange {
    /// Throws the recorded error, if any, at its time.
    fileprivate func throwEnding(_ url: URL, _ pace: Pace) async throws {
        switch ending {
        case .complete(let moment): try await pace.wait(until: moment)
        case .open: break
        case .failed(let failure, let moment):
            try await pace.wait(until: moment)
            throw LoadError(
                failure.reason, phase: failure.phase, party: failure.party, url: url, detail: failure.detail)
        }
    }
}

private struct ReplayedBody: AsyncSequence {
    let request: Request
    let exchange: Recording.Exchange
    let answer: Recording.Response
    let pace: Pace
    func makeAsyncIterator() -> Iterator { Iterator(body: self) }

    struct Iterator: AsyncIteratorProtocol {
        let body: ReplayedBody
        var next = 0

        mutating func next() async throws -> [UInt8]? {
            let pieces = body.answer.pieces
            if next < pieces.count {
                defer { next += 1 }
                try await body.pace.wait(until: pieces[next].at)
                return pieces[next].bytes
            }
            if let all = body.answer.fullLength {
                throw LoadError.notRecorded(
                    body.request, "of \(all) bytes of its body the first \(pieces.reduce(0) { $0 + $1.bytes.count })")
            }
            try await body.exchange.throwEnding(body.request.url, body.pace)
            guard case .open = body.exchange.ending else { return nil }
            throw LoadError.notRecorded(body.request, "the end of its body was not recorded")
        }
    }
}
