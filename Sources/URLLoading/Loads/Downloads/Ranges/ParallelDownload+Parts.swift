// SPDX-License-Identifier: Apache-2.0

// One part: its request, the check of its response, and its bytes on their way into the file.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

extension ParallelDownload {
    /// Loads a part: from its response, if there is one, or by a request.
    func load(
        _ part: RangePlan.Part, _ given: (any Exchange)?, _ context: LoadContext, _ requests: Requests
    ) async -> Outcome {
        var hasMoved = false
        do throws(LoadError) {
            let exchange: any Exchange
            if let given {
                exchange = given
            } else {
                if let refusal = try await waitForServer(context) { return .refused(refusal, nil) }
                var hop = requests.hop
                validator.addCondition(to: &hop.request.headers, from: part.begin, upTo: part.range.upperBound)
                exchange = try await Load(context: context).answer(again: hop)
                if let refusal = refusal(of: exchange, part.range) {
                    exchange.release()
                    return refusal
                }
            }
            defer { exchange.release() }
            if given == nil {
                let isWanted = state.withLock { state in
                    state.plan.confirm(part.id, reach: part.range.upperBound, now: clock.now())
                }
                guard isWanted else { return .done }
            }
            while true {
                let received = await receive(exchange, part.id, context)
                if received.count > 0 {
                    hasMoved = true
                    try await report(received.count, requests)
                }
                if let error = received.error { throw error }
                if received.isEnd { return .done }
                guard received.count == 0, try await !report(0, requests) else { continue }
                if let reason = context.stopReason { throw LoadError(reason, phase: .receiving) }
                let missing = state.withLock { $0.plan.part(part.id)?.missing ?? 0 }
                try await exchange.fill(atMost: missing > 0 ? Int(clamping: missing) : .max)
            }
        } catch {
            return .failed(error.at(requests.hop.request.url), hasMoved: hasMoved)
        }
    }

    /// Waits as long as a server has asked for.
    /// - Returns: its refusal, if that is longer than the policy permits.
    private func waitForServer(_ context: LoadContext) async throws(LoadError) -> LoadError? {
        let (moment, refused) = state.withLock { ($0.notBefore, $0.refused) }
        let wait = moment - clock.now()
        guard wait > 0 else { return nil }
        let policy = context.original.retryPolicy ?? context.core.configuration.retries.policy ?? RetryPolicy()
        if let refused, wait > LoadHandle.nanoseconds(policy.maximumRetryAfter) { return refused }
        do throws(IOFailure) { try await clock.sleep(until: moment, context.handle) } catch {
            throw LoadError(error, .waiting)
        }
        return nil
    }

    /// Why a response is not the requested part; `nil` if it is. Nothing of a refused response is written.
    private func refusal(of exchange: any Exchange, _ wanted: Range<Int64>) -> Outcome? {
        guard let head = exchange.head else {
            return .refused(
                LoadError(refusing: exchange.response, .resumeMismatch, "the response is no part"), nil)
        }
        if ResumePlan.isPart(head, wanted, length: length, validator: validator) { return nil }
        let error: LoadError
        switch head.status {
        case .ok, .partialContent:
            error = LoadError(
                refusing: exchange.response, .resumeMismatch,
                "a part of the file is of another version or another range, or the server sends no parts")
        default: error = LoadError(refusing: exchange.response, .unacceptableStatus, head.status.description)
        }
        return .refused(error, head)
    }

    /// The time, in nanoseconds, for which a server asks not to be asked (Retry-After, RFC 9110 §10.2.3).
    static func wait(asked head: HTTPHead) -> Int64? {
        guard head.status == .tooManyRequests || head.status == .serviceUnavailable,
            let text = head.headers[.retryAfter]
        else { return nil }
        let date = HTTPDate(secondsSince1970: Int64(Date.now.timeIntervalSince1970))
        guard let after = RetryAfter(text, now: date) else { return nil }
        let seconds = after.seconds(after: head.headers[.date].flatMap { HTTPDate($0, now: date) } ?? date)
        return min(max(seconds, 0), 3600) * 1_000_000_000
    }

    /// The result of one visit to the blocking thread.
    private struct Received: Sendable {
        var count = 0
        var isEnd = false
        var error: LoadError?
    }
    /// The journal is written after so many bytes: they are lost when the process is killed before.
    private static let maximumPerTurn = 1 << 20

    /// Writes the received bytes of a part, and what arrives meanwhile, as `DownloadWork.receive` does.
    private func receive(_ exchange: any Exchange, _ id: Int, _ context: LoadContext) async -> Received {
        let received = await BlockingThreads.files.call(.never) { [self] () -> Received in
            var received = Received()
            do {
                try take(exchange, id, context, &received)
            } catch let error as IOFailure {
                received.error = unwritable(error)
            } catch {
                received.error = error as? LoadError
            }
            guard received.count > 0 else { return received }
            do throws(IOFailure) {
                try ranges.wrote(state.withLock { $0.plan.written.ranges }, now: clock.coarseNow())
            } catch {
                received.error = unwritable(error)
            }
            return received
        }
        return received ?? Received(error: LoadError(.cancelled, phase: .receiving, party: .local))
    }

    private func take(
        _ exchange: any Exchange, _ id: Int, _ context: LoadContext, _ received: inout Received
    ) throws {
        while received.count < Self.maximumPerTurn, context.stopReason == nil {
            guard let part = state.withLock({ $0.plan.part(id) }) else {
                received.isEnd = true
                return
            }
            if part.missing == 0, part.isCut {
                if state.withLock({ $0.plan.extend(id) }) { continue }
                received.isEnd = true
                return
            }
            switch try exchange.buffered(atMost: part.missing == 0 ? .max : Int(clamping: part.missing)) {
            case .chunk(let piece)?:
                guard part.missing > 0 else {
                    throw LoadError(
                        .rangeNotSatisfiable, phase: .receiving, party: .remote,
                        detail: "more bytes than its Content-Range says")
                }
                let count = try write(piece, id)
                received.count += count
                // The part was split in this moment: the response goes on with bytes of another part.
                if count < piece.count {
                    received.isEnd = true
                    return
                }
            case .end?:
                guard part.missing == 0 else {
                    throw LoadError(
                        .truncated, phase: .receiving, party: .remote, detail: "fewer bytes than its Content-Range says"
                    )
                }
                received.isEnd = true
                return
            case nil: if try !exchange.fillNow() { return }
            }
        }
    }

    /// Writes a piece at the place of the part.
    /// - Returns: the number of bytes that the part, or what it could be extended by, had room for.
    private func write(_ piece: Chunk, _ id: Int) throws(IOFailure) -> Int {
        let bytes = piece.storage.bytes(piece.range)
        var count = 0
        while count < piece.count {
            let place = state.withLock { state in
                let place = state.plan.claim(id, piece.count - count)
                return place.isEmpty && state.plan.extend(id) ? state.plan.claim(id, piece.count - count) : place
            }
            guard !place.isEmpty else { break }
            let claimed = UnsafeRawBufferPointer(rebasing: bytes[count..<count + place.count])
            try writing.withLock { (_) throws(IOFailure) in try file.write(claimed, at: place.lowerBound) }
            state.withLock { state in
                state.plan.wrote(id, upTo: place.upperBound, now: clock.coarseNow())
                state.stalls = 0
            }
            count += place.count
        }
        return count
    }

    // MARK: Reporting

    /// Reports received bytes, and those of other workers that came during an earlier report: events have one emitter
    /// at a time. The worker that has reported reads on before it reports again, and asks once more before it waits, so
    /// that no bytes stay unreported.
    /// - Returns: whether anything was reported.
    @discardableResult
    func report(_ count: Int, _ requests: Requests) async throws(LoadError) -> Bool {
        let all = state.withLock { state in
            state.unreported += count
            guard !state.isReporting, state.unreported > 0 else { return 0 }
            defer { (state.unreported, state.isReporting) = (0, true) }
            return state.unreported
        }
        guard all > 0 else { return false }
        let error = await requests.report(all)
        state.withLock { $0.isReporting = false }
        guard let error else { return true }
        fail(error)
        throw error
    }
}
