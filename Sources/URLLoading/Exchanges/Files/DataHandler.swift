// SPDX-License-Identifier: Apache-2.0

// Loads `data` URLs, which contain their own response (RFC 2397).

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

struct DataHandler: DirectHandler {
    func canHandle(_ request: Request) -> Bool { request.url.scheme?.lowercased() == "data" }

    func exchange(_ hop: Hop, for load: LoadContext) async throws(LoadError) -> any Exchange {
        let request = hop.request
        try request.requireReadMethod()
        guard let url = DataURL(request.url.absoluteString) else {
            throw LoadError(
                .badURL, phase: .preparing, party: .local, url: request.url, detail: "a data URL requires a comma")
        }
        guard let bytes = url.decoded else {
            throw LoadError(
                .contentDecodingFailed, phase: .decoding, party: .local, url: request.url, detail: "invalid base64")
        }
        let response = Response(url: request.url, mediaType: url.mediaType, expectedLength: Int64(bytes.count))
        return WholeExchange(response, request.method == .head ? Data() : bytes, load)
    }
}

extension DataURL {
    fileprivate var decoded: Data? {
        guard isBase64 else { return Data(payload) }
        return base64.flatMap { Data(base64Encoded: Data($0)) }
    }
}

extension Request {
    /// Throws for methods other than GET and HEAD and for requests with a body, on behalf of schemes without a server.
    func requireReadMethod() throws(LoadError) {
        guard method != .get && method != .head || body != nil else { return }
        throw LoadError(
            .badRequest, phase: .preparing, party: .local, url: url, detail: "GET and HEAD only, without a body")
    }
}

/// An exchange without a server: it has no fields, and nothing of it is stored in a cache.
protocol LocalExchange: Exchange {}

extension LocalExchange {
    var head: HTTPHead? { nil }
    var expectedLength: Int64? { response.expectedLength }
    var trailers: Headers { Headers() }
    func marks(for query: CacheQuery) -> AnswerMarks { AnswerMarks() }
}

/// An exchange whose body is completely in memory.
final class WholeExchange: LocalExchange {
    let response: Response
    private let owner: LoadContext
    private let rest: Lock<PendingChunk>

    init(_ response: Response, _ body: Data, _ load: LoadContext) {
        self.response = response
        owner = load
        rest = Lock(PendingChunk(chunk: body.isEmpty ? nil : body.withUnsafeBytes { Chunk(copying: $0) }))
    }

    var load: LoadContext? { owner }

    func buffered(atMost most: Int) -> BodyPiece? {
        rest.withLock { $0.chunk == nil ? .end : $0.take(atMost: most) }
    }

    func fill(atMost most: Int) async throws(LoadError) {}

    func release() { rest.withLock { $0.chunk = nil } }
}
