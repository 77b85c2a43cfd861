// Transactions that no connection takes part in: files, data URLs, and what handlers answer themselves. What
// a handler has others answer is theirs.

extension EventEmitter {
    /// What is stored answers.
    func beginCached(_ request: Request) -> TransactionRecord { TransactionRecord(request, .cache) }

    /// Somebody is about to be asked; nobody knows yet who answers.
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

    /// A failure that a transaction with a server was part of is told by that.
    func failedLocally(_ error: LoadError) {
        guard error.phase != .preparing, transactionCount == countBefore else {
            local = nil
            return
        }
        endLocal(error)
    }

    /// It is over: with the hop, or with the load.
    func endLocal(_ error: LoadError?) {
        guard let record = local else { return }
        local = nil
        add(record, error)
        if error == nil { record.mark(.responseEnd, at: record[.end]) }
    }
}
