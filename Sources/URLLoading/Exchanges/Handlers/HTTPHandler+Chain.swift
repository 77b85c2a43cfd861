// SPDX-License-Identifier: Apache-2.0

// http and https in a chain of handlers: the cache, and the network behind it.

extension HTTPHandler: DirectHandler {
    /// The last handler: it accepts every request, and fails those with an unsupported scheme.
    func canHandle(_ request: Request) -> Bool { true }

    func exchange(_ hop: Hop, for load: LoadContext) async throws(LoadError) -> any Exchange {
        if let cache = load.core.cache { return try await CacheFetch.answer(hop, for: load, cache) }
        try CacheFetch.checkWithout(hop, load.core)
        return try await Self.exchange(hop, for: load)
    }
}
