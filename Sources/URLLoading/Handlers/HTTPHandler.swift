// http and https: a request made ready, one exchange on a connection, sent again on a fresh connection
// if an idle one turned out to be stale.

import URLLoadingWire

struct HTTPHandler: DirectHandler {
    /// The last in the line: what it cannot load it refuses in its own words.
    func canHandle(_ request: Request) -> Bool { true }

    func exchange(_ hop: Load.Hop, for load: Load) async throws(LoadError) -> any Exchange {
        try await Self.exchange(hop, for: load)
    }

    static func exchange(_ hop: Load.Hop, for load: Load) async throws(LoadError) -> HTTPExchange {
        do throws(LoadError) {
            let prepared = try PreparedRequest(hop.request, load.core.defaultFields, isForeign: hop.isForeign)
            var retries = RetryPlan(hop.request)
            while true {
                let exchange = try await lease(prepared, for: load, fresh: retries.wantsFresh)
                guard let error = await failure(of: exchange, prepared) else { return exchange }
                let isStale = exchange.failedStale
                exchange.release()
                guard retries.retry(after: error, isStale: isStale) else { throw error }
            }
        } catch {
            throw error.at(hop.request.url)
        }
    }

    @inline(never)
    private static func lease(
        _ request: PreparedRequest, for load: Load, fresh: Bool
    ) async throws(LoadError) -> HTTPExchange {
        let pool = load.core.pool, configuration = load.core.configuration
        let access = NetworkAccess(request.request, configuration)
        let connection = try await pool.lease(request.destination.route, load, fresh: fresh, over: access)
        // One that was kept is judged by what holds now; a new one was, when it was made.
        if connection.exchanges > 0, let refusal = access.refusal(of: connection.transport, configuration.networkMonitor) {
            pool.giveBack(connection, reusable: connection.isReusable)
            throw refusal
        }
        load.emission?.begin(request.request)
        return HTTPExchange(connection, load, request.request.url)
    }

    /// Sends the request and waits for the head of its answer; `nil` if it came.
    @inline(never)
    private static func failure(of exchange: HTTPExchange, _ request: PreparedRequest) async -> LoadError? {
        do throws(LoadError) { try await exchange.start(request) } catch { return error }
        return nil
    }
}
