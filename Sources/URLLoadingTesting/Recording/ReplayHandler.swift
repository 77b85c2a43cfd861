// Answers from a recording. Which exchange answers which request is decided in `ReplayState`, without
// waiting; the rest is time.

import FoundationEssentials
import Synchronization
public import URLLoading
import URLLoadingIO
import URLLoadingWire

/// Answers requests with what was recorded: the same statuses, fields, pieces of bodies, failures. No
/// socket is opened.
///
/// ```swift
/// let replay = ReplayHandler(try Recording(contentsOf: file))
/// var configuration = Configuration.ephemeral
/// configuration.handlers = [replay]
/// try await withSession(configuration) { session in … }
/// #expect(replay.unused.isEmpty)
/// ```
/// A request is answered by the first unused exchange with its method, URL (userinfo and fragment do not
/// count) and body; each is used once. A body that was recorded only in part, or whose end nobody saw, is
/// replayed so far and then fails with ``LoadError/Reason/notRecorded``. An answer 401 makes the session renew
/// its bearer token and ask again, as that of a server does.
public final class ReplayHandler: ProtocolHandler {
    /// When answers come.
    public enum Timing: Sendable, Hashable {
        /// As soon as they are asked for.
        case atOnce
        /// As long after the request as when they were recorded, by the clock of the session.
        case asRecorded
    }

    /// What becomes of a request that no exchange answers.
    public enum Unmatched: Sendable, Hashable {
        /// It fails with ``LoadError/Reason/notRecorded``.
        case fail
        /// The handlers behind this one answer it, at last the network.
        case forward
    }

    private let timing: Timing
    private let unmatched: Unmatched
    private let comparesBodies: Bool
    private let state: Lock<ReplayState>

    /// - Parameters:
    ///   - recording: what to answer with.
    ///   - timing: when.
    ///   - unmatched: what becomes of other requests.
    ///   - comparesBodies: whether a request must have the recorded body. A body that is a sequence is
    ///     asked for to be compared, and again if the request is forwarded.
    public init(
        _ recording: Recording, timing: Timing = .atOnce, unmatched: Unmatched = .fail, comparesBodies: Bool = true
    ) {
        self.timing = timing
        self.unmatched = unmatched
        self.comparesBodies = comparesBodies
        state = Lock(ReplayState(recording))
    }

    /// The exchanges no request has asked for, in their order.
    public var unused: [Recording.Exchange] { state.withLock { $0.unused } }

    public func canHandle(_ request: Request) -> Bool { true }

    public func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolAnswer {
        // Before anything is waited for: times are counted from the request.
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

    /// - Parameter began: when the request was made, or made again.
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
            throw LoadError.notRecorded(request, "nobody saw an answer")
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
            answer: ProtocolAnswer.response(response, data: Data()).with(body: body) { answer.trailers },
            isRefusal: answer.http?.status == .unauthorized, refusedToken: answer.refusedToken)
    }

    /// An answer, and what it says of the session's bearer token.
    private struct Replayed {
        let answer: ProtocolAnswer
        /// Whether the server wants another token. The network behind says so to the session itself.
        var isRefusal = false
        var refusedToken: Int?
    }

    private func match(_ request: Request) async throws -> ReplayState.Match {
        var sum = BodySum()
        // Only if it may decide: the body may be a sequence that is long.
        if comparesBodies, state.withLock({ $0.knows(request) }) {
            try await request.body?.forEachPiece { sum.add($0) }
        }
        return state.withLock { [sum] in $0.take(request, comparesBodies ? sum : nil) }
    }
}

extension LoadError.Reason {
    /// A ``ReplayHandler`` has nothing, or no more, to answer with.
    public static let notRecorded = Self("notRecorded", -1008)
}

extension LoadError {
    fileprivate static func notRecorded(_ request: Request, _ why: String) -> LoadError {
        LoadError(
            .notRecorded, phase: .waiting, party: .local, url: request.url,
            detail: "\(request.method) \(request.url.shown): \(why)")
    }
}

/// How fast a recording is replayed.
private struct Pace: Sendable {
    private let clock: LoopClock
    /// The moment that is the recording's beginning.
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
    /// Returns if it ended well, or if nobody saw its end.
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
    let answer: Recording.Answer
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
            if let all = body.answer.cutFrom {
                throw LoadError.notRecorded(
                    body.request, "of \(all) bytes of its body the first \(pieces.reduce(0) { $0 + $1.bytes.count })")
            }
            try await body.exchange.throwEnding(body.request.url, body.pace)
            guard case .open = body.exchange.ending else { return nil }
            throw LoadError.notRecorded(body.request, "nobody saw the end of its body")
        }
    }
}
