// SPDX-License-Identifier: Apache-2.0

// Sends a request in steps that never block. The task that waits for the response can also perform them, because a
// response may begin before the request has ended.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// The part of a request that has not been written.
struct HTTP1Sending {
    /// Framing, and the small body pieces between it.
    var output: [UInt8] = []
    var outputSent = 0
    /// Bytes of the body in `output`, reported as sent when all of it is written.
    var unreported = 0
    var body: OutgoingBodyReader?
    /// Bytes at the front of the body that are framed and not yet written.
    var framed = 0
    /// The length of the whole body in bytes; nil if it is not known.
    var length: Int64?
    /// The body waits for a 100 (RFC 9110 §10.1.1).
    var expectsContinue = false
    /// What a write that the socket has refused waits for.
    var blockedOn = PollSlot.Interest.write
    /// The transport cannot send files directly: they are read into memory.
    var copiesFiles = false

    /// Written since the task last waited, in bytes.
    var writtenSinceWait = 0

    /// The body has chunk framing (RFC 9112 §7.1).
    var isChunked = false
    var isUnfinished: Bool { body != nil || outputSent < output.count }

    /// Releases large buffers before the connection becomes idle.
    mutating func releaseBuffer(keeping capacity: Int) {
        if output.capacity > capacity { output = [] }
    }

    mutating func end() {
        body?.abandon()
        body = nil
        output.removeAll(keepingCapacity: true)
        (outputSent, unreported, framed, expectsContinue) = (0, 0, 0, false)
    }

    /// Bytes at the front of the body were written.
    mutating func advance(_ count: Int) {
        body?.advance(count)
        framed -= count
    }
}

extension HTTP1Connection {
    /// A body up to this size goes out together with its head, and a chunk together with its framing. A copy costs less
    /// than the writes and packets that it saves; larger ones are written where they lie.
    private static let smallBody = 64 * 1024
    /// The bytes written without a wait after which the task yields: a peer may be faster than the body is made.
    private static let sendingTurn = 4 << 20
    /// The part of a file that should be in memory at a time, in bytes.
    private static let window = 1 << 20
    private static let filePiece = 256 * 1024

    /// Writes as much of the request as possible without waiting. Returns true if all of it was written.
    func begin(_ request: PreparedRequest, _ client: any ConnectionClient) throws(LoadError) -> Bool {
        if let forwarder {
            let forwarded = request.forwarded(by: forwarder)
            proxyProof = forwarded.proxyProof
            return try begin(written: forwarded, client)
        }
        return try begin(written: request, client)
    }

    private func begin(written request: PreparedRequest, _ client: any ConnectionClient) throws(LoadError) -> Bool {
        do throws(WireViolation) { try state.begin() } catch { throw LoadError(error, .sending) }
        endGathering()
        sending.end()
        sending.length = request.body.map(\.length) ?? 0
        sending.isChunked = request.framing == .chunked
        traffic = HTTP1Traffic()
        try write { codec, output throws(WireViolation) in
            let (method, target) = (request.request.method, request.destination.target)
            switch request.fields {
            case .defaults(let fields) where !request.isForwarded:
                try codec.sendRequest(method, to: target, fields, framing: request.framing, into: &output)
            case .defaults(let fields):
                try codec.sendRequest(
                    method: method, target: request.targetForm, host: target.hostField, headers: fields.headers,
                    framing: request.framing, into: &output)
            case .own(let headers):
                try codec.sendRequest(
                    method: method, target: request.targetForm, host: target.hostField, headers: headers,
                    framing: request.framing, into: &output)
            }
        }
        traffic.headSize = sending.output.count
        if let body = request.body {
            let slot = transport.slot
            // The slot may have another user by then, which checks its own condition and waits again.
            sending.body = OutgoingBodyReader(body, for: client.handle) { slot.wake() }
            sending.expectsContinue = request.expectsContinue
            if !sending.expectsContinue, case .data(let data) = body, data.count <= Self.smallBody {
                if !data.isEmpty { try append(data.count) }
                try end(Headers())
            }
        }
        guard sending.body == nil, tap == nil else { return false }
        return try flush(client) == nil
    }

    /// Sends until the request is complete, or the peer has begun to respond.
    func send(_ client: any ConnectionClient) async throws(LoadError) {
        if sending.expectsContinue, try await !mayContinue(client) { return cut() }
        while sending.isUnfinished, !state.hasFinalHead { try await continueSending(client) }
        // A server that rejects the request does not need the rest of the body (RFC 9110 §15); one that accepts may
        // respond while it reads.
        if let status = state.earlyStatus, status.kind != .successful { cut() }
    }

    /// Sends as much as possible, then waits until more can be sent.
    /// - Parameter wakesForReads: whether input ends the wait as well.
    func continueSending(_ client: any ConnectionClient, wakingForReads wakesForReads: Bool = true)
        async throws(LoadError)
    {
        if client.isSuspended { await pause(client) }
        if let reason = client.stopReason {
            throw LoadError(reason, phase: state.phase == .receiving ? .receiving : .sending)
        }
        let step = try step(client)
        sending.writtenSinceWait = 0
        switch step {
        case .proceed: break
        case .yields: await Task.yield()
        case .blocked(let interest):
            if try await answerQuestion(client) { return }
            if wakesForReads, try !listen(client) { return }
            defer { transport.slot.wakeWriterForReads(false) }
            await Poller.shared.park(transport.slot, interest, client.handle)
        case .waitsForPiece:
            if wakesForReads, try !listen(client) { return }
            if try await answerQuestion(client) { return transport.slot.wakeWriterForReads(false) }
            defer { transport.slot.wakeWriterForReads(false) }
            // The caller is slow, not the peer: the idle timeout does not run.
            await Poller.shared.parkUntimed(transport.slot, client.handle)
        case .wantsFile(let reader, let offset, let count):
            let chunk = try await OutgoingBodyReader.read(reader, offset, count: count, for: client.handle)
            try sending.body?.loaded(chunk)
        }
    }

    /// Stops sending; the rest of the request is discarded.
    func stopSending() {
        if sending.isUnfinished { cut() }
    }

    private func cut() {
        state.endUse()
        sending.end()
    }

    /// Lets input end the wait for writing. Returns false if there is input already.
    private func listen(_ client: any ConnectionClient) throws(LoadError) -> Bool {
        transport.slot.wakeWriterForReads(true)
        guard transport.hasPendingInput(askingKernel: false) else { return true }
        if !state.hasFinalHead, try !hasAnswer(client) { return true }
        transport.slot.wakeWriterForReads(false)
        return false
    }

    /// Waits for a 100 (Continue), up to the timeout: many servers never send it.
    private func mayContinue(_ client: any ConnectionClient) async throws(LoadError) -> Bool {
        sending.expectsContinue = false
        let deadline = client.clock.now() &+ LoadHandle.nanoseconds(expectContinueTimeout)
        client.clock.schedule(transport.slot, at: deadline)
        while true {
            if client.isSuspended { await pause(client) }
            if let reason = client.stopReason { throw LoadError(reason, phase: .waiting) }
            if let interest = try flush(client) {
                if try await answerQuestion(client) { continue }
                await Poller.shared.park(transport.slot, interest, client.handle)
                continue
            }
            if let sendsBody = try hasContinue(client) { return sendsBody }
            if try await answerQuestion(client) { continue }
            guard client.clock.now() < deadline else { return true }
            await Poller.shared.park(transport.slot, .read, client.handle)
        }
    }

    // MARK: Steps

    private enum Step {
        case proceed
        case yields
        case blocked(PollSlot.Interest)
        case waitsForPiece
        /// A piece of a file that must be read into memory first.
        case wantsFile(FileReader, Int64, Int)
    }

    private func step(_ client: any ConnectionClient) throws(LoadError) -> Step {
        while !client.isSuspended, client.stopReason == nil {
            if let interest = try flush(client) { return .blocked(interest) }
            let isTurnOver = sending.writtenSinceWait >= Self.sendingTurn
            if sending.framed > 0 {
                guard !isTurnOver else { return .yields }
                guard try sent(writeFramed(), client, { $0.advance($1) }) else { return blocked }
                guard sending.body != nil, sending.framed == 0 else { continue }
                try write { codec, output throws(WireViolation) in codec.sendDataEnd(into: &output) }
                continue
            }
            switch try sending.body?.nextPart() {
            case nil:
                if let record, state.use != .last, !record.has(.requestEnd) { record.mark(.requestEnd) }
                return .proceed
            // Not at the end of the body, which a complete response would turn into a request that was cut short.
            case .bytes where isTurnOver, .file where isTurnOver: return .yields
            case .bytes(let count) where count <= Self.smallBody && sending.isChunked: try append(count)
            case .bytes(let count):
                try write { codec, output throws(WireViolation) in try codec.sendData(count: count, into: &output) }
                sending.framed = count
            case .file(let reader, let offset, let count):
                if let step = try sendFile(reader, offset, count, client) { return step }
            case .pending: return .waitsForPiece
            case .end(let trailers): try end(trailers)
            }
        }
        return .proceed
    }

    private var blocked: Step { .blocked(sending.blockedOn) }

    private func writeFramed() -> Result<Progress, IOFailure> {
        let count = sending.framed
        return sending.body?.withBytes { write(UnsafeRawBufferPointer(rebasing: $0[..<count])) } ?? .success(.moved(0))
    }

    /// Appends the next bytes of the body to the output, so that small pieces are written together with the framing.
    private func append(_ count: Int) throws(LoadError) {
        guard let body = sending.body else { return }
        try write { codec, output throws(WireViolation) in
            try codec.sendData(count: count, into: &output)
            body.withBytes { output.append(contentsOf: $0) }
            codec.sendDataEnd(into: &output)
        }
        sending.unreported += count
        sending.body?.advance(count)
    }

    /// Sends bytes of a file. Returns nil if the sending can continue.
    private func sendFile(
        _ reader: FileReader, _ offset: Int64, _ left: Int64, _ client: any ConnectionClient
    ) throws(LoadError) -> Step? {
        let wanted = Int(min(left, Int64(Self.filePiece)))
        // Chunk framing states the size of a chunk before its bytes, so a chunk is read first.
        guard !sending.copiesFiles, !sending.isChunked, tap == nil else {
            return try sending.body?.loadNow(reader, offset, count: wanted) == false
                ? .wantsFile(reader, offset, wanted) : nil
        }
        let count = Int(min(left, Int64(Self.window)))
        guard reader.isInPageCache(offset, count: count) else { return .wantsFile(reader, offset, wanted) }
        let outcome = Result { () throws(IOFailure) in try transport.sendFile(reader, at: offset, count: count) }
        switch outcome {
        case .success(nil): sending.copiesFiles = true
        case .success(.end?): if let body = sending.body { throw body.fileChanged }
        case .success(let progress?):
            guard try sent(.success(progress), client, { $0.body?.advance($1) }) else { return blocked }
            // Without chunk framing the codec only counts the bytes.
            guard case .moved(let moved) = progress, moved > 0, sending.body != nil else { return nil }
            try write { codec, output throws(WireViolation) in try codec.sendData(count: moved, into: &output) }
        case .failure(let failure): _ = try sent(.failure(failure), client) { _, _ in }
        }
        return nil
    }

    private func end(_ trailers: Headers) throws(LoadError) {
        sending.body = nil
        try write { codec, output throws(WireViolation) in try codec.sendEnd(trailers: trailers, into: &output) }
    }

    // MARK: Bytes

    private func write(
        _ change: (inout HTTP1Codec, inout [UInt8]) throws(WireViolation) -> Void
    ) throws(LoadError) {
        do throws(WireViolation) { try change(&state.codec, &sending.output) } catch {
            throw LoadError(error, .sending)
        }
    }

    /// Writes `output`; returns the event to wait for if the socket would block.
    private func flush(_ client: any ConnectionClient) throws(LoadError) -> PollSlot.Interest? {
        while sending.outputSent < sending.output.count {
            let outcome = sending.output.withUnsafeBytes {
                write(UnsafeRawBufferPointer(rebasing: $0[sending.outputSent...]))
            }
            guard try sent(outcome, client, isBody: false, { $0.outputSent += $1 }) else { return sending.blockedOn }
        }
        guard !sending.output.isEmpty else { return nil }
        sending.output.removeAll(keepingCapacity: true)
        sending.outputSent = 0
        if sending.unreported > 0 {
            traffic.content += Int64(sending.unreported)
            client.sent(TransferProgress(count: sending.unreported, total: traffic.content, expected: sending.length))
        }
        sending.unreported = 0
        return nil
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> Result<Progress, IOFailure> {
        let outcome = Result { () throws(IOFailure) in try transport.write(bytes) }
        if let tap, case .success(.moved(let moved)) = outcome {
            tap(.sent([UInt8](bytes[..<moved]), connection: identifier))
        }
        return outcome
    }

    /// Returns whether the peer sent a response before a write failed.
    /// - Throws: a failure that says more than that of the write: a TLS alert is the peer's reason to have closed the
    ///   connection, such as a client certificate that it does not accept.
    private func hasAnswer(_ client: any ConnectionClient, despite loss: LoadError) throws(LoadError) -> Bool {
        do throws(LoadError) { return try hasAnswer(client) } catch {
            throw error.reason == .connectionLost || error.reason == .truncated ? loss : error
        }
    }

    /// Records a write. Returns false if the socket would block.
    private func sent(
        _ outcome: Result<Progress, IOFailure>, _ client: any ConnectionClient, isBody: Bool = true,
        _ note: (inout HTTP1Sending, Int) -> Void
    ) throws(LoadError) -> Bool {
        switch outcome {
        case .success(.moved(let moved)):
            note(&sending, moved)
            sending.writtenSinceWait += moved
            traffic.sent += Int64(moved)
            if isBody, moved > 0 {
                traffic.content += Int64(moved)
                client.sent(TransferProgress(count: moved, total: traffic.content, expected: sending.length))
            }
            return true
        case .success(.blocked(let interest)):
            sending.blockedOn = interest
            return false
        case .success(.end): throw LoadError(.connectionLost, phase: .sending, party: .remote)
        case .failure(let failure):
            // A peer that rejects the rest of a body may have sent its response before it closed the connection.
            if !state.hasFinalHead, try !hasAnswer(client, despite: LoadError(failure)) { throw LoadError(failure) }
            cut()
            return true
        }
    }
}
