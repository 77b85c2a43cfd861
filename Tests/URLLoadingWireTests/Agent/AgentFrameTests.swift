// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

@Suite struct AgentFrameTests {
    static let messages: [AgentMessage] = [
        .hello(.init(lowest: 1, highest: 3, program: "sync")),
        .attach(.init(identifier: "org.example.sync", settings: [1, 2], secrets: [])), .detach,
        .attach(.init(identifier: "org.example.sync", settings: [], secrets: [], answers: true, wasWoken: true)),
        .submit(.init(transfer: "t1", order: [UInt8](repeating: 7, count: 3_000), secrets: [9])),
        .list(after: .max), .command(.init(transfer: "t1", verb: "pause")), .listen, .acknowledge(sequence: 12),
        .status, .handOver, .fleet, .drain,
        .welcome(.init(version: 1, process: 77, survival: "untilLogout", manner: "spawned")), .done,
        .refused(.init(code: "identifierInUse", detail: "process 5 has it", process: 5)),
        .page(.init(records: [[1], [], [2, 3]], next: 4)), .page(.init(records: [], next: nil)),
        .event(.init(sequence: -1, record: [])),
        .progress(.init(transfer: "t", received: 1, expectedToReceive: -1, sent: 0, expectedToSend: 0)),
        .finishedEvents, .report(text: "ü"), .unknown(kind: 999),
    ]

    static func stream() throws -> [UInt8] {
        try messages.enumerated().flatMap { try $1.frame(id: UInt32($0), descriptorCount: $0 % 3).encoded() }
    }

    static func read(_ pieces: [[UInt8]]) throws(WireViolation) -> [AgentFrame] {
        var decoder = AgentFrameDecoder()
        var frames: [AgentFrame] = []
        for piece in pieces {
            decoder.receive(piece)
            while let frame = try decoder.next() { frames.append(frame) }
        }
        return frames
    }

    @Test func `Every message is read as it was written, however the bytes are cut`() throws {
        let bytes = try Self.stream()
        let whole = try Self.read([bytes])
        #expect(try whole.map { try AgentMessage($0) } == Self.messages)
        #expect(whole.map(\.id) == Self.messages.indices.map { UInt32($0) })
        #expect(whole.map(\.descriptorCount) == Self.messages.indices.map { $0 % 3 })
        #expect(try Self.read(bytes.map { [$0] }) == whole)
        for cut in stride(from: 0, through: bytes.count, by: 7) {
            #expect(try Self.read([Array(bytes[..<cut]), Array(bytes[cut...])]) == whole)
        }
    }

    @Test func `A stream that ends within a frame yields the frames before it and reports the cut`() throws {
        let bytes = try AgentMessage.listen.frame(id: 1).encoded()
        for count in 1..<bytes.count {
            var decoder = AgentFrameDecoder()
            decoder.receive(bytes + bytes[..<count])
            #expect(try decoder.next() != nil)
            #expect(try decoder.next() == nil)
            #expect(decoder.isInFrame)
        }
    }

    @Test func `A length beyond 1 MiB is refused after its four bytes, and nothing is buffered`() {
        var decoder = AgentFrameDecoder()
        decoder.receive([0xFF, 0xFF, 0xFF, 0xFF])
        for _ in 0..<2 {
            let error = #expect(throws: WireViolation.self) { try decoder.next() }
            #expect(error?.code == .agentFrameTooLarge)
            decoder.receive([UInt8](repeating: 0, count: 1_000))
        }
        #expect(!decoder.isInFrame)
    }

    @Test(
        "A frame shorter than its header, or a field longer than its frame, is malformed",
        arguments: [
            [0, 0, 0, 6, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 8, 0, 1, 0, 0, 0, 0, 0, 9],
            [0, 0, 0, 13, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1],
        ] as [[UInt8]])
    func aFrameShorterThanItsHeaderOrAFieldLongerThanItsFrameIsMalfor(_ bytes: [UInt8]) {
        let error = #expect(throws: WireViolation.self) { try Self.read([bytes]) }
        #expect(error?.code == .malformedAgentFrame)
    }

    @Test func `A frame with more than two descriptors is refused by both sides`() {
        let bytes: [UInt8] = [0, 0, 0, 7, 0, 10, 3, 0, 0, 0, 0]
        let received = #expect(throws: WireViolation.self) { try Self.read([bytes]) }
        #expect(received?.code == .wrongDescriptorCount && received?.party == .remote)
        let sent = #expect(throws: WireViolation.self) {
            try AgentMessage.listen.frame(id: 0, descriptorCount: 3).encoded()
        }
        #expect(sent?.code == .wrongDescriptorCount && sent?.party == .local)
    }

    @Test func `A frame of exactly 1 MiB is accepted; one byte more is refused by the sender`() throws {
        var fields = AgentFields()
        fields.set(2, bytes: [UInt8](repeating: 1, count: AgentFrame.largest - 11 - 6))
        let bytes = try AgentFrame(kind: 6, id: 0, fields: fields).encoded()
        #expect(bytes.count == AgentFrame.largest)
        #expect(try Self.read([bytes]).count == 1)
        fields.set(3, bytes: [])
        #expect(throws: WireViolation.self) { try AgentFrame(kind: 6, id: 0, fields: fields).encoded() }
    }

    @Test func `Unknown fields are skipped, and unknown kinds of messages are reported`() throws {
        var fields = AgentFields()
        fields.set(900, text: "later")
        fields.set(1, integer: 5)
        fields.set(901, bytes: [])
        #expect(try AgentMessage(AgentFrame(kind: 12, id: 0, fields: fields)) == .acknowledge(sequence: 5))
        #expect(try AgentMessage(AgentFrame(kind: 600, id: 0, fields: fields)) == .unknown(kind: 600))
    }

    @Test func `A message without a required field, or with a field out of range, is malformed`() {
        var short = AgentFields()
        short.set(1, bytes: [1, 2])
        var broken = AgentFields()
        broken.set(1, bytes: [0xFF])
        for frame in [
            AgentFrame(kind: 12, id: 0, fields: AgentFields()), AgentFrame(kind: 12, id: 0, fields: short),
            AgentFrame(kind: 16, id: 0, fields: broken), AgentFrame(kind: 6, id: 0, fields: AgentFields()),
        ] {
            let error = #expect(throws: WireViolation.self) { try AgentMessage(frame) }
            #expect(error?.code == .malformedAgentMessage)
        }
    }

    @Test(
        "The highest common version is used",
        arguments: [
            (1, 1, 1, 1, 1), (1, 3, 2, 4, 3), (2, 5, 1, 3, 3), (3, 4, 1, 2, nil), (1, 1, 2, 2, nil),
        ] as [(Int64, Int64, Int64, Int64, Int64?)])
    func theHighestCommonVersionIsUsed(
        _ lowest: Int64, _ highest: Int64, _ ownLowest: Int64, _ ownHighest: Int64, _ common: Int64?
    ) {
        let hello = AgentMessage.Hello(lowest: lowest, highest: highest, program: "")
        #expect(AgentVersions.common(hello, own: ownLowest...ownHighest) == common)
    }

    /// Recorded bytes of version 1, which later versions must read.
    @Test func `Recorded bytes of version 1 are read`() throws {
        let bytes: [UInt8] =
            [0, 0, 0, 43, 0, 1, 0, 0, 0, 0, 1] + [0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1]
            + [0, 2, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1] + [0, 3, 0, 0, 0, 2, 0x61, 0x62]
        #expect(
            try Self.read([bytes]).map { try AgentMessage($0) } == [
                .hello(.init(lowest: 1, highest: 1, program: "ab"))
            ])
        #expect(try AgentMessage.hello(.init(lowest: 1, highest: 1, program: "ab")).frame(id: 1).encoded() == bytes)
    }

    /// Damages streams at random: the result must be frames and violations.
    @Test func `Damaged streams never trap`() throws {
        let bytes = try Self.stream()
        var random = SplitMix(state: 1)
        for _ in 0..<2_000 {
            var damaged = bytes
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let frames = (try? Self.read([damaged])) ?? []
            for frame in frames { _ = try? AgentMessage(frame) }
        }
    }
}
