// SPDX-License-Identifier: Apache-2.0

// In this folder: one transfer: its request, its output, its file (18 files: one part each)

// Loads one URL and writes its output. Every outcome, including errors, becomes a `Report`.

import FoundationEssentials
import URLLoading

struct Transfer: Sendable {
    var options: Options
    let session: Session
    let screen: Screen
    /// The file of `-D`, shared by all loads of a group.
    let heads: HeadFile?
    /// Collects what a report shows; `nil` without a report.
    var evidence: Evidence?
    /// What an earlier attempt has left of a body that cannot be written anew.
    var rest: BodyRest?

    @concurrent func run(_ text: String) async -> Report {
        guard let url = AddressText.url(text) else {
            var report = Report(url: AddressText.inMessage(text))
            report.failure = Report.Failure(LoadError(.badURL, phase: .preparing, party: .local))
            return report
        }
        let line = screen.progress(of: FileName.make(for: url))
        var (transfer, attempt, attempts) = (self, Attempt(), Attempts(options))
        var report = await attempted(url, line, attempt)
        while Signals.exitCode == nil, let failure = report.failure, let delay = attempts.next(after: failure),
            let next = transfer.repeated(self, after: attempt)
        {
            let words = ErrorWords.make(failure, in: options.shared.grammar)
            screen.message("\(AddressText.inMessage(report.url)): \(attempts.words(delay)): \(words)")
            await Signals.pause(delay)
            guard Signals.exitCode == nil else { break }
            line.begins(at: 0, of: nil)
            // An attempt that ends before its response leaves the part of the one before.
            let kept = report.kept.flatMap { $0.isResumable ? $0 : nil }
            (transfer, attempt) = (next, Attempt())
            report = await transfer.attempted(url, line, attempt)
            if report.failure != nil, report.kept == nil { report.kept = kept }
        }
        line.end(attempt.isUnchanged ? nil : report.savedLine(line.elapsed))
        return report
    }

    /// Makes one attempt.
    private func attempted(_ url: URL, _ line: Screen.Progress, _ attempt: Attempt) async -> Report {
        let watch = Watch(line, heads, ExchangeOutput(options, isTerminal: screen.bodyIsOnTerminal))
        var report = Report(url: AddressText.shown(url))
        if options.output.reportFile != nil { attempt.preview = BodyPreview() }
        do { try await load(url, watch, attempt) } catch let error as LoadError {
            // If the input could not be read, the error of the command's own body sequence is reported.
            report.failure =
                attempt.failure ?? (error.ownCause as? OutputError).map { Report.Failure($0) } ?? Report.Failure(error)
            if report.effectiveURL == nil { report.effectiveURL = error.url.map(AddressText.shown) }
        } catch let error as OutputError {
            report.failure = Report.Failure(error)
        } catch {
            report.failure = attempt.failure
        }
        if attempt.isUnchanged { report.failure = nil }
        attempt.fill(&report)
        return finished(report, watch)
    }

    private func load(_ url: URL, _ watch: Watch, _ attempt: Attempt) async throws {
        if let scheme = url.scheme?.lowercased(), OptionValue.allSchemes.contains(scheme),
            !options.request.schemes.contains(scheme)
        {
            throw OutputError(.unsupportedScheme, "--proto does not allow \(scheme)")
        }
        if case .file(let path) = options.output.destination {
            if options.saving.collision == .skip, FileCheck.exists(path), !FileCheck.isDevice(path) {
                attempt.isUnchanged = true
                return screen.message("\(path) exists already: not loaded")
            }
            if options.saving.makesFolders { try Folder.make(for: path) }
        }
        var request = try Request(options, url)
        if let limit = options.limits.rate { try await PacedInput.pace(&request, options, limit) }
        try await FTPUpload.prepare(&request, options, session)
        do {
            try await Watch.$current.withValue(watch) { try await carryOut(request, url, watch, attempt) }
        } catch {
            guard options.items.isOffline, let exchange = watch.exchange, exchange.hasRequest else { throw error }
            return try writeOffline(exchange, attempt)
        }
        try conclude(attempt)
    }

    /// Writes the request that `--offline` has made to the file of `-o`; to standard output it was written before.
    private func writeOffline(_ exchange: ExchangeOutput, _ attempt: Attempt) throws(OutputError) {
        let held = try exchange.takeHeld()
        guard case .file(let path) = options.output.destination else { return }
        let file = try AtomicFile(path: path)
        try file.write(held)
        try file.commit()
        attempt.file = path
    }

    /// Chooses the way in which the response is saved or written.
    private func carryOut(_ request: Request, _ url: URL, _ watch: Watch, _ attempt: Attempt) async throws {
        if let partial = partial { return try await append(to: partial, request, url, watch, attempt) }
        if let continuation = continuation { return try await saveResumably(continuation, request, watch, attempt) }
        if resumesByName { return try await resumeByName(request, url, watch, attempt) }
        guard options.request.uploadState == nil else { return try await uploadResumably(request, url, watch, attempt) }
        let decisions = decisions(watch, request)
        guard !options.output.printsEvents else { return try await receiveEvents(request, decisions, attempt) }
        var request = request
        if case .from(let offset) = options.output.resuming, options.request.upload == nil {
            request.headers[.range] = "bytes=\(offset)-"
        }
        rest?.request(in: &request)
        try await session.load(request, decisions: decisions) { response, body in
            try await receive(response, body, url, watch, attempt) { body.trailers }
        }
    }

    /// Resumes a part, of which the name is known now.
    func resume(at path: String, _ request: Request, _ url: URL, _ watch: Watch, _ attempt: Attempt) async throws {
        var transfer = self
        transfer.options.output.destination = .file(path)
        (transfer.options.saving.takesServersName, transfer.options.saving.takesLastURL) = (false, false)
        try await transfer.carryOut(request, url, watch, attempt)
    }

    /// Called after a complete body: saves the entity tag and the time of the file.
    private func conclude(_ attempt: Attempt) throws {
        if let path = options.data.tagToSave { try TagFile.write(attempt.response?.http?.headers[.etag], to: path) }
        // A file that was complete before has its own time: a server must not choose which file is changed.
        guard options.saving.setsTime, !attempt.isUnchanged, let file = attempt.file else { return }
        FileTime.set(attempt.response?.http?.headers, of: file)
    }

    /// The state of a load, used for the report if it ends early. Unchecked: used by the load's task, and by decisions
    /// for which that task waits.
    final class Attempt: @unchecked Sendable {
        var response: Response?
        var bytes: Int64 = 0
        var resumedAt: Int64 = 0
        var file: String?
        var failure: Report.Failure?
        var kept: Report.Kept?
        /// The beginning of the body, for a report.
        var preview: BodyPreview?
        /// True for a 304 to a conditional request: nothing is written, and the load has not failed.
        var isUnchanged = false
        /// True for a response that a condition (`-z`) has dropped.
        var isDropped = false

        func fill(_ report: inout Report) {
            report.bytes = bytes
            report.resumedAt = resumedAt
            report.file = file
            report.kept = file == nil ? kept : nil
            report.isUnchanged = isDropped
            report.head = response?.http
            report.preview = preview
            if let response { report.effectiveURL = AddressText.shown(response.url) }
        }
    }

    /// Thrown for a status that ends the load; the status itself is in the attempt.
    struct RefusedStatus: Error {}

    /// - Parameter trailers: called at the end of the body; returns its trailer fields.
    func receive<Body: AsyncSequence>(
        _ response: Response, _ body: Body, _ url: URL, _ watch: Watch, _ attempt: Attempt,
        trailers: () -> Headers = { Headers() }
    ) async throws where Body.Element: ContiguousBytes {
        attempt.response = response
        try heads?.check()
        do { try checkStatus(response, attempt) } catch {
            // As in curl, `-i` and `-I` show the head of a response whose body is not wanted.
            if options.output.destination == .standardOutput { _ = try open(response, url, watch) }
            throw error
        }
        if options.saving.collision == .skip, options.saving.namesFromResponse,
            options.output.destination == .namedAfterURL
        {
            let name = BodyOutput.wantedName(options, url, response)
            guard !FileCheck.exists(name) else {
                attempt.isUnchanged = true
                screen.message("\(name) exists already: not loaded")
                throw RefusedStatus()
            }
        }
        var skipped = try rest?.skipped(response.http) ?? 0
        attempt.bytes = (rest?.offset ?? 0) - skipped
        let output = try open(response, url, watch)
        watch.progress.answers(response.expectedLength)
        do {
            try await pass(body, watch, attempt) { bytes in
                let count = min(Int(clamping: skipped), bytes.count)
                skipped -= Int64(count)
                if !options.output.dropsBody { try output.write(UnsafeRawBufferPointer(rebasing: bytes[count...])) }
            }
            if let exchange = watch.exchange {
                try output.end(exchange)
            } else {
                try output.end(options.output.includesHead ? trailers() : Headers())
            }
            options.output.joined?.begin()
        } catch {
            if attempt.failure?.exit != .tooLarge {
                attempt.kept = output.leave(attempt.bytes, response.expectedLength)
            }
            throw error
        }
        if output.isDropped, let name = output.fileName {
            attempt.isUnchanged = true
            screen.message("\(name) exists by now: this body is not saved")
            throw RefusedStatus()
        }
        attempt.file = output.fileName
        try heads?.end(trailers())
        if options.output.failsWithBody, let status = response.http?.status, isFailure(status) {
            attempt.failure = Report.Failure(status)
            throw RefusedStatus()
        }
    }

    /// Reads a body at the rate of `--limit-rate`, and passes its pieces to `write`.
    /// - Parameter offset: the number of bytes that earlier runs have left of the file.
    func pass<Body: AsyncSequence>(
        _ body: Body, behind offset: Int64 = 0, _ watch: Watch, _ attempt: Attempt,
        to write: (UnsafeRawBufferPointer) throws -> Void
    ) async throws where Body.Element: ContiguousBytes {
        var throttle = options.limits.rate.map { Throttle(bytesPerSecond: $0) }
        for try await chunk in body {
            try checkSize(offset + attempt.bytes + Int64(chunk.withUnsafeBytes(\.count)), attempt)
            let count = try chunk.withUnsafeBytes { bytes in
                try write(bytes)
                attempt.preview?.add(bytes)
                return bytes.count
            }
            attempt.bytes += Int64(count)
            watch.progress.add(count)
            if let pause = throttle?.pause(after: count) { try await Task.sleep(for: pause) }
        }
    }

    /// Whether `--fail` or `--check-status` counts a status as a failure; httpie's also a redirect that is not
    /// followed.
    func isFailure(_ status: Status) -> Bool {
        status.code >= 400 || options.shared.grammar == .httpie && !options.redirects.areFollowed && status.code >= 300
    }

    /// Throws for more bytes than `--max-filesize` allows.
    func checkSize(_ bytes: Int64, _ attempt: Attempt) throws {
        guard let most = options.limits.bodySize, bytes > most else { return }
        attempt.failure = Report.Failure(Self.tooLarge("it has \(bytes) bytes or more", most))
        throw RefusedStatus()
    }

    static func tooLarge(_ words: String, _ most: Int64) -> LoadError {
        LoadError(
            .bodyTooLarge, phase: .receiving, party: .remote, detail: "\(words), and --max-filesize allows \(most)")
    }

    /// Throws for a status whose body is not to be written.
    func checkStatus(_ response: Response, _ attempt: Attempt) throws {
        guard let status = response.http?.status else { return }
        if status == .notModified, options.isConditional {
            attempt.isUnchanged = true
            throw RefusedStatus()
        }
        try checkCondition(response, status, attempt)
        if case .from(let offset) = options.output.resuming, offset > 0, status == .ok, options.request.upload == nil {
            attempt.failure = Report.Failure(
                LoadError(
                    .rangeNotSatisfiable, phase: .receiving, party: .remote,
                    detail: "the server ignores the range and sends the whole file")
            )
            throw RefusedStatus()
        }
        // As curl 8, which looks at the status before it reads Content-Length.
        guard options.output.failsOnStatus, !options.output.failsWithBody, isFailure(status) else {
            let announced =
                options.request.asksForHead ? response.http?.headers[.contentLength].flatMap { Int64($0) } : nil
            return try checkSize(announced ?? response.expectedLength ?? 0, attempt)
        }
        attempt.failure = Report.Failure(status)
        throw RefusedStatus()
    }

    /// Throws for a response that does not fulfil `-z`: a server that ignores the condition sends it all the same.
    private func checkCondition(_ response: Response, _ status: Status, _ attempt: Attempt) throws {
        guard let condition = options.data.condition, !options.saving.comparesTime, status.kind == .successful,
            let modified = response.http?.headers[.lastModified].flatMap({ HTTPDate($0) }),
            !condition.isFulfilled(by: modified)
        else { return }
        (attempt.isUnchanged, attempt.isDropped) = (true, true)
        throw RefusedStatus()
    }

    private func open(_ response: Response, _ url: URL, _ watch: Watch) throws(OutputError) -> BodyOutput {
        let output = try BodyOutput(options, url, response, isTerminal: screen.bodyIsOnTerminal)
        if let exchange = watch.exchange { try output.write(try exchange.begins(response.http)) }
        if options.output.includesHead || options.request.asksForHead,
            !options.output.printsSummary || output.fileName != nil
        {
            for head in watch.heads { try output.write(head: head) }
        }
        // For ftp, the properties of the response as fields with the same meaning.
        if options.request.asksForHead, response.http == nil { try output.write(HeadText.make(response)) }
        return output
    }

    private func receiveEvents(_ request: Request, _ decisions: Decisions, _ attempt: Attempt) async throws {
        for try await event in session.serverSentEvents(for: request, decisions: decisions) {
            try FileDescriptor.standardOutput.write(EventText.make(event, asJSON: options.output.printsSummary))
            attempt.bytes += Int64(event.data.utf8.count)
            try checkSize(attempt.bytes, attempt)
        }
    }

    /// - Parameter original: the request that is loaded.
    func decisions(_ watch: Watch, _ original: Request) -> Decisions {
        var decisions = Decisions()
        decisions.challenge = evidence?.challenge
        decisions.redirect = Decision { [options, screen] redirect in
            guard options.redirects.areFollowed else {
                watch.refused = AddressText.shown(redirect.request.url)
                return .doNotFollow
            }
            let scheme = redirect.request.url.scheme?.lowercased() ?? ""
            guard options.request.schemes.contains(scheme), options.redirects.schemes.contains(scheme) else {
                throw OutputError(.unsupportedScheme, "the redirect leads to \(scheme), which --proto does not allow")
            }
            watch.note(redirect)
            if options.trace != .off {
                screen.note(
                    "redirect \(redirect.count + 1): \(redirect.response.http?.status.code ?? 0) "
                        + "to \(AddressText.inMessage(redirect.request.url.absoluteString))"
                )
            }
            return RedirectChange.next(redirect, original, options).map { .instead($0) } ?? .follow
        }
        return decisions
    }

    private func finished(_ report: Report, _ watch: Watch) -> Report {
        var report = report
        report.metrics = watch.metrics
        report.timings = watch.metrics.map { Report.Timings($0) } ?? Report.Timings()
        report.redirects = watch.redirects
        report.redirectURL = watch.refused
        report.cacheDecisions = watch.cacheDecisions
        return report
    }
}

/// What options change in the request that follows a redirect.
enum RedirectChange {
    /// Returns the request to send; `nil` for the proposed one.
    static func next(_ redirect: Redirect, _ original: Request, _ options: Options) -> Request? {
        var next = redirect.request
        var isChanged = false
        let status = redirect.response.http?.status.code ?? 0
        if options.redirects.keepsPost.contains(status), original.method == .post, next.method != .post {
            (next.method, next.body) = (.post, original.body)
            for field in original.headers where field.name == .contentType && !next.headers.contains(.contentType) {
                next.headers.append(field.name, field.value)
            }
            isChanged = true
        } else if let method = options.request.method, next.method != method, method != .post {
            // As in curl, a method set with `-X` is kept across redirects.
            next.method = method
            isChanged = true
        }
        if options.data.refererFollows, let referer = referer(redirect.response.url, next.url),
            !options.request.removedFields.contains(.referer)
        {
            next.headers[.referer] = referer
            isChanged = true
        }
        return isChanged ? next : nil
    }

    /// Returns a URL without userinfo and fragment; `nil` if a server without TLS would learn one that was loaded with
    /// TLS (RFC 9110 §10.1.3).
    private static func referer(_ url: URL, _ next: URL) -> String? {
        guard url.scheme?.lowercased() != "https" || next.scheme?.lowercased() == "https" else { return nil }
        return String(AddressText.shown(url).prefix { $0 != "#" })
    }
}

extension Options {
    /// True if requests or heads are written into the file of the body (httpie's `-v -o FILE`).
    var printsMessages: Bool {
        items.prints.map { $0.parts != [.body] && !items.downloads } ?? false
    }

    /// True if a 304 can answer the request.
    var isConditional: Bool {
        data.condition != nil || data.tagToCompare != nil || request.fields.contains("If-None-Match")
            || request.fields.contains("If-Modified-Since")
    }
}
