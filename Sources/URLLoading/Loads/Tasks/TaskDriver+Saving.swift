// SPDX-License-Identifier: Apache-2.0

// Download tasks, which write the body to a file.

import Synchronization
import URLLoadingIO

extension TaskDriver {
    /// Saves the body of a response. The file is opened before the caller gets the response, with which it can ask for
    /// a resume token.
    @inline(never)
    func save(_ first: Load.Result, _ download: DownloadWork) async throws(LoadError) {
        let result = try await open(first, download)
        state.withLock { $0.respond(result.exchange.response) }.wake()
        try await save(result.exchange, result.hop, download)
    }

    /// Opens the download's file for the response; or for that to another request, if the first does not continue the
    /// partial file of an earlier process.
    private func open(_ first: Load.Result, _ download: DownloadWork) async throws(LoadError) -> Load.Result {
        var result = first
        while true {
            do throws(LoadError) {
                let continued = try await download.begin(result.exchange.response, original)
                announce(result.exchange)
                if let (offset, expected) = continued { context.emit(.resumed(offset: offset, expected: expected)) }
                return result
            } catch {
                guard download.startsAnew(after: error) else {
                    announce(result.exchange)
                    throw result.exchange.failed(error)
                }
                result.exchange.release()
                result = try await Load(context: context).run(original)
            }
        }
    }

    private func announce(_ exchange: any Exchange) {
        context.emit(.responded(exchange.response))
        if state.withLock({ $0.hasBecomeDownload }) { handOver() }
    }

    /// Writes the whole body to the file, over several connections if the task was suspended meanwhile.
    @inline(never)
    private func save(_ first: any Exchange, _ hop: Hop, _ download: DownloadWork) async throws(LoadError) {
        var exchange = first
        while true {
            do throws(LoadError) {
                if try await !writeParts(exchange, hop, download) { try await write(exchange, download) }
                let trailers = exchange.trailers
                exchange.release()
                try await download.finish(context.handle, trailers)
                return complete(.finished, trailers)
            } catch {
                let error = exchange.failed(error)
                if error.reason == .digestMismatch { context.forgetStored(hop.request) }
                guard let next = await continuation(after: error, hop, download) else { throw error }
                exchange = next
            }
        }
    }

    /// Saves the body in several parts at once. Returns false if it is to be saved as a whole.
    private func writeParts(
        _ exchange: any Exchange, _ hop: Hop, _ download: DownloadWork
    ) async throws(LoadError) -> Bool {
        guard download.mayHaveParts else { return false }
        return try await download.receiveParts(exchange, hop, context) {
            self.wasSuspended.exchange(false, ordering: .relaxed)
        }
    }

    func write(_ exchange: any Exchange, _ download: DownloadWork) async throws(LoadError) {
        while true {
            let saved = try await download.receive(exchange, context.handle)
            if saved.count > 0 {
                context.received(saved.count)
                try await download.keepToken()
            }
            if let error = saved.error { throw error }
            if saved.isEnd { return }
            guard saved.count == 0 else { continue }
            // A stopped load writes nothing more. Without this check, an exchange with buffered bytes would not wait in
            // `fill`, and the loop would spin.
            if let reason = stopReason { throw LoadError(reason, phase: .receiving) }
            try await exchange.fill(atMost: .max)
        }
    }

    /// Continues a download after a server closed the connection while the task was suspended: requests the missing
    /// range over another connection, with the validators of a resume token. Returns `nil` if the download cannot be
    /// continued.
    @inline(never)
    func continuation(after error: LoadError, _ hop: Hop, _ download: DownloadWork) async -> (any Exchange)? {
        var hop = hop
        guard wasSuspended.exchange(false, ordering: .relaxed),
            [.connectionLost, .truncated, .streamReset].contains(error.reason),
            let offset = download.prepareResumption(with: &hop.request)
        else { return nil }
        guard let exchange = try? await Load(context: context).answer(again: hop) else { return nil }
        guard download.isRemainder(exchange.response) else {
            exchange.release()
            return nil
        }
        context.emit(.resumed(offset: offset, expected: download.expected))
        return exchange
    }

    /// Hands the load over to a download task; it is the last event for the handle of the data task.
    func handOver() {
        let task = LoadTask<DownloadedFile>(self, nil)
        context.emit(.becameDownload(task))
    }
}
