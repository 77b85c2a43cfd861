// SPDX-License-Identifier: Apache-2.0

// Transactions without a connection: files, data URLs, and responses that handlers create themselves. Requests that a
// handler forwards are transactions of their own.

extension EventEmitter {
    /// Begins the record of a cached response.
    func beginCached(_ request: Request) -> TransactionRecord { TransactionRecord(request, .cache) }

    /// Begins the record of a request whose source is not known yet.
    func beginLocal(_ request: Request) {
        endLocal(nil)
        local = TransactionRecord(request, .local)
        countBefore = transactionCount
    }

    func answeredLocally(_ exchange: any Exchange) {
        let isForeign =
            exchange.hasOwnRecord || exchange is FTPExchange || (exchange as? HandlerExchange)?.isForwarded == true
        guard !isForeign else {
            local = nil
            return
        }
        local?.response = exchange.response
        local?.mark(.responseStart)
    }

    /// Ends the local record with a failure, or drops it if a server's transaction already reports that failure.
    func failedLocally(_ error: LoadError) {
        guard error.phase != .preparing, transactionCount == countBefore else {
            local = nil
            return
        }
        endLocal(error)
    }

    /// Ends the local record, with the hop or with the load.
    func endLocal(_ error: LoadError?) {
        guard let record = local else { return }
        local = nil
        add(record, error)
        if error == nil { record.mark(.responseEnd, at: record[.end]) }
    }
}
