// Sending a request: steps that go as far as they can without waiting. So whoever waits for the answer
// can drive them as well: an answer may begin before the request has ended, and go on beside it.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// What of a request has not gone out yet.
struct HTTP1Sending {
    /// Framing, with small pieces of the body between.
    var output: [UInt8] = []
    var outputSent = 0
    /// Bytes of the body in `output`, told of when all of it is out.
    var unreported = 0
    /// Bytes that the body will have; `nil` if that is not known.
    var length: Int64?
    /// A large piece, sent from where it is.
    var piece: Chunk?
    var pieceSent = 0
    var body: OutgoingBody?
    var part = 0
    var partSent: Int64 = 0
    var pull: PiecePull?
    /// The body waits for a 100 (RFC 9110 §10.1.1).
    var expectsContinue = false
    /// The transport sends no files: they are read here.
    var copiesFiles = false

    var isGoingOn: Bool { body != nil || piece != nil || outputSent < output.count }

    /// Before the connection rests.
    mutating func rest(keeping capacity: Int) {
        if output.capacity > capacity { output = [] }
    }

    mutating func end() {
        pull?.abandon()
        (body, piece, pull) = (nil, nil, nil)
        output.removeAll(keepingCapacity: true)
        (outputSent, unreported, expectsContinue) = (0, 0, false)
    }
}

/// A piece of a caller's sequence that is on its way; it wakes the connection when it is there.
final class PiecePull: Sendable {
    private let race: Race<Result<Chunk?, any Error>>
    private let task: Task<Void, Never>

    convenience init(_ pieces: AnyChunkIterator, _ control: LoadControl, _ slot: PollSlot) {
        // The slot may be somebody else's by now: he looks, and waits on.
        self.init(pieces, control) { slot.wake() }
    }

    /// - Parameter wake: called when the piece is there.
    init(_ pieces: AnyChunkIterator, _ control: LoadControl, waking wake: @escaping @Sendable () -> Void) {
        let race = Race<Result<Chunk?, any Error>>(control.abandoned)
        self.race = race
        task = Task {
            let pulled: Result<Chunk?, any Error>
            do { pulled = .success(try await pieces.next()) } catch { pulled = .failure(error) }
            if race.finish(pulled) { wake() }
        }
    }

    /// `nil` while it is not there.
    func take() -> Result<Chunk?, any Error>? { race.takeAnswer() }

    func abandon() {
        if race.abandon() { task.cancel() }
    }
}

extension HTTP1Connection {
    /// A body up to this size goes out together with its head.
    private static let smallBody = 64 * 1024
    /// How much of a file is asked to be in memory at a time.
    private static let window = 1 << 20
    private static let filePiece = 256 * 1024

    /// Writes the request as far as it goes without waiting. Returns true if that was all of it.
    func begin(_ request: PreparedRequest, _ control: LoadControl) throws(LoadError) -> Bool {
        if let forwarder {
            let forwarded = request.forwarded(by: forwarder)
            proxyProof = forwarded.proxyProof
            return try begin(written: forwarded, control)
        }
        return try begin(written: request, control)
    }

    private func begin(written request: PreparedRequest, _ control: LoadControl) throws(LoadError) -> Bool {
        exchanges += 1
        hasReceived = false
        phase = .waiting
        answer = nil
        sending.end()
        sending.length = request.body.map(\.length) ?? 0
        traffic = HTTP1Traffic()
        try write { codec, output throws(WireViolation) in
            if exchanges > 1 { try codec.startNextExchange() }
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
            sending.body = body
            (sending.part, sending.partSent, sending.expectsContinue) = (0, 0, request.expectsContinue)
            if !sending.expectsContinue, case .data(let data) = body, data.count <= Self.smallBody { try append(data) }
        }
        guard sending.body == nil, tap == nil else { return false }
        return try flush(control) == nil
    }

    /// Sends until all has gone out, or the peer has begun to answer.
    func send(_ control: LoadControl) async throws(LoadError) {
        if sending.expectsContinue, try await !mayContinue(control) { return cut() }
        while sending.isGoingOn, answer == nil { try await sendOn(control) }
        // Who refuses wants no more of it (RFC 9110 §15); who accepts may answer while he reads.
        if let answer, answer.status.kind != .successful { cut() }
    }

    /// Sends what can be sent, then waits for whatever lets it go on.
    /// - Parameter hearsReads: something to read ends the wait.
    func sendOn(_ control: LoadControl, hearingReads hearsReads: Bool = true) async throws(LoadError) {
        if control.isSuspended { await pause(control) }
        if let reason = control.stopReason { throw LoadError(reason, phase: phase == .receiving ? .receiving : .sending) }
        switch try step(control) {
        case .goesOn: break
        case .blocked(let interest):
            if try await answerQuestion(control) { return }
            if hearsReads, try !listen(control) { return }
            defer { transport.slot.hearReadsWhileWriting(false) }
            await Poller.shared.park(transport.slot, interest, control)
        case .waitsForPiece:
            if hearsReads, try !listen(control) { return }
            if try await answerQuestion(control) { return transport.slot.hearReadsWhileWriting(false) }
            defer { transport.slot.hearReadsWhileWriting(false) }
            // It is the caller who is slow.
            await Poller.shared.parkAside(transport.slot, control)
        case .wantsFile(let reader, let offset, let count): try await fetch(reader, offset, count, control)
        }
    }

    /// Nothing more of the request goes out.
    func stopSending() {
        if sending.isGoingOn { cut() }
    }

    private func cut() {
        isCut = true
        sending.end()
    }

    /// From now on what can be read ends the wait to send. Returns false if there is something already.
    private func listen(_ control: LoadControl) throws(LoadError) -> Bool {
        transport.slot.hearReadsWhileWriting(true)
        guard transport.hasPendingInput(askingKernel: false) else { return true }
        if phase != .receiving, answer == nil, try !hasAnswer(control) { return true }
        transport.slot.hearReadsWhileWriting(false)
        return false
    }

    /// Waits for the word to go on, but not for ever: many servers never give it.
    private func mayContinue(_ control: LoadControl) async throws(LoadError) -> Bool {
        sending.expectsContinue = false
        let deadline = control.clock.now() &+ LoadControl.nanoseconds(continueTimeout)
        control.clock.schedule(transport.slot, at: deadline)
        while true {
            if control.isSuspended { await pause(control) }
            if let reason = control.stopReason { throw LoadError(reason, phase: .waiting) }
            if let interest = try flush(control) {
                if try await answerQuestion(control) { continue }
                await Poller.shared.park(transport.slot, interest, control)
                continue
            }
            if let goesOn = try hasContinue(control) { return goesOn }
            if try await answerQuestion(control) { continue }
            guard control.clock.now() < deadline else { return true }
            await Poller.shared.park(transport.slot, .read, control)
        }
    }

    // MARK: Steps

    private enum Step {
        case goesOn
        case blocked(PollSlot.Interest)
        case waitsForPiece
        /// Bytes that are not in memory.
        case wantsFile(FileReader, Int64, Int)
    }

    private func step(_ control: LoadControl) throws(LoadError) -> Step {
        while !control.isSuspended, control.stopReason == nil {
            if let interest = try flush(control) { return .blocked(interest) }
            if let piece = sending.piece {
                let bytes = piece.range.lowerBound + sending.pieceSent..<piece.range.upperBound
                guard try sent(write(piece.storage.bytes(bytes)), control, { $0.pieceSent += $1 }) else { return blocked }
                guard let piece = sending.piece, sending.pieceSent == piece.count else { continue }
                sending.piece = nil
                try write { codec, output throws(WireViolation) in codec.sendDataEnd(into: &output) }
                continue
            }
            guard let body = sending.body else {
                if let record, !isCut, !record.has(.requestEnd) { record.mark(.requestEnd) }
                return .goesOn
            }
            switch body {
            case .data(let data): if try !sendData(data, control) { return blocked }
            case .parts(let parts):
                guard sending.part < parts.count else {
                    try end()
                    continue
                }
                switch parts[sending.part] {
                case .data(let data): if try !sendData(data, control) { return blocked }
                case .file(let reader, let range):
                    if let step = try sendFile(reader, range, control) { return step }
                }
            case .stream(_, let trailers, let pieces):
                let pull = sending.pull ?? PiecePull(pieces, control, transport.slot)
                sending.pull = pull
                guard let pulled = pull.take() else { return .waitsForPiece }
                sending.pull = nil
                try take(pulled, trailers, control)
            }
        }
        return .goesOn
    }

    private var blocked: Step { .blocked(blockedOnWrite) }

    /// A part in memory. Returns false if it waits.
    private func sendData(_ data: Data, _ control: LoadControl) throws(LoadError) -> Bool {
        if sending.partSent == 0, data.count <= Self.smallBody {
            try append(data)
            return true
        }
        if sending.partSent == Int64(data.count) {
            try endPart()
            return true
        }
        let start = Int(sending.partSent)
        let outcome = data.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[start...])) }
        guard try sent(outcome, control, { $0.partSent += Int64($1) }) else { return false }
        try countSent(Int(sending.partSent) - start)
        return true
    }

    /// Bytes of a body with a length have gone out by themselves.
    private func countSent(_ moved: Int) throws(LoadError) {
        guard moved > 0, sending.body != nil else { return }
        try write { codec, output throws(WireViolation) in try codec.sendData(count: moved, into: &output) }
    }

    /// A small part goes out with what comes next.
    private func append(_ data: Data) throws(LoadError) {
        try write { codec, output throws(WireViolation) in
            try codec.sendData(count: data.count, into: &output)
            output.append(contentsOf: data)
            codec.sendDataEnd(into: &output)
        }
        sending.unreported += data.count
        try endPart()
    }

    private func endPart() throws(LoadError) {
        sending.partSent = 0
        sending.part += 1
        if case .data? = sending.body { try end() }
    }

    /// A part that is a file; `nil` to go on.
    private func sendFile(_ reader: FileReader, _ range: Range<Int64>, _ control: LoadControl) throws(LoadError) -> Step? {
        let offset = range.lowerBound + sending.partSent
        guard offset < range.upperBound else {
            try endPart()
            return nil
        }
        let left = range.upperBound - offset
        if !sending.copiesFiles, tap == nil {
            let count = Int(min(left, Int64(Self.window)))
            guard reader.isNear(offset, count: count) else { return .wantsFile(reader, offset, Int(min(left, Int64(Self.filePiece)))) }
            let outcome = Result { () throws(IOFailure) in try transport.sendFile(reader, at: offset, count: count) }
            switch outcome {
            case .success(nil): sending.copiesFiles = true
            case .success(.end?): throw OutgoingBody.fileChanged(left)
            case .success(let progress?):
                let start = Int(sending.partSent)
                guard try sent(.success(progress), control, { $0.partSent += Int64($1) }) else { return blocked }
                try countSent(Int(sending.partSent) - start)
                return nil
            case .failure(let failure):
                _ = try sent(.failure(failure), control) { _, _ in }
                return nil
            }
        }
        let wanted = Int(min(left, Int64(Self.filePiece)))
        let storage = ChunkStorage(capacity: wanted)
        let read: Int?
        do throws(IOFailure) { read = try reader.readNow(into: storage.room(from: 0), at: offset) } catch { throw LoadError(file: error, .sending) }
        guard let read else { return .wantsFile(reader, offset, wanted) }
        try takeFile(storage, read, left)
        return nil
    }

    private func fetch(_ reader: FileReader, _ offset: Int64, _ count: Int, _ control: LoadControl) async throws(LoadError) {
        let storage = ChunkStorage(capacity: count)
        // The thread keeps reader and storage alive, whoever waits for it or not.
        let read = await BlockingThreads.files.call(control) { () -> Result<Int, IOFailure> in
            Result { () throws(IOFailure) in try reader.read(into: storage.room(from: 0), at: offset) }
        }
        guard let read else { throw LoadError(control.stopReason ?? .cancelled, phase: .sending) }
        let got: Int
        do { got = try read.get() } catch { throw LoadError(file: error, .sending) }
        try takeFile(storage, got, Int64(count))
    }

    private func takeFile(_ storage: ChunkStorage, _ count: Int, _ left: Int64) throws(LoadError) {
        guard count > 0 else { throw OutgoingBody.fileChanged(left) }
        try write { codec, output throws(WireViolation) in try codec.sendData(count: count, into: &output) }
        sending.partSent += Int64(count)
        (sending.piece, sending.pieceSent) = (Chunk(storage: storage, range: 0..<count), 0)
    }

    /// What the caller's sequence gave.
    private func take(
        _ pulled: Result<Chunk?, any Error>, _ trailers: (@Sendable () -> Headers)?, _ control: LoadControl
    ) throws(LoadError) {
        // A sequence that hears of the cancellation before we do says so in its own words.
        if case .failure = pulled, let reason = control.stopReason { throw LoadError(reason, phase: .sending) }
        let piece: Chunk?
        do { piece = try pulled.get() } catch {
            throw LoadError(.requestBodyFailed, phase: .sending, party: .local, underlying: error)
        }
        guard let piece else { return try end(request: trailers) }
        guard piece.count > 0 else { return }
        try write { codec, output throws(WireViolation) in
            try codec.sendData(count: piece.count, into: &output)
            guard piece.count <= Self.smallBody else { return }
            piece.withUnsafeBytes { output.append(contentsOf: $0) }
            codec.sendDataEnd(into: &output)
        }
        if piece.count <= Self.smallBody { sending.unreported += piece.count } else { (sending.piece, sending.pieceSent) = (piece, 0) }
    }

    private func end(request trailers: (@Sendable () -> Headers)? = nil) throws(LoadError) {
        let isChunked = if case .stream(nil, _, _)? = sending.body { true } else { false }
        sending.body = nil
        let fields = isChunked ? trailers?() ?? Headers() : Headers()
        try write { codec, output throws(WireViolation) in try codec.sendEnd(trailers: fields, into: &output) }
    }

    // MARK: Bytes

    private func write(
        _ change: (inout HTTP1Codec, inout [UInt8]) throws(WireViolation) -> Void
    ) throws(LoadError) {
        do throws(WireViolation) { try change(&codec, &sending.output) } catch { throw LoadError(error, .sending) }
    }

    /// Sends what there is of `output`; what it waits for, if it must.
    private func flush(_ control: LoadControl) throws(LoadError) -> PollSlot.Interest? {
        while sending.outputSent < sending.output.count {
            let outcome = sending.output.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[sending.outputSent...])) }
            guard try sent(outcome, control, isBody: false, { $0.outputSent += $1 }) else { return blockedOnWrite }
        }
        guard !sending.output.isEmpty else { return nil }
        sending.output.removeAll(keepingCapacity: true)
        sending.outputSent = 0
        if sending.unreported > 0 {
            traffic.content += Int64(sending.unreported)
            control.sent(ByteCount(count: sending.unreported, total: traffic.content, expected: sending.length))
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

    /// Notes what was sent. Returns false if it waits.
    private func sent(
        _ outcome: Result<Progress, IOFailure>, _ control: LoadControl, isBody: Bool = true,
        _ note: (inout HTTP1Sending, Int) -> Void
    ) throws(LoadError) -> Bool {
        switch outcome {
        case .success(.moved(let moved)):
            note(&sending, moved)
            traffic.sent += Int64(moved)
            if isBody, moved > 0 {
                traffic.content += Int64(moved)
                control.sent(ByteCount(count: moved, total: traffic.content, expected: sending.length))
            }
            return true
        case .success(.blocked(let interest)):
            blockedOnWrite = interest
            return false
        case .success(.end): throw LoadError(.connectionLost, phase: .sending, party: .peer)
        case .failure(let failure):
            // A peer that refuses the rest of a body says why before it closes, or has answered already.
            let hasBegun = phase == .receiving || answer != nil
            guard hasBegun || (try? hasAnswer(control)) == true else { throw LoadError(failure) }
            cut()
            return true
        }
    }
}
