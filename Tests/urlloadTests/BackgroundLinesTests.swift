// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoading
@testable import urlload

/// The lines of `urlload bg ls`.
@Suite struct BackgroundLinesTests {
    /// Connects for a command to a transfer only.
    private static let connection = BackgroundConnection(
        Configuration.Background(identifier: "urlload.rows"), settings: SessionSettings(), secrets: SessionSecrets(),
        facts: AgentLauncher.facts())

    private func transfer(
        _ id: String, _ kind: TransferOrder.Kind, _ state: TransferRecord.State, _ bytes: Int64 = 0,
        of expected: Int64? = nil, to destination: String? = nil, reason: String? = nil,
        failed error: LoadError.Reason? = nil
    ) -> BackgroundTransfer {
        let order = TransferOrder(
            kind: kind, shownURL: "https://example.org/\(id.prefix(1))", method: "GET", fields: [], created: 0)
        var record = TransferRecord(id: id, number: 1, order: order, state: state)
        if kind == .download {
            (record.received, record.expectedToReceive) = (bytes, expected)
        } else {
            (record.sent, record.expectedToSend) = (bytes, expected)
        }
        (record.destination, record.reason) = (destination, reason)
        record.outcome = error.map {
            TransferOutcome.failed(TransferError(LoadError($0, phase: .receiving, party: .local)))
        }
        return BackgroundTransfer(record, Self.connection)
    }

    private var all: [(BackgroundTransfer, String)] {
        [
            (
                transfer("aaaaaaaa-1", .download, .running, 5 << 20, of: 10 << 20, to: "/home/ada/film"),
                "urlload.1"
            ),
            (transfer("bbbbbbbb-2", .download, .finished, failed: .cancelled), "urlload.1"),
            (transfer("cccccccc-3", .download, .waiting, 2_048, reason: "no network"), "org.example.sync"),
            (transfer("dddddddd-4", .download, .finished, failed: .hostNotFound), "urlload.1"),
            (transfer("eeeeeeee-5", .upload, .finished, 100, of: 100), "urlload.1"),
            (transfer("ffffffff-6", .download, .paused, 0, of: 10), "urlload.1"),
        ]
    }

    @Test("A terminal gets titles, and the per cent, the size and the end of each transfer")
    func table() {
        #expect(
            BackgroundLines.table(all) == [
                "ID        STATE       DONE      SIZE  TRANSFER",
                "aaaaaaaa  running     50 %  10.0 MiB  https://example.org/a → /home/ada/film",
                "bbbbbbbb  cancelled                   https://example.org/b",
                "cccccccc  waiting            2.0 KiB  https://example.org/c (org.example.sync) [no network]",
                "dddddddd  failed                      https://example.org/d [hostNotFound]",
                "eeeeeeee  finished   100 %     100 B  https://example.org/e",
                "ffffffff  paused       0 %      10 B  https://example.org/f",
            ])
        #expect(BackgroundLines.table([]) == ["no transfers"])
    }

    @Test("A pipe gets a plain line for each transfer, with bytes")
    func plain() {
        #expect(
            all.map { BackgroundLines.text($0, $1) } == [
                "aaaaaaaa  running  5242880/10485760  https://example.org/a  → /home/ada/film",
                "bbbbbbbb  cancelled  0  https://example.org/b",
                "cccccccc  waiting  2048  https://example.org/c  (org.example.sync)  [no network]",
                "dddddddd  failed  0  https://example.org/d", "eeeeeeee  finished  100/100  https://example.org/e",
                "ffffffff  paused  0/10  https://example.org/f",
            ])
    }

    @Test("The name of a file does not control the terminal, and its letters stay")
    func names() {
        let path = "/\u{1B}[2J\nfilm\u{9B}映画\u{7F}"
        let lines = BackgroundLines.table([
            (transfer("aaaaaaaa", .download, .running, 1, of: 3, to: path), "urlload.1")
        ])
        #expect(
            lines == [
                "ID        STATE    DONE  SIZE  TRANSFER",
                "aaaaaaaa  running  33 %   3 B  https://example.org/a → /\u{FFFD}[2J\u{FFFD}film\u{FFFD}映画\u{FFFD}",
            ])
    }
}
