// SPDX-License-Identifier: Apache-2.0

// Saves the body of a GET to a file. The partial file of a load that ends early is kept, and a later run can resume it.

import FoundationEssentials
import Glibc
import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingWire

extension Transfer {
    /// `nil` if a later run could not resume the load.
    var continuation: Continuation? {
        guard let path = savedPath, options.request.acceptsCompressed != true || options.output.continues else {
            return nil
        }
        if case .from = options.output.resuming { return nil }
        return Continuation(path)
    }

    /// The partial file of curl, wget or an earlier run, if this load is to resume it and has no token.
    var partial: PartialFile? {
        guard let path = savedPath, options.output.continues, Continuation(path)?.hasNotes != true else { return nil }
        let partial = PartialFile(path)
        switch options.output.resuming {
        case .never: return nil
        case .ifChecked: return partial?.date == nil ? nil : partial
        case .always: return partial
        case .from(let offset): return PartialFile(path, offset: offset)
        }
    }

    /// The file of a plain GET.
    private var savedPath: String? {
        guard case .file(let path) = options.output.destination, !options.sendsBody, !options.request.asksForHead,
            !options.output.includesHead, !options.printsMessages, !options.output.printsEvents,
            options.data.range == nil,
            options.output.joined == nil,
            options.request.method == nil || options.request.method == .get
        else { return nil }
        return path
    }

    func saveResumably(_ continuation: Continuation, _ request: Request, _ watch: Watch, _ attempt: Attempt)
        async throws
    {
        var decisions = decisions(watch, request)
        let resumes = options.output.continues && continuation.hasNotes
        decisions.response = Decision { response in
            attempt.response = response
            do { try checkStatus(response, attempt) } catch { return .cancel }
            // An error page is not the rest of the file; the partial file is kept.
            guard resumes, let status = response.http?.status, status.code >= 400 else { return .allow }
            attempt.failure = Report.Failure(status)
            return .cancel
        }
        let run = Continuation.Run(
            session: session, decisions: decisions, resumes: options.output.continues,
            sendsAcceptEncoding: !options.request.removedFields.contains(.acceptEncoding),
            maximumSize: options.limits.bodySize, parallelRanges: options.connections.parallelRanges)
        try await save(continuation, watch, attempt) { (onEvent) throws(LoadError) in
            try await continuation.load(request, run, onEvent)
        }
    }

    /// Runs a download whose events are shown, and notes the part that it leaves.
    private func save(
        _ continuation: Continuation, _ watch: Watch, _ attempt: Attempt,
        _ load: (_ onEvent: (LoadEvent) -> Continuation.Step) async throws(LoadError) -> Continuation.Saved
    ) async throws {
        var throttle = options.limits.rate.map { Throttle(bytesPerSecond: $0) }
        let saved: Continuation.Saved
        do throws(LoadError) {
            saved = try await load { event in
                process(event, continuation, watch, attempt)
                guard case .received(let bytes) = event else { return .proceed }
                return throttle?.pause(after: bytes.count).map { .pause($0) } ?? .proceed
            }
            // Some events of a task that became a download may have passed before they were read.
            attempt.bytes = max(attempt.bytes, saved.file.size - attempt.resumedAt)
        } catch {
            if error.reason == .bodyTooLarge, let most = options.limits.bodySize {
                attempt.failure = Report.Failure(Self.tooLarge("it has more bytes", most))
            }
            attempt.kept = attempt.failure?.exit == .tooLarge ? nil : Report.Kept(continuation, error, attempt)
            if error.reason == .cannotCreateFile || error.reason == .cannotMoveFile, attempt.failure == nil {
                var failure = Report.Failure(error)
                failure.detail = "\(continuation.shown): \(error.detail ?? "cannot be created")"
                attempt.failure = failure
            }
            throw error
        }
        attempt.file = continuation.shown
        if attempt.preview != nil { attempt.preview = BodyPreview(file: continuation.path, total: attempt.bytes) }
        try heads?.end(saved.trailers)
        guard options.output.failsWithBody, let status = attempt.response?.http?.status, isFailure(status) else {
            return
        }
        attempt.failure = Report.Failure(status)
        throw RefusedStatus()
    }

    private func process(_ event: LoadEvent, _ continuation: Continuation, _ watch: Watch, _ attempt: Attempt) {
        switch event {
        case .responded(let response):
            attempt.response = response
            if let exchange = watch.exchange, options.items.downloads { _ = try? exchange.begins(response.http) }
            watch.progress.answers(response.expectedLength)
        case .resumed(let offset, let expected) where offset > 0:
            screen.message("\(continuation.shown): resumed at byte \(offset)")
            attempt.resumedAt = offset
            watch.progress.begins(at: offset, of: expected)
        case .received(let bytes):
            attempt.bytes += Int64(bytes.count)
            watch.progress.add(bytes.count)
        default: break
        }
    }

    /// Requests the bytes after those of a partial file, and appends them.
    func append(
        to partial: PartialFile, _ request: Request, _ url: URL, _ watch: Watch, _ attempt: Attempt
    ) async throws {
        var request = request
        request.headers[.range] = "bytes=\(partial.offset)-"
        if let date = partial.date { request.headers[.ifRange] = date.description }
        if !request.headers.contains(.acceptEncoding), !options.request.removedFields.contains(.acceptEncoding) {
            request.headers[.acceptEncoding] = "identity"
        }
        try await session.load(request, decisions: decisions(watch, request)) { response, body in
            attempt.response = response
            try heads?.check()
            switch partial.answer(response.http) {
            case .complete:
                attempt.file = try partial.commit()
                attempt.isUnchanged = partial.isFile
                screen.message("\(partial.path): is complete already")
            case .whole:
                screen.message("\(partial.path): the server sends the whole file, which replaces the partial one")
                try await receive(response, body, url, watch, attempt) { body.trailers }
                partial.remove()
            case .rest:
                try checkSize(partial.total(with: response.expectedLength ?? 0), attempt)
                try await write(body, behind: partial, response, watch, attempt)
                try heads?.end(body.trailers)
            case .refused(let failure):
                attempt.failure = failure
                throw RefusedStatus()
            }
        }
    }

    private func write<Body: AsyncSequence>(
        _ body: Body, behind partial: PartialFile, _ response: Response, _ watch: Watch, _ attempt: Attempt
    ) async throws where Body.Element: ContiguousBytes {
        let check = partial.date == nil ? " without validation" : ""
        screen.message("\(partial.path): resumed at byte \(partial.offset)\(check)")
        attempt.resumedAt = partial.offset
        watch.progress.answers(response.expectedLength.map(partial.total(with:)))
        watch.progress.begins(at: partial.offset, of: response.expectedLength.map(partial.total(with:)))
        let file = try partial.open()
        defer { close(file.number) }
        do {
            try await pass(body, behind: partial.offset, watch, attempt) { try file.write($0) }
        } catch {
            attempt.kept = Report.Kept(
                file: partial.path, bytes: partial.offset + attempt.bytes,
                total: response.expectedLength.map(partial.total(with:)), isChecked: false)
            throw error
        }
        attempt.file = try partial.commit()
    }
}

// MARK: A part whose name the response gives

extension Transfer {
    /// Whether the file of a plain GET is named by its response (`-J`) and its part resumed (`-C`).
    var resumesByName: Bool {
        options.output.destination == .namedAfterURL && options.saving.namesFromResponse && options.output.continues
            && !options.sendsBody && !options.request.asksForHead && !options.output.includesHead
            && options.data.range == nil
            && (options.request.method == nil || options.request.method == .get)
    }

    /// Requests the whole; its head names the file. If there is a part of that file, the response is dropped and the
    /// rest requested, otherwise the body is saved, so that a later run can resume it.
    func resumeByName(_ request: Request, _ url: URL, _ watch: Watch, _ attempt: Attempt) async throws {
        let chosen = Lock<NamedPart?>(nil)
        defer { chosen.withLock { $0 }?.release() }
        var decisions = decisions(watch, request)
        decisions.response = Decision { response in
            attempt.response = response
            do { try checkStatus(response, attempt) } catch { return .cancel }
            let wanted = BodyOutput.wantedName(options, url, response)
            // A response that comes after a retry chooses anew.
            chosen.withLock { $0 }?.release()
            let part = NamedPart.choose(wanted, url, options.output.resuming, length: response.expectedLength)
            chosen.withLock { $0 = part }
            guard case .nothing(let path) = part, let continuation = Continuation(path) else { return .cancel }
            if options.saving.makesFolders { try Folder.make(for: path) }
            var download = continuation.options
            download.overwrites = false
            download.maximumSize = options.limits.bodySize
            download.parallelRanges = options.connections.parallelRanges
            return .becomeDownload(download)
        }
        let task = session.dataTask(request, decisions: decisions)
        let events = task.events
        task.resume()
        var download: LoadTask<DownloadedFile>?
        for await event in events { if case .becameDownload(let next) = event { download = next } }
        switch chosen.withLock({ $0 }) {
        case .part(let path)?:
            attempt.response = nil
            screen.message("the server names the file \(path), of which a part is here")
            try await resume(at: path, request, url, watch, attempt)
        case .whole(let path)?:
            (attempt.file, attempt.isUnchanged) = (path, true)
            screen.message("\(path): is complete already")
        case .nothing(let path)?:
            guard let download, let continuation = Continuation(path) else {
                _ = try await task.value
                return
            }
            try await save(continuation, watch, attempt) { (onEvent) throws(LoadError) in
                try await continuation.follow(download, old: nil, onEvent)
            }
        case nil:
            _ = try await task.value
        }
    }
}

/// What is there of a file that a response names.
enum NamedPart: Sendable, Hashable {
    /// A part that a run of this command has left.
    case part(String)
    /// A file of the same length, which `-C -` takes for complete, as it does after a 416.
    case whole(String)
    /// No part: the path to save to, which is free.
    case nothing(String)

    /// The paths that loads of this process save to, most of which are not there yet.
    private static let taken = Lock<Set<String>>([])

    /// Lets other loads choose the path.
    func release() {
        switch self {
        case .part(let path), .nothing(let path): _ = Self.taken.withLock { $0.remove(path) }
        case .whole: break
        }
    }

    /// A file that is there under the name itself is left alone: a server must not choose which file is written to.
    /// The path is the caller's until ``release()``: responses that name the same file get a path each.
    /// - Parameters:
    ///   - wanted: the path that the response gives.
    ///   - length: the length of its body in bytes.
    static func choose(_ wanted: String, _ url: URL, _ resuming: Options.Resuming, length: Int64?) -> NamedPart {
        var status = stat()
        if resuming == .always, let length, stat(wanted, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            Int64(status.st_size) == length
        {
            return .whole(wanted)
        }
        let free = taken.withLock { taken in
            let others = taken
            let free = FileName.free(wanted) { others.contains($0) }
            taken.insert(free)
            return free
        }
        if Continuation(free)?.hasToken(for: url) == true { return .part(free) }
        return resuming == .always && FileCheck.exists(PartialFile.partName(free)) ? .part(free) : .nothing(free)
    }
}
