// SPDX-License-Identifier: Apache-2.0

// Downloads in several parts at once: which of them are, and what their tokens say.

import Synchronization
import URLLoadingIO

extension DownloadWork {
    /// Divides what is missing into parts, if the caller wants that and the response permits it, or if an earlier
    /// download has left more than the beginning of the file. `nil` otherwise.
    @inline(never)
    private func divide(_ exchange: any Exchange, _ request: Request) -> ParallelDownload? {
        let wanted = options.parallelRanges
        return state.withLock { state in
            guard state.hasContent, let head = state.response?.http, let record = state.record, let file = state.file,
                let length = record.length, length <= options.maximumSize ?? .max, length <= FileRanges.maximumLength
            else { return nil }
            let ranges = wanted ?? ParallelRanges(1)
            let mustContinue = !state.held.isPrefix
            guard
                mustContinue
                    || wanted != nil && exchange.network != nil && ranges.count > 1
                        && (length - state.offset) / 2 >= ranges.minimumPartSize
            else { return nil }
            let parts = ParallelDownload(
                file, length: length, held: state.held, marks: record.marks, record.condition, ranges, clock)
            state.parts = parts
            state.digests = DownloadDigests(options.expectedDigest ?? request.expectedDigest, part: head)
            return parts
        }
    }

    /// Loads the file in several parts at once. Returns false if it is to be loaded as a whole.
    /// - Parameter wasSuspended: returns once whether the task was suspended since the last call.
    @inline(never)
    func receiveParts(
        _ exchange: any Exchange, _ hop: Hop, _ context: LoadContext, wasSuspended: @escaping @Sendable () -> Bool
    ) async throws(LoadError) -> Bool {
        guard let parts = divide(exchange, context.original) else { return false }
        do throws(LoadError) {
            let offset = state.withLock { $0.offset }
            try await parts.run(exchange, at: offset, hop, for: context, wasSuspended: wasSuspended) { count in
                context.received(count)
                do throws(LoadError) { try await self.keepToken() } catch { return error }
                return nil
            }
        } catch {
            // A server that contradicts itself may have sent anything.
            if [.rangeNotSatisfiable, .digestMismatch].contains(error.reason) {
                state.withLock { $0.forgetContent() }
            }
            throw error
        }
        state.withLock { $0.offset = parts.length }
        return true
    }

    /// Whether the file may be loaded in several parts at once.
    var mayHaveParts: Bool {
        options.parallelRanges != nil || (given != nil || resumeFile != nil) && state.withLock { !$0.held.isPrefix }
    }

    func stopParts(_ reason: StopReason) { state.withLock { $0.parts }?.stop(reason) }
    func suspendParts(_ isSuspended: Bool) { state.withLock { $0.parts }?.setSuspended(isSuspended) }

    /// The token of a download in several parts.
    func token(
        of parts: ParallelDownload, _ held: FileWriter, _ known: ResumeToken.Record, isEarly: Bool
    ) -> ResumeToken? {
        var record = known
        guard let total = try? parts.describe(&record), isEarly || total > 0 else { return nil }
        (record.path, record.bytes, record.isEarly, record.boot) = (held.path, nil, isEarly, SystemBoot.identity)
        return ResumeToken(record, held)
    }
}
