// One URL, from the command line to its output. Whatever happens ends in a `Report`.

import FoundationEssentials
import URLLoading

struct Transfer: Sendable {
    let options: Options
    let session: Session
    let screen: Screen

    @concurrent func run(_ text: String) async -> Report {
        let address = AddressText.url(text)
        let line = screen.progress(of: address.map(FileName.make) ?? AddressText.inMessage(text))
        defer { line.end() }
        let watch = Watch(line)
        guard let url = address else {
            var report = Report(url: AddressText.inMessage(text))
            report.failure = Report.Failure(LoadError(.badURL, phase: .preparing, party: .local))
            return finished(report, watch)
        }
        var report = Report(url: AddressText.shown(url))
        let attempt = Attempt()
        do {
            var request = try Request(options, url)
            try await FTPUpload.prepare(&request, options, session)
            try await Watch.$current.withValue(watch) {
                if let continuation = continuation(url) {
                    return try await carryOn(continuation, request, watch, attempt)
                }
                guard options.uploadState == nil else { return try await uploadResumably(request, url, watch, attempt) }
                guard !options.printsEvents else { return try await receiveEvents(request, decisions(watch), attempt) }
                try await session.load(request, decisions: decisions(watch)) { response, body in
                    try await receive(response, body, url, watch, attempt)
                }
            }
        } catch let error as LoadError {
            // A file that could not be read is named by what our own sequence threw.
            report.failure =
                attempt.failure ?? (error.ownCause as? OutputError).map { Report.Failure($0) } ?? Report.Failure(error)
            if report.effectiveURL == nil { report.effectiveURL = error.url.map(AddressText.shown) }
        } catch let error as OutputError {
            report.failure = Report.Failure(error)
        } catch {
            report.failure = attempt.failure
        }
        attempt.tell(&report)
        return finished(report, watch)
    }

    /// What is known of a load when it ends early. Used by one task.
    final class Attempt: @unchecked Sendable {
        var response: Response?
        var bytes: Int64 = 0
        var file: String?
        var failure: Report.Failure?

        func tell(_ report: inout Report) {
            report.bytes = bytes
            report.file = file
            report.head = response?.http
            if let response { report.effectiveURL = AddressText.shown(response.url) }
        }
    }

    /// A status that `-f` takes as a failure; kept in the attempt.
    private struct RefusedStatus: Error {}

    func receive<Body: AsyncSequence>(
        _ response: Response, _ body: Body, _ url: URL, _ watch: Watch, _ attempt: Attempt
    ) async throws where Body.Element: ContiguousBytes {
        attempt.response = response
        if options.failsOnStatus, let status = response.http?.status, status.code >= 400 {
            attempt.failure = Report.Failure(status)
            throw RefusedStatus()
        }
        let output = try open(response, url)
        watch.progress.answers(response.expectedLength)
        for try await chunk in body {
            let count = try chunk.withUnsafeBytes { bytes in
                try output.write(bytes)
                return bytes.count
            }
            attempt.bytes += Int64(count)
            watch.progress.add(count)
        }
        try output.commit()
        attempt.file = output.fileName
    }

    /// `nil` for what is not continued, or no file.
    private func continuation(_ url: URL) -> Continuation? {
        guard options.continues, options.upload == nil else { return nil }
        return switch options.destination {
        case .standardOutput: nil
        case .file(let path): Continuation(path)
        case .namedAfterURL: Continuation(FileName.make(for: url))
        }
    }

    private func carryOn(
        _ continuation: Continuation, _ request: Request, _ watch: Watch, _ attempt: Attempt
    ) async throws {
        var decisions = decisions(watch)
        // An error page is no rest; what is held stays for another time.
        if options.failsOnStatus || continuation.hasNotes {
            decisions.response = Decision { response in
                guard let status = response.http?.status, status.code >= 400 else { return .allow }
                attempt.response = response
                attempt.failure = Report.Failure(status)
                return .cancel
            }
        }
        _ = try await continuation.run(request, session, decisions) { event in
            switch event {
            case .responded(let response):
                attempt.response = response
                watch.progress.answers(response.expectedLength)
            case .resumed(let offset, _) where offset > 0:
                screen.message("\(continuation.path): goes on at byte \(offset)")
            case .received(let bytes):
                attempt.bytes += Int64(bytes.count)
                watch.progress.add(bytes.count)
            default: break
            }
        }
        attempt.file = continuation.path
    }

    private func open(_ response: Response, _ url: URL) throws(OutputError) -> BodyOutput {
        let output = try BodyOutput(options, url)
        if options.includesHead || options.asksForHead, !options.printsJSON || output.fileName != nil,
            let head = response.http
        {
            try output.write(HeadText.make(head))
        }
        // What ftp has in a head's place, as fields of the same meaning.
        if options.asksForHead, response.http == nil { try output.write(HeadText.make(response)) }
        return output
    }

    private func receiveEvents(_ request: Request, _ decisions: Decisions, _ attempt: Attempt) async throws {
        for try await event in session.serverSentEvents(for: request, decisions: decisions) {
            try FileDescriptor.standardOutput.write(EventText.make(event, asJSON: options.printsJSON))
            attempt.bytes += Int64(event.data.utf8.count)
        }
    }

    func decisions(_ watch: Watch) -> Decisions {
        var decisions = Decisions()
        decisions.redirect = Decision { [options, screen] redirect in
            guard options.followsRedirects else { return .doNotFollow }
            watch.note(redirect)
            if options.trace != .off {
                screen.note(
                    "redirect \(redirect.count + 1): \(redirect.response.http?.status.code ?? 0) to \(AddressText.inMessage(redirect.request.url.absoluteString))"
                )
            }
            return .follow
        }
        return decisions
    }

    private func finished(_ report: Report, _ watch: Watch) -> Report {
        var report = report
        report.timings = watch.timings
        report.redirects = watch.redirects
        return report
    }
}
