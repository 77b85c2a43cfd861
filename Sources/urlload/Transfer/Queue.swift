// SPDX-License-Identifier: Apache-2.0

// Runs the jobs of a group: in order; with `-O` as many at a time as the limit of connections per host; with `-Z` as
// many as `--parallel-max`.

import URLLoading

struct Queue: Sendable {
    private let options: Options
    private let session: Session
    private let screen: Screen
    private let heads: HeadFile?
    private let evidence: Evidence?

    init(_ options: Options, _ session: Session, _ screen: Screen, _ heads: HeadFile?) {
        self.options = options
        self.session = session
        self.screen = screen
        self.heads = heads
        evidence = options.output.reportFile.map { _ in Evidence() }
    }

    /// - Returns: the ending of the first load that failed, or the one that counts in the grammar.
    func run(_ jobs: [Job]) async -> Ending {
        var total = Total()
        let ending = await withTaskGroup(of: (Job, Report).self) { group in
            var ending = Ending.done
            var waiting = jobs[...]
            var nextStart = ContinuousClock.now
            for _ in 0..<min(width(jobs), jobs.count) { await start(&waiting, &group, &nextStart) }
            for await (job, report) in group {
                total.add(report)
                let own = printReport(report, job)
                ending = ending.followed(by: own, in: options.shared.grammar)
                // The reader of the output is gone, or the user has interrupted the command, or `--fail-early` applies.
                if own.code == .brokenPipe || Signals.exitCode != nil || options.shared.failsEarly && own != .done {
                    waiting = []
                }
                await start(&waiting, &group, &nextStart)
            }
            return ending
        }
        let drawn = draw(total.reports)
        if let line = total.line, jobs.count > 1, screen.showsProgress { screen.plain(line) }
        return ending == .done ? Ending(drawn) : ending
    }

    /// Draws `--waterfall` and writes `--report`.
    private func draw(_ reports: [Report]) -> ExitCode {
        do throws(OutputError) {
            if options.output.drawsWaterfall {
                try Drawing.draw(Waterfall(reports.compactMap(\.metrics)), on: .standardError)
            }
            if let path = options.output.reportFile, let evidence {
                try evidence.write(reports, to: path)
            }
            return .done
        } catch {
            screen.error(error.words)
            return error.code
        }
    }

    private func width(_ jobs: [Job]) -> Int {
        if options.shared.isParallel { return options.shared.maximumParallel ?? 50 }
        let areNamed = options.outputs.contains(.namedAfterURL) || options.saving.namesAll
        return areNamed && options.shared.interval == nil ? session.configuration.connections.maximumPerHost : 1
    }

    private func start(
        _ waiting: inout ArraySlice<Job>, _ group: inout TaskGroup<(Job, Report)>,
        _ nextStart: inout ContinuousClock.Instant
    ) async {
        guard let job = waiting.popFirst() else { return }
        if let interval = options.shared.interval {
            try? await Task.sleep(until: nextStart)
            nextStart = max(nextStart, .now) + interval
        }
        if let note = job.note { screen.message(note) }
        let transfer = Transfer(
            options: job.options, session: session, screen: screen, heads: heads, evidence: evidence)
        group.addTask { (job, await transfer.run(job.url)) }
    }

    private func printReport(_ report: Report, _ job: Job) -> Ending {
        let code = report.failure?.exit ?? .done
        if let failure = report.failure, code != .brokenPipe, Signals.exitCode == nil {
            let address =
                failure.exit == .write || failure.exit == .read
                ? "" : AddressText.inMessage(report.effectiveURL ?? report.url) + ": "
            screen.error(address + ErrorWords.make(failure, in: job.options.shared.grammar))
        }
        if let kept = report.kept { screen.message(kept.words(options)) }
        if code == .done, let page = ErrorWords.savedPage(report, in: options.shared.grammar) { screen.message(page) }
        var written = ExitCode.done
        // No line of a summary follows the lines of events, so that every line is an event.
        if options.output.printsSummary, !options.output.printsEvents {
            written = Console.print(report.json.description + "\n")
        }
        if let format = options.output.writeOut {
            for piece in WriteOut.make(format, report, job) {
                if piece.isError {
                    try? FileDescriptor.standardError.write(piece.text)
                } else if written == .done {
                    written = Console.print(piece.text)
                }
            }
        }
        guard code != .done else { return Ending(written) }
        return Ending(code, report.failure?.status, isByServer: report.failure?.party == "remote")
    }
}

/// The totals of a group.
struct Total: Sendable {
    private var files = 0
    private var failures = 0
    private var bytes: Int64 = 0
    private let start = ContinuousClock.now
    /// The loads that were measured.
    private(set) var reports: [Report] = []

    mutating func add(_ report: Report) {
        if report.failure == nil { files += 1 } else { failures += 1 }
        bytes += report.bytes
        if report.metrics != nil { reports.append(report) }
    }

    /// `12 loads, 3.1 MiB in 4.2 s, 755 KiB/s; 1 failed`.
    var line: String? {
        guard files + failures > 0 else { return nil }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        let failed = failures > 0 ? "; \(failures) failed" : ""
        return "\(files) loaded, " + SummaryText.amount(bytes, seconds) + failed
    }
}

/// Messages about a load that has ended.
enum SummaryText {
    /// `200.0 MiB in 8.1 s, 24.7 MiB/s`.
    static func amount(_ bytes: Int64, _ seconds: Double) -> String {
        let tenths = Int64((seconds * 10).rounded())
        let rate = seconds > 0.05 ? ", \(ProgressLine.size(Int64(Double(bytes) / seconds)))/s" : ""
        return "\(ProgressLine.size(bytes)) in \(tenths / 10).\(tenths % 10) s\(rate)"
    }
}

extension Report {
    /// `saved a.iso, 200.0 MiB in 8.1 s, 24.7 MiB/s, resumed at 92.0 MiB`; `nil` if nothing was saved.
    func savedLine(_ seconds: Double) -> String? {
        guard let file, failure == nil else { return nil }
        let resumed = resumedAt > 0 ? ", resumed at \(ProgressLine.size(resumedAt))" : ""
        return "saved \(file), \(SummaryText.amount(bytes, seconds))\(resumed)"
    }
}

extension Report.Kept {
    /// The partial file, and how to resume it.
    func words(_ options: Options) -> String {
        let of = total.map { " of \(ProgressLine.size($0))" } ?? ""
        guard isResumable else {
            return "\(file): \(ProgressLine.size(bytes))\(of) were received; they are in \(file).part"
        }
        let grammar = options.shared.grammar
        let advice =
            switch (options.output.resuming, isChecked) {
            case (.always, _), (.ifChecked, true): "repeat the command to resume"
            case (_, true): grammar.naming("repeat with -C to resume")
            default: "repeat with \(grammar == .curl ? "-C -" : "-c") to resume without validation"
            }
        return "\(file): \(ProgressLine.size(bytes))\(of) are kept; \(advice)"
    }
}
