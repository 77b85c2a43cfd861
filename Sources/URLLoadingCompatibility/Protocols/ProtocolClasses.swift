// SPDX-License-Identifier: Apache-2.0

// The program's `URLProtocol` classes as handlers of the core: the class that accepts a request, and the object that
// loads it.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// The globally registered classes. The core does not call the handler while there are none.
enum ProtocolClasses {
    private struct State: Sendable {
        var kinds: [URLProtocol.Type] = []
        var registration: ProtocolHandlers.Registration?
    }
    private static let state = Lock(State())

    static func register(_ kind: URLProtocol.Type) {
        state.withLock { state in
            state.kinds.append(kind)
            if state.registration == nil { state.registration = ProtocolHandlers.register(ClassHandler { inOrder }) }
        }
    }

    static func unregister(_ kind: URLProtocol.Type) {
        state.withLock { state in
            state.kinds.removeAll { $0 == kind }
            guard state.kinds.isEmpty else { return }
            state.registration?.cancel()
            state.registration = nil
        }
    }

    static var isEmpty: Bool { state.withLock { $0.kinds.isEmpty } }
    static var inOrder: [URLProtocol.Type] { state.withLock { $0.kinds.reversed() } }
}

struct ClassHandler: ProgramHandler {
    let kinds: @Sendable () -> [URLProtocol.Type]

    func canHandle(_ request: Request) -> Bool { choice(for: request) != nil }

    func canonical(_ request: Request) -> Request? {
        guard let choice = choice(for: request) else { return nil }
        let canonical = choice.kind.canonicalRequest(for: choice.asked)
        guard canonical != choice.asked,
            case .success(var made) = Request.make(canonical, choice.bridge.cachePolicy)
        else { return nil }
        // The core's request is kept where it holds more than the classic one, such as a body from a file.
        if canonical.httpBody == choice.asked.httpBody, canonical.httpBodyStream === choice.asked.httpBodyStream {
            made.body = request.body
        }
        choice.bridge.mark(&made)
        choice.bridge.state.withLock { state in
            state.current = canonical
            state.offerStream(of: canonical, insteadOf: choice.asked)
        }
        return made
    }

    func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
        guard let choice = await BlockingThreads.programs.call(.never, { choice(for: request) }) ?? nil else {
            throw URLError.described(.unsupportedURL)
        }
        var asked = choice.asked
        if request.body?.isDemanded == true {
            do { asked.httpBodyStream = try await choice.bridge.nextStream() } catch is NoFurtherBody {
                throw ProtocolFailure(URLError.described(.requestBodyStreamExhausted))
            }
        }
        let cached = await choice.bridge.cachedResponse(for: asked)
        let run = ProtocolRun(choice.bridge, choice.kind, asked, choice.task, cached)
        return try await withTaskCancellationHandler {
            try await run.answer()
        } onCancel: {
            run.stop()
        }
    }

    private struct Choice: Sendable {
        let bridge: TaskBridge
        let kind: URLProtocol.Type
        let asked: URLRequest
        let task: URLSessionTask
    }

    /// Returns the class for a request. Only loads with a task of this API are offered to the classes; the core's own
    /// loads have no task.
    private func choice(for request: Request) -> Choice? {
        guard let bridge = request.properties[ClassicTask.self]?.bridge, let task = bridge.state.withLock({ $0.task })
        else { return nil }
        let asked = bridge.asked(request)
        let kind = ProtocolRun.$asked.withValue(asked) { kinds().first { $0.canInit(with: task) } }
        return kind.map { Choice(bridge: bridge, kind: $0, asked: asked, task: task) }
    }
}

extension TaskBridge {
    /// Attaches the task to the request, so that the classes asked about it find their task.
    func mark(_ request: inout Request) { request.properties[ClassicTask.self] = ClassicTask.Value(bridge: self) }

    /// Returns the classic form of a core request, with all fields that would be sent.
    func asked(_ request: Request) -> URLRequest {
        let (session, current) = state.withLock { ($0.session, $0.current) }
        var asked = URLRequest(request, like: current)
        for (name, value) in session?.additionalHeaders ?? [:] {
            let name = "\(name.base)"
            if asked.value(forHTTPHeaderField: name) == nil { asked.setValue("\(value)", forHTTPHeaderField: name) }
        }
        if let data = request.body?.heldData {
            asked.httpBody = data
        } else if let file = request.body?.file {
            asked.httpBodyStream = InputStream(url: file)
        }
        return asked
    }

    func cachedResponse(for request: URLRequest) async -> CachedURLResponse? {
        guard let cache = state.withLock({ $0.session })?.cache else { return nil }
        return await BlockingThreads.programs.call(.never) { cache.cachedResponse(for: request) } ?? nil
    }
}

extension URLSession {
    /// Whether requests must carry their task, because a cache or a ``URLProtocol`` of the program is asked about them.
    final var marksRequests: Bool { ownCache != nil || !values.protocolClasses.isEmpty || !ProtocolClasses.isEmpty }
}
