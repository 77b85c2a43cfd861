// SPDX-License-Identifier: Apache-2.0

// Receives requests piece by piece, for servers that answer, or fail, while a body is still arriving.

import URLLoadingWire

/// Receives one request as it arrives. Called only by the task of its connection.
protocol OriginReceiver: AnyObject {
    /// Called when the head has arrived.
    func begin() -> [OriginStep]
    /// Called when a part of the body has arrived; returns how much of it was consumed, at least one byte unless a step
    /// follows.
    func take(_ bytes: ArraySlice<UInt8>) -> (taken: Int, steps: [OriginStep])
    /// Called when the body has ended.
    func finish() async -> [OriginStep]
    /// Called last, however the request ended.
    func end()
}

/// An action in the middle of a request.
enum OriginStep: Sendable {
    case interim(HTTPTestServer.Response.Interim)
    case fault(HTTPTestServer.Fault.Effect)
    /// The last step: the rest of the body is not awaited.
    case answer(HTTPTestServer.Response)
}

extension OriginConnection {
    /// Returns the response, and whether a part of the body was left unread.
    func receive(
        _ request: inout HTTPTestServer.RecordedRequest, _ receiver: any OriginReceiver
    ) async throws(Ending) -> (HTTPTestServer.Response, leavesBody: Bool) {
        defer { receiver.end() }
        if let answer = try await take(receiver.begin()) { return try early(answer) }
        try await expectation(request)
        try await applyFaults(.requestBody(after: 0)) { $0.isRequestBody(upTo: 0) }
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
                try await applyFaults(.requestBody(after: read)) { $0.isRequestBody(upTo: read) }
            case .end(let trailers):
                request.trailers = trailers
                return (try await take(await receiver.finish()) ?? .status(.noContent), false)
            default: throw .close
            }
        }
    }

    /// Prepares a response that did not wait for the end of the request.
    private func early(_ answer: HTTPTestServer.Response) throws(Ending) -> (HTTPTestServer.Response, leavesBody: Bool)
    {
        // For a request without content, or with all of it received, only the end event is missing.
        if codec.remainingLength == 0 { _ = try event() }
        guard !codec.isReceiveComplete else { return (answer, false) }
        // Later requests on this connection would be lost, so the client is told that it closes (RFC 9112 §9.6).
        var answer = answer
        answer.headers[.connection] = "close"
        return (answer, true)
    }

    private func take(_ steps: [OriginStep]) async throws(Ending) -> HTTPTestServer.Response? {
        for step in steps {
            switch step {
            case .interim(let interim): try await sendInterim(interim)
            case .fault(let effect): try await inject(HTTPTestServer.Fault(.requestHead, effect))
            case .answer(let answer): return answer
            }
        }
        return nil
    }
}
