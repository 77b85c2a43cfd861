// SPDX-License-Identifier: Apache-2.0

// The certificates, heads and bodies of a group of loads, collected for `--report`.

import FoundationEssentials
import Synchronization
import URLLoading
import URLLoadingIO

struct Evidence: Sendable {
    /// Notes the certificates of servers, and decides nothing itself. One for all loads: a connection belongs to the
    /// decision that was asked about it.
    let challenge: Decision<Challenge, ChallengeDecision>
    private let trusts: Trusts

    /// The first trust that each server was checked with, by `host:port`.
    private final class Trusts: Sendable {
        private let all = Lock<[String: ServerTrust]>([:])

        func note(_ trust: ServerTrust, of space: ProtectionSpace) {
            all.withLock { all in
                let key = Self.key(space.host, space.port)
                if all[key] == nil { all[key] = trust }
            }
        }

        subscript(host: String, port: Int) -> ServerTrust? { all.withLock { $0[Self.key(host, port)] } }

        private static func key(_ host: String, _ port: Int) -> String { "\(host.lowercased()):\(port)" }
    }

    init() {
        let trusts = Trusts()
        self.trusts = trusts
        challenge = Decision { challenge in
            if let trust = challenge.serverTrust, !challenge.protectionSpace.isProxy {
                trusts.note(trust, of: challenge.protectionSpace)
            }
            return .performDefaultHandling
        }
    }

    /// The loads by the paths of their pages. Groups of the command line that name the same file share it.
    private static let shown = Lock<[String: [Shown]]>([:])

    private struct Shown: Sendable {
        let report: Report
        let evidence: Evidence
    }

    /// Writes the page of loads that have ended, behind those of earlier groups in the same file.
    func write(_ reports: [Report], to path: String) throws(OutputError) {
        let own = reports.filter { $0.metrics != nil }.map { Shown(report: $0, evidence: self) }
        let all = Self.shown.withLock { shown -> [Shown] in
            // What went to standard output is there already.
            let isSeen = path == "-" || FileDescriptor.standard(path) != nil
            let earlier = isSeen ? [] : shown[path] ?? []
            shown[path] = earlier + own
            return earlier + own
        }
        let page = ReportPage.make(Waterfall(all.compactMap(\.report.metrics))) { row in
            all[row.load].evidence.details(row, all[row.load].report)
        }
        try Drawing.write(page, to: path)
    }

    private func details(_ row: Waterfall.Row, _ report: Report) -> RequestDetails {
        guard let transactions = report.metrics?.transactions else { return RequestDetails() }
        let transaction = transactions[row.transaction]
        let before = transactions[..<row.transaction].count { ($0.response?.http?.status).map(Self.redirects) ?? false }
        var details = RequestDetails()
        details.cache = report.cacheDecisions[before]
        let url = transaction.request.url
        if url.scheme?.lowercased() == "https" || transaction.tlsVersion != nil {
            details.trust =
                transaction.error?.serverTrust ?? trusts[url.hostInNormalForm ?? url.host() ?? "", url.port ?? 443]
        }
        if row.transaction == transactions.count - 1 { details.body = report.preview }
        return details
    }

    private static func redirects(_ status: Status) -> Bool {
        (300..<400).contains(status.code) && status != .notModified
    }
}

extension BodyPreview {
    /// The beginning of a body that was written to a file.
    init(file path: String, total: Int64) {
        let bytes = (try? InputFile(path))?.beginning ?? []
        self.init(bytes, total: total)
    }
}

extension InputFile {
    /// The first piece of the file; `nil` if there is none, or it cannot be read.
    fileprivate var beginning: [UInt8]? { try? next() }
}
