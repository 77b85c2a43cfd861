// SPDX-License-Identifier: Apache-2.0

// Loads without a handle, such as `Session.data(for:)`, which run in their caller's task.

import FoundationEssentials

extension Load {
    /// Begins a load without a handle: registers it with its session, and starts its resource timeout.
    @inline(never)
    static func begin(
        _ core: Core, _ request: Request, _ decisions: Decisions?, consumer: BodyConsumer,
        telling listener: (any LoadListener)? = nil
    ) throws(LoadError) -> Load {
        let context = LoadContext(
            core, request, decisions, consumer: consumer, owner: LoadOwner(isObserved: listener != nil))
        if let listener { context.emitter?.setListener(listener) }
        context.handle.startClock()
        guard core.registry.enter(context.handle) else { throw .sessionInvalidated(request.url) }
        return Load(context: context)
    }

    /// Runs the load to its end and collects the body.
    /// - Returns: the exchange. The caller reads its `response` after the wait, because every frame that awaits a
    ///   `Response` reserves room for one.
    func collect(_ request: Request, into data: inout Data) async -> Swift.Result<any Exchange, LoadError> {
        do throws(LoadError) {
            let exchange = try await run(request).body(for: context)
            try await collect(exchange, into: &data)
            context.end(nil)
            return .success(exchange)
        } catch {
            let error = context.handle.worded(error)
            context.end(error)
            return .failure(error)
        }
    }

    /// Collects a body in the load's own task: bytes that have already arrived are taken without a wait.
    @inline(never)
    private func collect(_ exchange: any Exchange, into data: inout Data) async throws(LoadError) {
        do throws(LoadError) {
            while try !takeBuffered(exchange, into: &data) { try await exchange.fill(atMost: .max) }
        } catch {
            throw exchange.failed(error)
        }
        exchange.release()
    }

    /// Takes what has arrived. Returns whether the body has ended. Not inlined: an async function keeps in its frame
    /// what it calls in place.
    @inline(never)
    private func takeBuffered(_ exchange: any Exchange, into data: inout Data) throws(LoadError) -> Bool {
        while true {
            switch try exchange.buffered(atMost: .max) {
            case .chunk(let chunk)?:
                let limit = context.core.configuration.limits.collectedBodySize
                try data.collect(chunk, exchange.expectedLength, limit)
                context.received(chunk.count)
            case .end?: return true
            case nil: return false
            }
        }
    }

    /// Runs the load to the head of the response, off the caller's actor. `finish` must follow, even after an error.
    @concurrent func head(_ request: Request) async throws(LoadError) -> ScopedBody {
        do throws(LoadError) {
            return ScopedBody(try await run(request).body(for: context))
        } catch {
            throw context.handle.worded(error)
        }
    }

    func finish(_ body: ScopedBody?, _ error: LoadError?) {
        if body?.close() ?? true { context.end(error) }
    }
}

extension Data {
    /// Appends a chunk of a body of at most `limit` bytes. The first chunk reserves capacity for the announced length,
    /// up to 4 MiB.
    fileprivate mutating func collect(_ chunk: Chunk, _ expectedLength: Int64?, _ limit: Int) throws(LoadError) {
        guard chunk.count <= limit - count else { throw .tooLarge(limit) }
        if isEmpty {
            let expected = Int(Swift.min(expectedLength ?? 0, Int64(limit), 4 << 20))
            guard expected > chunk.count else {
                self = Data(chunk)
                return
            }
            reserveCapacity(expected)
        }
        append(chunk)
    }
}

extension Load.Result {
    /// The exchange, for a consumer that takes the body and nothing else; its observers are notified of the response.
    @inline(never)
    func body(for context: LoadContext) throws(LoadError) -> any Exchange {
        switch disposition {
        case .allow, .cancel: break
        case .becomeDownload: throw exchange.failed(.notADataTask)
        case .becomeStream: throw exchange.failed(.notAStream)
        }
        context.emit(.responded(exchange.response))
        return exchange
    }
}

extension LoadError {
    static var notADataTask: LoadError {
        LoadError(.badDecision, phase: .deciding, party: .local, detail: "only a data task can become a download")
    }

    static var notAStream: LoadError {
        LoadError(
            .badDecision, phase: .deciding, party: .local, detail: "only a data task of http can become a stream")
    }
}
