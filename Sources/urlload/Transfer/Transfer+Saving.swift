// SPDX-License-Identifier: Apache-2.0

// Saves the body of a GET to a file. The partial file of a load that ends early is kept, and a later run can resume it.

import FoundationEssentials
import Glibc
import URLLoading
import URLLoadingWire

extension Transfer {
    /// `nil` if a later run could not resume the load.
    var continuation: Continuation? {
        guard let path = savedPath, options.acceptsCompressed != true || options.continues else { return nil }
        if case .from = options.resuming { return nil }
        return Continuation(path)
    }

    /// The partial file of curl, wget or an earlier run, if this load is to resume it and has no token.
    var partial: PartialFile? {
        guard let path = savedPath, options.continues, Continuation(path)?.hasNotes != true else { return nil }
        let partial = PartialFile(path)
        switch options.resuming {
        case .never: return nil
        case .ifChecked: return partial?.date == nil ? nil : partial
        case .always: return partial
        case .from(let offset): return PartialFile(path, offset: offset)
        }
    }

    /// The file of a plain GET.
    private var savedPath: String? {
        guard case .file(let path) = options.destination, !options.sendsBody, !options.asksForHead,
            !options.includesHead, !options.printsEvents, options.data.range == nil, options.joined == nil,
            options.method == nil || options.method == .get
        else { return nil }
        return path
    }

    func saveResumably(_ continuation: Continuation, _ request: Request, _ watch: Watch, _ attempt: Attempt)
        async throws
    {
        var decisions = decisions(watch)
        let resumes = options.continues && continuation.hasNotes
        decisions.response = Decision { response in
            attempt.response = response
            do { try checkStatus(response, attempt) } catch { return .cancel }
            // An error page is not the rest of the file; the partial file is kept.
            guard resumes, let status = response.http?.status, status.code >= 400 else { return .allow }
            attempt.failure = Report.Failure(status)
            return .cancel
        }
        var throttle = options.rateLimit.map { Throttle(bytesPerSecond: $0) }
        let run = Continuation.Run(
            session: session, decisions: decisions, resumes: options.continues, leftover: continuation.leftover)
        do throws(LoadError) {
            _ = try await continuation.load(request, run) { event in
                process(event, continuation, watch, attempt)
                guard case .received(let bytes) = event else { return nil }
                return throttle?.pause(after: bytes.count)
            }
        } catch {
            attempt.kept = Report.Kept(continuation, error, attempt)
            if error.reason == .cannotCreateFile || error.reason == .cannotMoveFile, attempt.failure == nil {
                var failure = Report.Failure(error)
                failure.detail = "\(continuation.shown): \(error.detail ?? "cannot be created")"
                attempt.failure = failure
            }
            throw error
        }
        attempt.file = continuation.shown
        if attempt.preview != nil { attempt.preview = BodyPreview(file: continuation.path, total: attempt.bytes) }
        guard options.failsWithBody, let status = attempt.response?.http?.status, status.code >= 400 else { return }
        attempt.failure = Report.Failure(status)
        throw RefusedStatus()
    }

    private func process(_ event: LoadEvent, _ continuation: Continuation, _ watch: Watch, _ attempt: Attempt) {
        switch event {
        case .responded(let response):
            attempt.response = response
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
        if !request.headers.contains(.acceptEncoding) { request.headers[.acceptEncoding] = "identity" }
        try await session.load(request, decisions: decisions(watch)) { response, body in
            attempt.response = response
            try heads?.check()
            switch partial.answer(response.http) {
            case .complete:
                attempt.file = try partial.commit()
                screen.message("\(partial.path): is complete already")
            case .whole:
                screen.message("\(partial.path): the server sends the whole file, which replaces the partial one")
                try await receive(response, body, url, watch, attempt)
                partial.remove()
            case .rest:
                try await write(body, behind: partial, response, watch, attempt)
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
        watch.progress.answers(response.expectedLength.map { $0 + partial.offset })
        watch.progress.begins(at: partial.offset, of: response.expectedLength.map { $0 + partial.offset })
        let file = try partial.open()
        defer { close(file.number) }
        var throttle = options.rateLimit.map { Throttle(bytesPerSecond: $0) }
        do {
            for try await chunk in body {
                let count = try chunk.withUnsafeBytes { bytes in
                    try file.write(bytes)
                    attempt.preview?.add(bytes)
                    return bytes.count
                }
                attempt.bytes += Int64(count)
                watch.progress.add(count)
                if let pause = throttle?.pause(after: count) { try await Task.sleep(for: pause) }
            }
        } catch {
            attempt.kept = Report.Kept(
                file: partial.path, bytes: partial.offset + attempt.bytes,
                total: response.expectedLength.map { $0 + partial.offset }, isChecked: false)
            throw error
        }
        attempt.file = try partial.commit()
    }
}
