// One URL, from the command line to its output. Whatever happens ends in a `Report`.

import FoundationEssentials
import URLLoading

struct Transfer: Sendable {
    let options: Options
    let session: Session
    let screen: Screen

    @concurrent func run(_ text: String) async -> Report {
        let watch = Watch()
        guard let url = AddressText.url(text) else {
            var report = Report(url: text)
            report.failure = Report.Failure(LoadError(.badURL, phase: .preparing, party: .local))
            return finished(report, watch)
        }
        var report = Report(url: AddressText.shown(url))
        let progress = Attempt()
        do {
            let request = try Request(options, url)
            try await Watch.$current.withValue(watch) {
                if let continuation = continuation(url) { return try await carryOn(continuation, request, watch, progress) }
                try await session.load(request, decisions: decisions(watch)) { response, body in
                    try await receive(response, body, url, progress)
                }
            }
        } catch let error as LoadError {
            // A file that could not be read is named by what our own sequence threw.
            report.failure = progress.failure ?? (error.underlying as? OutputError).map { Report.Failure($0) } ?? Report.Failure(error)
            if report.effectiveURL == nil { report.effectiveURL = error.url.map(AddressText.shown) }
        } catch let error as OutputError {
            report.failure = Report.Failure(error)
        } catch {
            report.failure = progress.failure
        }
        progress.tell(&report)
        return finished(report, watch)
    }

    /// What is known of a load when it ends early. Used by one task.
    private final class Attempt: @unchecked Sendable {
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

    private func receive(_ response: Response, _ body: ResponseBody, _ url: URL, _ attempt: Attempt) async throws {
        attempt.response = response
        if options.failsOnStatus, let status = response.http?.status, status.code >= 400 {
            attempt.failure = Report.Failure(status)
            throw RefusedStatus()
        }
        let output = try BodyOutput(options, url)
        if options.includesHead || options.asksForHead, !options.printsJSON || output.fileName != nil, let head = response.http {
            try output.write(HeadText.make(head))
        }
        screen.expect(response.expectedLength)
        for try await chunk in body {
            var failure: OutputError?
            chunk.withUnsafeBytes { bytes in
                do throws(OutputError) { try output.write(bytes) } catch { failure = error }
            }
            if let failure { throw failure }
            attempt.bytes += Int64(chunk.count)
            screen.progress(chunk.count)
        }
        try output.commit()
        attempt.file = output.fileName
    }

    /// `nil` for what is not continued, or no file.
    private func continuation(_ url: URL) -> Continuation? {
        guard options.continues else { return nil }
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
        if options.failsOnStatus {
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
                if let expected = response.expectedLength { screen.expect(expected) }
            case .resumed(let offset, _) where offset > 0: screen.message("\(continuation.path): goes on at byte \(offset)")
            case .received(let bytes):
                attempt.bytes += Int64(bytes.count)
                screen.progress(bytes.count)
            default: break
            }
        }
        attempt.file = continuation.path
    }

    private func decisions(_ watch: Watch) -> Decisions {
        var decisions = Decisions()
        decisions.redirect = Decision { [options, screen] redirect in
            guard options.followsRedirects else { return .deliver }
            watch.note(redirect)
            if options.trace != .off {
                screen.note("redirect \(redirect.count + 1): \(redirect.response.http?.status.code ?? 0) to \(AddressText.shown(redirect.request.url))")
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
