// Requests taken piece by piece: for servers that answer, or fail, while a body still comes.

import URLLoadingIO
import URLLoadingWire

/// Takes one request as it comes. Called by the task of its connection alone.
protocol OriginReceiver: AnyObject, Sendable {
    /// The head is here.
    func begin() -> [OriginStep]
    /// A part of the body is here; says how much of it was taken, at least one byte unless a step follows.
    func take(_ bytes: ArraySlice<UInt8>) -> (taken: Int, steps: [OriginStep])
    /// The body has ended.
    func finish() async -> [OriginStep]
    /// Nothing more comes, however it ended.
    func end()
}

/// What is done in the middle of a request.
enum OriginStep: Sendable {
    case interim(TestOrigin.Answer.Interim)
    case fault(TestOrigin.Fault.Effect)
    /// The last step: what of the body has not come yet is not waited for.
    case answer(TestOrigin.Answer)
}

extension OriginConnection {
    /// The answer, and whether a part of the body was left unread.
    func receive(
        _ request: inout TestOrigin.RecordedRequest, _ receiver: any OriginReceiver
    ) async throws(Ending) -> (TestOrigin.Answer, leavesBody: Bool) {
        defer { receiver.end() }
        if let answer = try await take(receiver.begin()) { return try early(answer) }
        try await expectation(request)
        try await meet(.requestBody(after: 0)) { $0.isRequestBody(upTo: 0) }
        while true {
            switch try await nextEvent() {
            case .data(let range):
                request.bodyCount += Int64(range.count)
                var rest = input.bytes(range)
                while !rest.isEmpty {
                    let (taken, steps) = receiver.take(rest)
                    rest = rest.dropFirst(taken)
                    if let answer = try await take(steps) { return try early(answer) }
                }
                let read = request.bodyCount
                try await meet(.requestBody(after: read)) { $0.isRequestBody(upTo: read) }
            case .end(let trailers):
                request.trailers = trailers
                return (try await take(await receiver.finish()) ?? .status(.noContent), false)
            default: throw .close
            }
        }
    }

    /// An answer that did not wait for the end of the request.
    private func early(_ answer: TestOrigin.Answer) throws(Ending) -> (TestOrigin.Answer, leavesBody: Bool) {
        // Of a request without content, or whose content is here, only the word of the end is missing.
        if codec.remainingLength == 0 { _ = try event() }
        guard !codec.isReceiveComplete else { return (answer, false) }
        // What would come next on this connection would be lost: the client is told (RFC 9112 9.6).
        var answer = answer
        answer.headers[.connection] = "close"
        return (answer, true)
    }

    private func take(_ steps: [OriginStep]) async throws(Ending) -> TestOrigin.Answer? {
        for step in steps {
            switch step {
            case .interim(let interim): try await sendInterim(interim)
            case .fault(let effect): try await strike(TestOrigin.Fault(.requestHead, effect))
            case .answer(let answer): return answer
            }
        }
        return nil
    }
}
