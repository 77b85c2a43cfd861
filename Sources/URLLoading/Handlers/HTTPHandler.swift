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
        let core = load.core
        let request = hop.request
        do throws(LoadError) {
            let prepared = try PreparedRequest(request, core.defaultFields, isForeign: hop.isForeign)
            var retries = RetryPlan(request)
            while true {
                let connection = try await core.pool.lease(prepared.destination.route, load, fresh: retries.wantsFresh)
                let exchange = HTTPExchange(connection, load, request.url)
                do throws(LoadError) {
                    load.emission?.begin(request)
                    try await exchange.start(prepared)
                    return exchange
                } catch {
                    let isStale = exchange.failedStale
                    exchange.release()
                    guard retries.retry(after: error, isStale: isStale) else { throw error }
                }
            }
        } catch {
            throw error.at(request.url)
        }
    }
}
