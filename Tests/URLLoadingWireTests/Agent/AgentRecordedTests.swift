// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// The recorded bytes of version 1 of the agent's protocol.
@Suite struct AgentRecordedTests {
    /// A number never gets a second meaning: these bytes stay as they are when versions are added.
    private static let version1: [(AgentMessage, String)] = [
        (
            .hello(.init(lowest: 1, highest: 1, program: "sync")),
            "0000002d000100000000000001000000080000000000000001000200000008000000000000000100030000000473796e"
                + "63"
        ),
        (
            .welcome(.init(version: 1, process: 7, survival: "reboot", manner: "service")),
            "0000003c0002000000000000010000000800000000000000010002000000080000000000000007000300000006726562"
                + "6f6f7400040000000773657276696365"
        ),
        (
            .refused(.init(code: "identifierInUse", detail: "process 9", process: 9)),
            "000000390003000000000000010000000f6964656e746966696572496e55736500020000000970726f63657373203900"
                + "03000000080000000000000009"
        ),
        (
            .refused(.init(code: "version", detail: "1 to 1", highest: 1)),
            "0000003c0003000000000000010000000776657273696f6e0002000000063120746f2031000300000008000000000000"
                + "00000004000000080000000000000001"
        ),
        (
            .done,
            "0000000700040000000000"
        ),
        (
            .attach(.init(identifier: "a", settings: [1, 2], secrets: [3], answers: true)),
            "0000002b00050000000000000100000001610002000000020102000300000001030005000000080000000000000001"
        ),
        (
            .submit(.init(transfer: "t1", order: [1], secrets: [2])),
            "0000001d0006000000000000010000000274310002000000010100030000000102"
        ),
        (
            .list(after: 5),
            "00000015000700000000000001000000080000000000000005"
        ),
        (
            .page(.init(records: [[1], [2]], next: 9)),
            "000000230008000000000000010000000101000100000001020002000000080000000000000009"
        ),
        (
            .command(.init(transfer: "t1", verb: "pause")),
            "000000200009000000000000010000000274310002000000057061757365000300000000"
        ),
        (
            .listen,
            "00000007000a0000000000"
        ),
        (
            .event(.init(sequence: 3, record: [4])),
            "0000001c000b0000000000000100000008000000000000000300020000000104"
        ),
        (
            .acknowledge(sequence: 3),
            "00000015000c00000000000001000000080000000000000003"
        ),
        (
            .progress(.init(transfer: "t1", received: 1, expectedToReceive: -1, sent: 0, expectedToSend: -1)),
            "00000047000d000000000000010000000274310002000000080000000000000001000300000008ffffffffffffffff00"
                + "04000000080000000000000000000500000008ffffffffffffffff"
        ),
        (
            .finishedEvents,
            "00000007000e0000000000"
        ),
        (
            .status,
            "00000007000f0000000000"
        ),
        (
            .report(text: "idle"),
            "000000110010000000000000010000000469646c65"
        ),
        (
            .handOver,
            "0000000700110000000000"
        ),
        (
            .detach,
            "0000000700120000000000"
        ),
        (
            .identifiers,
            "0000000700130000000000"
        ),
        (
            .challenge(.init(number: 1, transfer: "t1", record: [5])),
            "00000024001400000000000001000000080000000000000001000200000002743100030000000105"
        ),
    ]

    @Test("The recorded messages of version 1 are read as before, and written as before")
    func messages() throws {
        for (message, text) in Self.version1 {
            let bytes = stride(from: 0, to: text.count, by: 2).compactMap { offset in
                UInt8(text.dropFirst(offset).prefix(2), radix: 16)
            }
            var decoder = AgentFrameDecoder()
            decoder.receive(bytes)
            let frame = try #require(try decoder.next())
            #expect(try AgentMessage(frame) == message)
            #expect(try message.frame(id: 0).encoded() == bytes, "\(message)")
        }
    }

    @Test("A build that speaks version 2 as well speaks version 1 with a program or an agent of version 1")
    func common() {
        let recorded = AgentMessage.Hello(lowest: 1, highest: 1, program: "sync")
        #expect(AgentVersions.common(recorded, own: 1...2) == 1)
        #expect(AgentVersions.common(.init(lowest: 1, highest: 2, program: "sync"), own: 1...1) == 1)
        #expect(AgentVersions.common(.init(lowest: 1, highest: 2, program: "sync"), own: 1...2) == 2)
        #expect(AgentVersions.common(recorded, own: 2...2) == nil)
    }
}
