// The file of a download while it grows, and what is needed to go on with it later. Written by one task,
// the load's; asked for tokens by any.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class DownloadWork: Sendable {
    let options: DownloadOptions
    private let token: ResumeToken?
    /// The folder of the destination: a rename cannot leave a file system. Then the one for temporary files.
    private let folders: [String]

    private struct State: Sendable {
        var file: FileWriter?
        /// Bytes that are in the file for sure.
        var offset: Int64 = 0
        /// Where the body must end, if that is known.
        var end: Int64?
        /// What a token says besides; `nil` if the response cannot be resumed.
        var record: ResumeToken.Record?
        var response: Response?
        /// The whole was asked for after all.
        var isAnew = false
        var complete: DownloadedFile?
    }
    private let state: Lock<State>

    init(_ options: DownloadOptions, _ token: ResumeToken?, _ configuration: Configuration) {
        self.options = options
        self.token = token
        let temporary = configuration.temporaryDirectory.path(percentEncoded: false).withoutSlash
        let own = options.destination.map { Self.folder(of: $0.path(percentEncoded: false)) }
        folders = own.map { [$0, temporary] } ?? [temporary]
        state = Lock(State())
    }

    static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The request as a download sends it: for content without a coding, since a coded body cannot be resumed. A server
    /// that codes it all the same has it decoded.
    static func request(_ request: Request) -> Request {
        var request = request
        if !request.headers.contains(.acceptEncoding) { request.headers[.acceptEncoding] = "identity" }
        let wantsNoCoding = request.headers[.acceptEncoding]?.lowercased() == "identity"
        if wantsNoCoding, request.contentDecoding == .ifOffered { request.contentDecoding = .always }
        return request
    }

    // MARK: The answer

    /// Opens what is held, and asks for what follows it. Blocks on the file system.
    func prepare(_ request: inout Request) async throws(LoadError) {
        guard let token else { return }
        let opened = await BlockingThreads.files.call(.never) { [folders] () -> Result<(FileWriter, Int64), LoadError> in
            Result { () throws(LoadError) in
                let (file, offset) = try token.open(in: folders)
                return (file, offset)
            }
        }
        guard case (let file, var offset)? = try opened?.get() else { return }
        // The last byte is asked for once more: to nothing there is no answer that says whether it is the same.
        if offset > 0, offset == token.record.length { offset -= 1 }
        state.withLock { [offset] state in
            state.file = file
            state.offset = offset
            state.record = token.record
        }
        guard offset > 0 else { return }
        request.headers[.range] = "bytes=\(offset)-"
        request.headers[.ifRange] = token.record.validator
    }

    /// The whole, if the answer is no use for what is held; `nil` to go on with it.
    func another(_ head: HTTPHead?, _ request: Request) -> Request? {
        guard let head, plan(head) == .askForAll else { return nil }
        state.withLock { $0.isAnew = true }
        var request = request
        request.headers.remove(.range)
        request.headers.remove(.ifRange)
        return request
    }

    private func plan(_ response: Response) -> ResumePlan? {
        if let head = response.http { return plan(head) }
        let (offset, isAnew) = state.withLock { ($0.offset, $0.isAnew) }
        guard token != nil || offset > 0, !isAnew, let facts = response.properties[FTPFacts.self] else { return nil }
        return facts.offset == offset ? .append : .restart
    }

    private func plan(_ head: HTTPHead) -> ResumePlan? {
        let (offset, record, isAnew) = state.withLock { ($0.offset, $0.record, $0.isAnew) }
        guard token != nil, offset > 0, !isAnew, let record else { return nil }
        return ResumePlan.make(head, offset: offset, length: record.length, validator: record.validator)
    }

    /// Makes the file ready for the body of an answer.
    /// - Returns: where it goes on, for a download that was to be resumed.
    func begin(_ response: Response, _ request: Request) async throws(LoadError) -> (offset: Int64, expected: Int64?)? {
        let plan = plan(response)
        let kept = plan == .append ? state.withLock { $0.offset } : 0
        let held = plan == .deliver ? nil : state.withLock { $0.file }
        let folder = folders[0]
        let made = await BlockingThreads.files.call(.never) { () -> Result<FileWriter, IOFailure> in
            Result { () throws(IOFailure) in
                if let held {
                    try held.truncate(to: kept)
                    return held
                }
                let new = try FileWriter.create(in: folder, prefix: ResumeToken.prefix)
                guard new.claim() else { throw IOFailure(.stopped(.cancelled), .open) }
                return new
            }
        }
        let file: FileWriter
        do {
            guard let made else { throw LoadError(.cancelled, phase: .receiving, party: .local) }
            file = try made.get()
            // What was held, and is of no use.
            if let other = state.withLock({ $0.file }), other !== file { other.unclaim() }
        } catch let error as IOFailure {
            throw LoadError(.cannotCreateFile, phase: .receiving, party: .system, detail: error.words)
        } catch {
            throw (error as? LoadError) ?? LoadError(.cannotCreateFile, phase: .receiving, party: .system)
        }
        // In our hands it goes with its last reference again.
        file.unkeep()
        let rest = response.expectedLength
        let facts = response.properties[FTPFacts.self]
        let expected = plan == .append ? response.http.map(ResumePlan.end) ?? facts?.end : rest
        state.withLock { state in
            state.file = file
            state.offset = kept
            state.response = response
            state.end = plan == .append ? expected : nil
            if plan != .append {
                state.record = response.http.flatMap { Self.record(request, $0, expected) }
                    ?? facts?.validator.flatMap { Self.record(request, validator: $0, expected) }
            }
            if let expected { state.record?.length = expected }
        }
        return token == nil ? nil : (kept, expected)
    }

    // MARK: Going on over another connection

    /// Makes of the request one for the rest; returns from where, `nil` if there can be none.
    func goOn(with request: inout Request) -> Int64? {
        let (offset, record) = state.withLock { ($0.offset, $0.record) }
        guard offset > 0, let record else { return nil }
        request.headers[.range] = "bytes=\(offset)-"
        request.headers[.ifRange] = record.validator
        return offset
    }

    /// Whether an answer is exactly the rest.
    func isRest(_ response: Response) -> Bool {
        guard let head = response.http else { return plan(response) == .append }
        let (offset, record) = state.withLock { ($0.offset, $0.record) }
        guard let record else { return false }
        return ResumePlan.make(head, offset: offset, length: record.length, validator: record.validator) == .append
    }

    var expected: Int64? { state.withLock { $0.record?.length } }

    private static func record(_ request: Request, _ head: HTTPHead, _ length: Int64?) -> ResumeToken.Record? {
        guard let validator = ResumePlan.validator(of: head, method: request.method) else { return nil }
        return record(request, validator: validator, length)
    }

    private static func record(_ request: Request, validator: String, _ length: Int64?) -> ResumeToken.Record? {
        // A part of the caller's own choice is no beginning.
        guard request.body == nil, !request.headers.contains(.range) else { return nil }
        // Of other fields nobody can say that they are no secrets.
        let own = request.headers.filter { field in
            [.accept, .acceptEncoding, .acceptLanguage, .userAgent].contains(field.name)
        }
        return ResumeToken.Record(
            url: request.url.withoutUserinfo.absoluteString, fields: own.map { [$0.name.description, $0.value] },
            validator: validator, offset: 0, length: length, path: nil, bytes: nil, tail: "", isEarly: false)
    }

    /// Writes what is here of the body, and what comes meanwhile, behind what is there. All on the thread that
    /// may block: a visit to it costs more than a piece, and a piece that is written where it was read is still
    /// in that core's cache, in a buffer that the next one gets again.
    ///
    /// A cancellation waits for the piece that is being written: nothing may write to the file once somebody
    /// else goes on with it.
    func receive(_ exchange: any Exchange, _ control: LoadControl) async throws(LoadError) -> Saved {
        let (held, offset, end) = state.withLock { ($0.file, $0.offset, $0.end) }
        guard let file = held else { return Saved(isEnd: true) }
        let saved = await BlockingThreads.files.call(.never) { () -> Saved in
            var saved = Saved()
            do {
                while saved.count < Self.mostInTurn, control.stopReason == nil {
                    switch try exchange.buffered(atMost: .max) {
                    case .chunk(let piece)?:
                        guard Int64(piece.count) <= (end ?? .max) - offset - Int64(saved.count) else {
                            saved.isTooLong = true
                            saved.error = LoadError(
                                .rangeNotSatisfiable, phase: .receiving, party: .peer, detail: "more bytes than its Content-Range says")
                            return saved
                        }
                        try file.write(piece.storage.bytes(piece.range), at: offset + Int64(saved.count))
                        saved.count += piece.count
                    case .end?:
                        saved.isEnd = true
                        return saved
                    case nil: if try !exchange.fillNow() { return saved }
                    }
                }
            } catch let error as IOFailure {
                saved.error = LoadError(
                    .cannotWriteFile, phase: .receiving, party: .system, detail: "\(file.path): \(error.words)")
            } catch {
                saved.error = error as? LoadError
            }
            return saved
        }
        guard let saved else { throw LoadError(.cancelled, phase: .receiving, party: .local) }
        var result = saved
        if saved.isEnd, let end, offset + Int64(saved.count) < end {
            (result.isEnd, result.error) = (false, LoadError(
                .truncated, phase: .receiving, party: .peer, detail: "fewer bytes than its Content-Range says"))
        }
        state.withLock { state in
            state.offset = offset + Int64(saved.count)
            // What is held may be anything.
            if saved.isTooLong { state.record = nil }
        }
        return result
    }

    /// Writes what somebody else has read, behind what is there. One call at a time.
    func append(_ data: Data) async throws(LoadError) {
        let (held, offset) = state.withLock { ($0.file, $0.offset) }
        guard let held else { return }
        let written = await BlockingThreads.files.call(.never) { () -> Result<Void, IOFailure> in
            data.withUnsafeBytes { bytes in Result { () throws(IOFailure) in try held.write(bytes, at: offset) } }
        }
        if case .failure(let error)? = written {
            throw LoadError(.cannotWriteFile, phase: .receiving, party: .system, detail: "\(held.path): \(error.words)")
        }
        state.withLock { $0.offset = offset + Int64(data.count) }
    }

    /// What was read is not what was sent: nobody could go on with it.
    func forgetRecord() { state.withLock { $0.record = nil } }

    /// How far a visit to the file came.
    struct Saved: Sendable {
        var count = 0
        var isEnd = false
        var isTooLong = false
        var error: LoadError?
    }
    /// A thread belongs to all downloads.
    private static let mostInTurn = 4 << 20

    /// The body is complete.
    func finish() async throws(LoadError) {
        let (held, size, response) = state.withLock { ($0.file, $0.offset, $0.response) }
        guard let held, let response else { return }
        // A token that was written down is of no use any more.
        held.unkeep()
        let complete = DownloadedFile(response, held, size)
        if let destination = options.destination {
            let options = options
            let moved = await BlockingThreads.files.call(.never) { () -> Result<Void, LoadError> in
                Result { () throws(LoadError) in
                    try complete.move(to: destination, replacing: options.replaces, synchronizing: options.synchronizes)
                }
            }
            try moved?.get()
        }
        held.deliver()
        held.unclaim()
        state.withLock { state in
            state.complete = complete
            (state.file, state.record) = (nil, nil)
        }
    }

    /// The load is over: whoever has a token may go on.
    func leave() { state.withLock { $0.complete == nil ? $0.file : nil }?.unclaim() }

    var result: DownloadedFile? { state.withLock { $0.complete } }

    /// With what the download can go on; `nil` if it would have to begin anew.
    /// - Parameter isEarly: it goes on meanwhile.
    func resumeToken(isEarly: Bool) -> ResumeToken? {
        let (held, offset, known) = state.withLock { ($0.file, $0.offset, $0.record) }
        guard let held, !held.wasDelivered, var record = known, isEarly || offset > 0, let tail = try? held.tail(before: offset) else { return nil }
        (record.offset, record.path, record.bytes, record.tail, record.isEarly) = (offset, held.path, nil, tail, isEarly)
        return ResumeToken(record, held)
    }
}

extension String {
    fileprivate var withoutSlash: String { count > 1 && hasSuffix("/") ? String(dropLast()) : self }
}
