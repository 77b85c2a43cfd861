// SPDX-License-Identifier: Apache-2.0

// The body loaded by a `URLProtocol`, pulled by the load. It is also collected for the cache if the protocol and the
// delegate allow it.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingWire

struct ProtocolBody: AsyncSequence, Sendable {
    private let reader: Reader

    init(_ run: ProtocolRun, _ response: URLResponse, _ policy: URLCache.StoragePolicy) {
        reader = Reader(run, CollectedAnswer(run.bridge, response, policy))
    }

    func makeAsyncIterator() -> Iterator { Iterator(reader: reader) }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: Reader
        mutating func next() async throws -> Data? { try await reader.next() }
    }

    /// Iterates the body for one task at a time. Its deinitialization stops the protocol's load.
    fileprivate final class Reader: Sendable {
        private let run: ProtocolRun
        private let collected: Lock<CollectedAnswer?>

        init(_ run: ProtocolRun, _ collected: CollectedAnswer?) {
            self.run = run
            self.collected = Lock(collected)
        }

        deinit { run.stop() }

        func next() async throws -> Data? {
            while true {
                switch await run.next() {
                case .data(let data)?:
                    collected.withLock { if $0?.append(data) == false { $0 = nil } }
                    return data
                case .end?:
                    run.stop()
                    try await collected.withLock { $0 }?.keep()
                    return nil
                case .failure(let error)?:
                    run.stop()
                    throw ProtocolFailure(error)
                case .response?, .redirect?: break
                case nil: throw CancellationError()
                }
            }
        }
    }
}

/// A response being collected for the session's cache.
struct CollectedAnswer: Sendable {
    private let bridge: TaskBridge
    private let cache: URLCache
    private let task: URLSessionDataTask
    private let response: URLResponse
    private let policy: URLCache.StoragePolicy
    private var body = Data()

    /// Returns `nil` for a response that is not stored.
    init?(_ bridge: TaskBridge, _ response: URLResponse, _ policy: URLCache.StoragePolicy) {
        let (session, task, request) = bridge.state.withLock { ($0.session, $0.task, $0.current) }
        guard policy != .notAllowed, let cache = session?.cache, let task = task as? URLSessionDataTask,
            response is HTTPURLResponse,
            request.httpMethod == "GET", ["http", "https"].contains(request.url?.scheme?.lowercased())
        else { return nil }
        (self.bridge, self.cache, self.task, self.response, self.policy) = (bridge, cache, task, response, policy)
    }

    /// Appends a piece of the body. Returns false if the body has become too large to be stored.
    mutating func append(_ data: Data) -> Bool {
        body.append(data)
        return body.count <= cache.largestEntry
    }

    func keep() async throws {
        let proposed = CachedURLResponse(response: response, data: body, userInfo: nil, storagePolicy: policy)
        guard let kept = try await bridge.kept(proposed) else { return }
        _ = await BlockingThreads.programs.call(.never) { [cache, task] in cache.storeCachedResponse(kept, for: task) }
    }
}

extension URLResponse {
    /// Returns the core's form of a protocol's response, which carries the original object to the program. Fields that
    /// would make the core act by itself, such as a redirect's, are hidden from it.
    func core(answering request: URLRequest, isRedirect: Bool = false) -> Response {
        let url = self.url ?? request.url ?? URL(fileURLWithPath: "/")
        var head: HTTPHead?
        if let http = self as? HTTPURLResponse, let status = Status(http.statusCode),
            isRedirect || status.kind != .redirection
        {
            head = HTTPHead(status: status, headers: http.fields)
        }
        let length = expectedContentLength >= 0 ? expectedContentLength : nil
        var response = Response(
            url: url, mediaType: mimeType.flatMap { MediaType($0) }, expectedLength: length, http: head)
        response.properties[OwnResponse.self] = OwnResponse.Value(response: self)
        return response
    }
}

/// Carries the response object of a protocol.
enum OwnResponse: PropertyKey {
    struct Value: Sendable {
        let response: URLResponse
    }
}
