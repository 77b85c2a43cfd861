// SPDX-License-Identifier: Apache-2.0

// The lines that `urlload bg` prints about transfers.

import FoundationEssentials
import URLLoading

enum BackgroundLines {
    static func text(_ transfer: BackgroundTransfer, _ identifier: String) -> String {
        let (count, expected) = counts(transfer)
        var words = [transfer.id.prefix(8).description, state(transfer)]
        words.append(expected.map { "\(count)/\($0)" } ?? "\(count)")
        words.append(transfer.url?.absoluteString ?? "-")
        if let destination = transfer.destination { words.append("→ \(destination.path(percentEncoded: false))") }
        if !identifier.hasPrefix("urlload.") { words.append("(\(identifier))") }
        if case .waiting(let reason, _) = transfer.state { words.append("[\(reason)]") }
        return words.joined(separator: "  ")
    }

    /// The lines for a terminal: titles, and a line for each transfer, which a narrow terminal folds: a path that was
    /// cut could not be copied.
    static func table(_ all: [(BackgroundTransfer, String)]) -> [String] {
        guard !all.isEmpty else { return ["no transfers"] }
        let rows = all.map { (transfer, identifier) in
            var what = transfer.url?.absoluteString ?? "-"
            if let destination = transfer.destination { what += " → \(destination.path(percentEncoded: false))" }
            if !identifier.hasPrefix("urlload.") { what += " (\(identifier))" }
            if case .waiting(let reason, _) = transfer.state { what += " [\(reason)]" }
            if let error = transfer.error, error.reason != .cancelled { what += " [\(error.reason.name)]" }
            return [transfer.id.prefix(8).description, state(transfer)] + progress(transfer) + [what.withoutControls]
        }
        let titles = ["ID", "STATE", "DONE", "SIZE", "TRANSFER"]
        let widths = titles.indices.map { column in ([titles] + rows).map { $0[column].count }.max() ?? 0 }
        return ([titles] + rows).map { row in
            row.indices.map { column in
                let space = String(repeating: " ", count: widths[column] - row[column].count)
                return column == 2 || column == 3
                    ? space + row[column] : column == 4 ? row[column] : row[column] + space
            }.joined(separator: "  ")
        }
    }

    /// The share that is done, and the size, for people.
    private static func progress(_ transfer: BackgroundTransfer) -> [String] {
        let (count, expected) = counts(transfer)
        guard let expected, expected > 0 else { return ["", count == 0 ? "" : ProgressLine.size(count)] }
        return ["\(Int(min(1, Double(count) / Double(expected)) * 100)) %", ProgressLine.size(expected)]
    }

    static func json(_ transfer: BackgroundTransfer, _ identifier: String) -> String {
        let (count, expected) = counts(transfer)
        var object: [(String, JSONText)] = [
            ("id", .text(transfer.id)), ("session", .text(identifier)), ("state", .text(state(transfer))),
            ("kind", .text(transfer.kind == .download ? "download" : "upload")),
            ("method", .text(transfer.method.rawValue)),
            ("url", transfer.url.map { .text($0.absoluteString) } ?? .null),
            ("label", .text(transfer.label)), ("bytes", .integer(count)),
            ("expected", expected.map { .integer($0) } ?? .null),
            ("attempts", .integer(Int64(transfer.attempts))),
        ]
        object.append(("file", transfer.destination.map { .text($0.path(percentEncoded: false)) } ?? .null))
        if case .waiting(let reason, _) = transfer.state { object.append(("reason", .text(reason))) }
        if let error = transfer.error { object.append(("error", .text(error.reason.name))) }
        return JSONText.object(object).description
    }

    private static func counts(_ transfer: BackgroundTransfer) -> (Int64, Int64?) {
        transfer.kind == .download
            ? (transfer.received, transfer.expectedToReceive) : (transfer.sent, transfer.expectedToSend)
    }

    private static func state(_ transfer: BackgroundTransfer) -> String {
        switch transfer.state {
        case .queued: "queued"
        case .waiting: "waiting"
        case .running: "running"
        case .suspended: "paused"
        case .finished: transfer.error.map { $0.reason == .cancelled ? "cancelled" : "failed" } ?? "finished"
        }
    }

    static func result(_ event: BackgroundEvent) -> (String, ExitCode) {
        let id = event.transfer.id.prefix(8)
        switch event.result {
        case .downloaded(let file):
            return (
                "\(id)  \(file.response.status.code)  \(file.size)  \(file.url.path(percentEncoded: false))",
                BackgroundNote.exitCode(event.transfer, file.response)
            )
        case .uploaded(let data, let response):
            return (
                "\(id)  \(response.status.code)  answered with \(data.count) bytes",
                BackgroundNote.exitCode(event.transfer, response)
            )
        case .failed(let error):
            return ("\(id)  failed  \(error)", ExitCode(error))
        }
    }

    static func words(_ survival: BackgroundSurvival) -> String {
        switch survival {
        case .untilStop(let unit): "until \(unit) is stopped; they continue when the program starts again"
        case .untilLogout: "until the user's last logout; 'loginctl enable-linger' lets them continue"
        case .untilReboot: "until a reboot; they continue when the program starts again"
        case .reboot: "also a reboot, after which they continue without the program"
        }
    }
}
