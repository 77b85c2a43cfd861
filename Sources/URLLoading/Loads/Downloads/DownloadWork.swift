// SPDX-License-Identifier: Apache-2.0

// In this folder: the growing file of a download

// The growing file of a download, and the facts needed to resume it later. Written by the load's task; any task may
// request a token.

import FoundationEssentials
import Glibc
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class DownloadWork: Sendable {
    let options: DownloadOptions
    /// The token that the caller gave, and the file that may have one.
    let given: ResumeToken?
    let resumeFile: ResumeFile?
    private let page: Page
    let clock: LoopClock
    /// The folders for the partial file: first that of the destination, because a rename cannot cross file systems,
    /// then the one for temporary files.
    private let folders: [String]

    struct State: Sendable {
        var start = Start.unknown
        var file: FileWriter?
        /// The number of bytes that are completely written.
        var offset: Int64 = 0
        /// The offset at which the body must end, if known.
        var end: Int64?
        /// The offset on the disk that the last kept token names; `nil` before the first.
        var kept: Int64?
        /// The bytes that the file of an earlier download has.
        var held = ByteRanges()
        /// The parts of a download that is loaded in several at once.
        var parts: ParallelDownload?
        /// The digests that the file must have; `nil` without any.
        var digests: DownloadDigests?
        /// The record for resume tokens; `nil` if the response cannot be resumed.
        var record: ResumeToken.Record?
        var response: Response?
        /// True once the response writes to the partial file or replaces it: the token that resumed it is then used up.
        var hasContent = false
        var complete: DownloadedFile?

        /// The token that resumed the download, while nothing has changed the file: the token is still valid, and says
        /// more of a file in parts than its first range.
        var unused: ResumeToken? {
            guard case .resumed(let token) = start, !hasContent || !held.isPrefix && parts == nil else { return nil }
            return token
        }

        /// The number of bytes of the file that are known to be on disk.
        var offsetOnDisk: Int64 { parts?.countOnDisk ?? file?.mark?.offset ?? 0 }

        /// The partial file is removed, and no token resumes it.
        mutating func forgetContent() { (record, response) = (nil, nil) }
    }
    let state: Lock<State>

    /// How the download began.
    enum Start: Sendable {
        case unknown
        /// With a token.
        case resumed(ResumeToken)
        /// Anew, because the token of an earlier download does not fit.
        case again
    }

    /// The treatment of a response to a resumed download that is neither the rest nor the whole, such as an error page.
    enum Page: Sendable {
        /// The load ends with an error that carries the response.
        case refused
        /// The response is the result, in a file of its own: the classic API, as on Apple's platforms.
        case delivered
    }

    init(_ options: DownloadOptions, _ token: ResumeToken?, _ configuration: Configuration, page: Page = .refused) {
        self.options = options
        given = token
        resumeFile = ResumeFile(options)
        self.page = page
        clock = configuration.clock
        let temporary = configuration.temporaryDirectory.path(percentEncoded: false).withoutSlash
        let own = options.destination.map { $0.path(percentEncoded: false).folder }
        folders = own.map { [$0, temporary] } ?? [temporary]
        state = Lock(State())
    }

    /// Returns the request with `Accept-Encoding: identity`, because a coded body cannot be resumed. If a server codes
    /// the body all the same, it is decoded.
    static func request(_ request: Request, _ options: DownloadOptions = DownloadOptions()) -> Request {
        var request = request
        guard options.sendsAcceptEncoding || request.headers.contains(.acceptEncoding) else { return request }
        if !request.headers.contains(.acceptEncoding) { request.headers[.acceptEncoding] = "identity" }
        let wantsNoCoding = request.headers[.acceptEncoding]?.lowercased() == "identity"
        if wantsNoCoding, request.contentDecoding == .ifOffered { request.contentDecoding = .always }
        return request
    }

    // MARK: The response

    /// Opens the partial file, and requests the range after it. Blocks on the file system.
    func prepare(_ request: inout Request) async throws(LoadError) {
        guard given != nil || resumeFile != nil, case .unknown = state.withLock({ $0.start }) else { return }
        let opened = await BlockingThreads.files.call(.never) {
            [folders, given, resumeFile, request] () -> Result<ResumeFile.Found, LoadError> in
            Result { () throws(LoadError) in
                guard let given else { return try resumeFile?.open(for: request, in: folders) ?? .nothing }
                let (file, held) = try given.open(in: folders)
                return .token(given, file, held: held)
            }
        }
        let found = try opened?.get() ?? .nothing
        guard case .token(let token, let file, let held) = found else {
            if case .unusable = found { state.withLock { $0.start = .again } }
            return
        }
        // What follows the first range: a request for everything would get a response that confirms nothing.
        var offset = held.ranges.first?.upperBound ?? 0
        // Requests the last byte again, because a request for an empty range gets no response that confirms the
        // validator.
        if offset > 0, offset == token.record.length { offset -= 1 }
        state.withLock { [offset] state in
            state.start = .resumed(token)
            state.file = file
            state.offset = offset
            state.held = held
            state.record = token.record
        }
        guard offset > 0 else { return }
        token.record.condition.addCondition(to: &request.headers, from: offset)
    }

    /// The effect of a response on the file.
    private enum Opening: Sendable {
        /// The body is written to a new file.
        case create
        /// The body is appended to the partial file, at this offset.
        case resume(at: Int64)
        /// The body is written to a new file, and the partial file is unchanged.
        case page
    }

    private func opening(for response: Response, isDigestExpected: Bool) throws(LoadError) -> Opening {
        guard case .resumed = state.withLock({ $0.start }) else {
            if options.requiresSuccess || isDigestExpected { try response.requireSuccess() }
            return .create
        }
        let (offset, known) = state.withLock { ($0.offset, $0.record) }
        if let head = response.http, let known {
            switch ResumePlan.make(head, offset: offset, length: known.length, validator: known.condition) {
            case .append: return .resume(at: offset)
            case .restart: return .resume(at: 0)
            case .mismatch:
                throw LoadError(
                    refusing: response, .resumeMismatch,
                    "the part does not continue the partial file: another validator or range")
            case .refused:
                if page == .delivered { return .page }
                throw LoadError(refusing: response, .unacceptableStatus, head.status.description)
            }
        }
        guard let facts = response.properties[FTPFacts.self] else {
            throw LoadError(refusing: response, .resumeMismatch, "the response does not say of which file it is a part")
        }
        return .resume(at: facts.offset == offset ? offset : 0)
    }

    /// Prepares the file for the body of a response.
    /// - Returns: the offset at which a resumed download continues; `nil` for others.
    /// - Throws: ``LoadError``, with the response if it does not answer the request. The partial file is then
    ///   unchanged.
    func begin(_ response: Response, _ request: Request) async throws(LoadError) -> (offset: Int64, expected: Int64?)? {
        guard options.destination?.namesFile ?? true else {
            throw LoadError(
                .cannotCreateFile, phase: .receiving, party: .local, detail: "the destination is not a file URL")
        }
        let digest = request.method == .head ? nil : options.expectedDigest ?? request.expectedDigest
        let opening = try opening(for: response, isDigestExpected: digest != nil)
        let held = state.withLock { $0.file }
        let folder = folders[0]
        let destination = options.destination?.path(percentEncoded: false)
        let size = options.reservesSpace ? Self.finalSize(of: response) : nil
        // Behind the first range there are bytes only if the file was written in several.
        let continuesParts = if case .resume(1...) = opening { state.withLock { !$0.held.isPrefix } } else { false }
        let made = await BlockingThreads.files.call(.never) { () -> Result<FileWriter, IOFailure> in
            Result { () throws(IOFailure) in
                // Before the body is loaded for nothing.
                if let destination, FileWriter.isFolder(destination) { throw IOFailure(.system(EISDIR), .open) }
                if case .resume(let offset) = opening, let held {
                    if !continuesParts { try held.truncate(to: offset) }
                    if let size { try held.reserve(size) }
                    return held
                }
                let new = try FileWriter.createPartial(in: folder, prefix: ResumeToken.prefix)
                if let size { try new.reserve(size) }
                return new
            }
        }
        let file: FileWriter
        do {
            guard let made else { throw LoadError(.cancelled, phase: .receiving, party: .local) }
            file = try made.get()
        } catch let error as IOFailure {
            throw LoadError(
                .cannotCreateFile, phase: .receiving, party: .system, detail: Self.words(error, destination, folder))
        } catch {
            throw (error as? LoadError) ?? LoadError(.cannotCreateFile, phase: .receiving, party: .system)
        }
        // An error page is written to another file, so another download may use the partial file.
        if let held, held !== file { held.unclaim() }
        // While the load holds the file, it is again removed with its last reference.
        file.unkeep()
        let kept: Int64 = if case .resume(let offset) = opening { offset } else { 0 }
        let isPage = if case .page = opening { true } else { false }
        let facts = response.properties[FTPFacts.self]
        let expected = kept > 0 ? response.http.map(ResumePlan.end) ?? facts?.end : response.expectedLength
        state.withLock { state in
            state.file = file
            state.offset = kept
            state.response = response
            state.end = kept > 0 ? expected : nil
            state.hasContent = !isPage
            state.digests = isPage ? nil : DownloadDigests(digest, part: kept > 0 ? response.http : nil)
            if !continuesParts { state.held = ByteRanges(upTo: kept) }
            if kept == 0 {
                state.record =
                    response.http.flatMap { Self.record(request, $0, expected) }
                    ?? facts?.validator.flatMap { Self.record(request, .text($0), expected) }
            }
            if let expected { state.record?.length = expected }
        }
        if case .unknown = state.withLock({ $0.start }) { return nil }
        return isPage ? nil : (continuesParts ? state.withLock { $0.held.total } : kept, expected)
    }

    /// Whether the download begins anew after a response that does not continue the partial file of ``resumeFile``. The
    /// caller of another token decides itself.
    func startsAnew(after error: LoadError) -> Bool {
        guard given == nil, error.reason == .resumeMismatch || error.status?.code == 416 else { return false }
        let file = state.withLock { state -> FileWriter? in
            guard case .resumed = state.start, !state.hasContent else { return nil }
            defer {
                (state.start, state.file, state.record, state.offset) = (.again, nil, nil, 0)
                state.held = ByteRanges()
            }
            return state.file
        }
        guard let file else { return false }
        file.unkeep()
        file.discard()
        file.unclaim()
        return true
    }

    /// The words of the system, and what to do about the frequent ones.
    private static func words(_ failure: IOFailure, _ destination: String?, _ folder: String) -> String {
        switch failure.code {
        case .system(EISDIR): "the destination \(destination ?? "") is a folder: add the name of the file"
        // Some folders of the system, such as /proc, exist and take no files.
        case .system(ENOENT) where access(folder, F_OK) == 0: "no file can be created in the folder \(folder)"
        case .system(ENOENT): "the folder \(folder) does not exist: create it before"
        default: failure.words
        }
    }

    /// The size of the complete file; `nil` if the response does not say it, or the body is decoded.
    private static func finalSize(of response: Response) -> Int64? {
        guard let head = response.http, !head.headers.contains(.contentEncoding) else { return nil }
        return head.status == .partialContent ? ResumePlan.end(of: head) : response.expectedLength
    }

    // MARK: Continuing over another connection

    /// Turns the request into one for the rest. Returns its offset; `nil` if the download cannot be resumed, or was
    /// resumed in parts.
    func prepareResumption(with request: inout Request) -> Int64? {
        let (offset, record, parts) = state.withLock { ($0.offset, $0.record, $0.parts) }
        guard offset > 0, let record, parts == nil else { return nil }
        record.condition.addCondition(to: &request.headers, from: offset)
        return offset
    }

    /// Returns whether a response is exactly the rest.
    func isRemainder(_ response: Response) -> Bool {
        let (offset, record) = state.withLock { ($0.offset, $0.record) }
        guard let head = response.http else {
            return offset > 0 && response.properties[FTPFacts.self]?.offset == offset
        }
        guard let record else { return false }
        return ResumePlan.make(head, offset: offset, length: record.length, validator: record.condition) == .append
    }

    var expected: Int64? { state.withLock { $0.record?.length } }

    private static func record(_ request: Request, _ head: HTTPHead, _ length: Int64?) -> ResumeToken.Record? {
        guard let validator = ResumePlan.validator(of: head, method: request.method) else { return nil }
        return record(request, validator, length)
    }

    private static func record(_ request: Request, _ validator: ResumeValidator, _ length: Int64?) -> ResumeToken
        .Record?
    {
        // A range of the caller's choice is not the beginning of the content.
        guard request.body == nil, !request.headers.contains(.range) else { return nil }
        return ResumeToken.Record(
            url: request.url.withoutUserinfo.absoluteString,
            fields: request.headers.map { [$0.name.description, $0.value] },
            validator: validator.description, validatorBytes: validator.bytes, offset: 0, length: length, path: nil,
            bytes: nil, tail: "",
            isEarly: false
        ).withoutSecrets
    }

    /// Writes the received part of the body, and what arrives meanwhile, at the end of the file. All of it runs on a
    /// thread that may block, because a switch to that thread costs more than a write; and a piece written on the core
    /// that read it is still in that core's cache, in a buffer that is reused for the next piece.
    ///
    /// A cancellation waits for the current write, because the file must not change once another download resumes it.
    func receive(_ exchange: any Exchange, _ control: LoadHandle) async throws(LoadError) -> Saved {
        let (held, offset, end, digests) = state.withLock { ($0.file, $0.offset, $0.end, $0.digests) }
        guard let file = held else { return Saved(isEnd: true) }
        let saved = await BlockingThreads.files.call(.never) {
            [clock, most = options.maximumSize ?? .max] () -> Saved in
            var saved = Saved()
            defer { if saved.count > 0 { file.wrote(upTo: offset + Int64(saved.count), now: clock.coarseNow()) } }
            do {
                while saved.count < Self.maximumPerTurn, control.stopReason == nil {
                    switch try exchange.buffered(atMost: .max) {
                    case .chunk(let piece)?:
                        guard Int64(piece.count) <= (end ?? .max) - offset - Int64(saved.count) else {
                            saved.isWorthless = true
                            saved.error = LoadError(
                                .rangeNotSatisfiable, phase: .receiving, party: .remote,
                                detail: "more bytes than its Content-Range says")
                            return saved
                        }
                        guard Int64(piece.count) <= most - offset - Int64(saved.count) else {
                            saved.isWorthless = true
                            saved.error = .tooLarge(Int(most))
                            return saved
                        }
                        let bytes = piece.storage.bytes(piece.range)
                        try file.write(bytes, at: offset + Int64(saved.count))
                        digests?.wrote(bytes, at: offset + Int64(saved.count))
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
                saved.isWorthless = saved.error?.reason == .digestMismatch
            }
            return saved
        }
        guard let saved else { throw LoadError(.cancelled, phase: .receiving, party: .local) }
        var result = saved
        if saved.isEnd, let end, offset + Int64(saved.count) < end {
            (result.isEnd, result.error) = (
                false,
                LoadError(
                    .truncated, phase: .receiving, party: .remote, detail: "fewer bytes than its Content-Range says")
            )
        }
        state.withLock { state in
            state.offset = offset + Int64(saved.count)
            if saved.isWorthless { state.forgetContent() }
        }
        return result
    }

    /// Appends bytes that the caller has read. Accepts one call at a time.
    func append(_ data: Data) async throws(LoadError) {
        let (held, offset, digests) = state.withLock { ($0.file, $0.offset, $0.digests) }
        guard let held else { return }
        let written = await BlockingThreads.files.call(.never) { [clock] () -> Result<Void, IOFailure> in
            data.withUnsafeBytes { bytes in
                Result { () throws(IOFailure) in
                    try held.write(bytes, at: offset)
                    digests?.wrote(bytes, at: offset)
                    held.wrote(upTo: offset + Int64(data.count), now: clock.coarseNow())
                }
            }
        }
        if case .failure(let error)? = written {
            throw LoadError(.cannotWriteFile, phase: .receiving, party: .system, detail: "\(held.path): \(error.words)")
        }
        state.withLock { $0.offset = offset + Int64(data.count) }
    }

    /// Prevents resumption, because the offset of decoded bytes is not that of the bytes sent.
    func forgetRecord() { state.withLock { $0.record = nil } }

    /// The result of one visit to the blocking thread.
    struct Saved: Sendable {
        var count = 0
        var isEnd = false
        /// The content of the partial file is unknown, or not what it should be.
        var isWorthless = false
        var error: LoadError?
    }
    /// The maximum number of bytes written in one visit, because all downloads share the thread.
    private static let maximumPerTurn = 4 << 20

    /// Completes the file at the end of the body.
    /// - Parameter trailers: those of the response whose body was read to its end.
    func finish(_ control: StopToken = .never, _ trailers: Headers = Headers()) async throws(LoadError) {
        let (held, size, response, known) = state.withLock { ($0.file, $0.offset, $0.response, $0.digests) }
        guard let held, let response else { return }
        let isPart = response.http?.status == .partialContent
        if let digests = known ?? (isPart ? DownloadDigests(ofPart: trailers) : nil) {
            let checked = await BlockingThreads.files.call(.never) { () -> Result<Void, LoadError> in
                Result { () throws(LoadError) in try digests.finish(held, size: size, control) }
            }
            if case .failure(let error)? = checked {
                if error.reason == .digestMismatch { state.withLock { $0.forgetContent() } }
                throw error
            }
        }
        // A stored token is useless from now on.
        held.unkeep()
        let complete = DownloadedFile(response, held, size)
        if let destination = options.destination {
            let options = options
            let moved = await BlockingThreads.files.call(.never) { () -> Result<Void, LoadError> in
                Result { () throws(LoadError) in
                    try complete.move(
                        to: destination, overwriting: options.overwrites, permissions: options.permissions,
                        synchronizing: options.synchronizes)
                }
            }
            try moved?.get()
        }
        held.deliver()
        held.unclaim()
        if let resumeFile { await BlockingThreads.files.call(.never) { resumeFile.remove() } }
        state.withLock { state in
            state.complete = complete
            (state.file, state.record) = (nil, nil)
        }
    }

    /// Whether the token in ``DownloadOptions/resumeFile`` is to be renewed: the first one after the first bytes, later
    /// ones as bytes reach the disk.
    private var isTokenDue: Bool {
        resumeFile != nil
            && state.withLock { state in
                state.record != nil && (state.offset > 0 || state.parts != nil) && state.kept != state.offsetOnDisk
            }
    }

    /// Writes the token to ``DownloadOptions/resumeFile`` if it is due.
    func keepToken() async throws(LoadError) {
        guard let resumeFile, isTokenDue else { return }
        let written = await BlockingThreads.files.call(.never) { [self] () -> Result<Int64, LoadError> in
            Result { () throws(LoadError) in
                guard let token = resumeToken(isEarly: true) else { return 0 }
                try resumeFile.write(token)
                return token.record.countOnDisk
            }
        }
        guard let offset = try written?.get() else { return }
        state.withLock { $0.kept = offset }
    }

    /// Takes over a file that the background agent has completed.
    func adopt(_ file: DownloadedFile) { state.withLock { $0.complete = file } }

    /// True if there is a partial file to leave.
    var hasFile: Bool { state.withLock { $0.file != nil } }

    /// Releases the partial file at the end of the load, so that a token may resume it. A file that no token can resume
    /// is removed now, because the process may end before the last reference to it is dropped. Blocks if there is a
    /// file.
    func leave() {
        let (held, leftover, isUseless, isUnused) = state.withLock { state in
            let isPlain =
                state.response?.http.map { $0.status == .ok && !$0.headers.contains(.contentEncoding) } ?? false
            return (
                state.complete == nil ? state.file : nil,
                state.record == nil && state.offset > 0 && isPlain ? options.leftover : nil,
                state.record == nil && state.hasContent,
                state.unused != nil
            )
        }
        if let resumeFile, held != nil {
            if isUseless {
                resumeFile.remove()
            } else if !isUnused, let token = resumeToken(isEarly: false) {
                try? resumeFile.write(token)
            }
        }
        if let held, let leftover {
            try? held.move(
                from: held.path, to: leftover.path(percentEncoded: false), replacing: true, permissions: .usual,
                synchronizes: false)
        } else if isUseless {
            // A token may have been kept of it meanwhile.
            held?.unkeep()
            held?.discard()
        }
        held?.unclaim()
    }

    var result: DownloadedFile? { state.withLock { $0.complete } }

    /// Returns the token that resumes the download; `nil` if it would have to start anew. Before a response has changed
    /// the file, that is the token that resumed it.
    /// - Parameter isEarly: true if the download still runs.
    func resumeToken(isEarly: Bool) -> ResumeToken? {
        let (held, offset, known, parts, unused) = state.withLock {
            ($0.file, $0.offset, $0.record, $0.parts, $0.unused)
        }
        guard let held, !held.wasDelivered, var record = known else { return nil }
        if let unused { return unused }
        if let parts { return token(of: parts, held, record, isEarly: isEarly) }
        guard isEarly || offset > 0, let tail = try? held.tail(before: offset)
        else { return nil }
        (record.offset, record.path, record.bytes, record.tail, record.isEarly) = (
            offset, held.path, nil, tail, isEarly
        )
        record.boot = SystemBoot.identity
        record.mark = held.mark.flatMap { $0.offset <= offset ? $0 : nil }
        return ResumeToken(record, held)
    }

    /// Returns the token that resumes the download after an error.
    func resumeToken(after error: LoadError) -> ResumeToken? {
        guard error.reason != .invalidResumeToken else { return nil }
        if let given, case .unknown = state.withLock({ $0.start }) { return given }
        return resumeToken(isEarly: false)
    }

    /// The number of bytes of the file that are known to be on disk.
    var offsetOnDisk: Int64 { state.withLock { $0.offsetOnDisk } }
}

extension String {
    fileprivate var withoutSlash: String { count > 1 && hasSuffix("/") ? String(dropLast()) : self }
}
