// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading
@testable import URLLoadingAgent

/// Many transfers, and frames that no program sends.
@Suite(.timeLimit(.minutes(5))) struct ScaleRows {
    @Test("Thousands of transfers are accepted, listed in pages and delivered, each once and in order")
    func manyTransfers() async throws {
        let count = ProcessInfo.processInfo.environment["URLLOADING_LONG"] == nil ? 600 : 10_000
        try await SurvivalRows.with { rig, origin in
            origin.route("/small") { _ in .ok("small") }
            let session = BackgroundSessionRows.session(rig)
            let background = session.background
            let later = Date(timeIntervalSinceNow: 3600)
            let url = origin.url("/small")
            let began = Poller.now()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<count {
                    group.addTask {
                        var options = BackgroundOptions(label: "\(number)")
                        options.earliestBegin = later
                        try await background.download(Request(url: url), options: options)
                    }
                }
                try await group.waitForAll()
            }
            let accepted = Poller.now()
            let found = try await background.transfers
            let listed = Poller.now()
            #expect(Set(found.map(\.label)).count == count && Set(found.map(\.id)).count == count)
            let times = [accepted - began, listed - accepted].map { "\($0 / 1_000_000) ms" }
            print("\(count) transfers: accepted in \(times[0]), listed in \(times[1])")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for transfer in found { group.addTask { try await transfer.cancel() } }
                try await group.waitForAll()
            }
            let handled = Lock<[String]>([])
            try await background.handleEvents { event in
                let isLast = handled.withLock { handled in
                    handled.append(event.transfer.id)
                    return handled.count == count
                }
                if isLast { session.finishTasksAndInvalidate() }
            }
            #expect(handled.withLock { Set($0) } == Set(found.map(\.id)))
            #expect(handled.withLock { $0.count } == count)
        }
    }

    @Test("More data than a connection may queue is submitted at once, and accepted")
    func muchData() async throws {
        try await SurvivalRows.with { rig, origin in
            let session = BackgroundSessionRows.session(rig)
            let background = session.background
            let url = origin.url("/small")
            let data = Data(repeating: 0x5A, count: TransferOrder.maximumUserData)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<250 {
                    group.addTask {
                        var options = BackgroundOptions(label: "\(number)", userData: data)
                        options.earliestBegin = Date(timeIntervalSinceNow: 3600)
                        try await background.download(Request(url: url), options: options)
                    }
                }
                try await group.waitForAll()
            }
            let found = try await background.transfers
            #expect(found.count == 250 && found.allSatisfy { $0.userData == data })
            await BackgroundSessionRows.end(session)
        }
    }

    @Test("At most six transfers of a session run at a time; the others follow when they end (checklist 150)")
    func concurrency() async throws {
        try await SurvivalRows.with(stallsAfter: 1_000) { rig, origin in
            let session = BackgroundSessionRows.session(rig)
            for number in 0..<10 {
                try await session.background.download(
                    Request(url: origin.url("/film")), options: BackgroundOptions(label: "\(number)"))
            }
            try await origin.wait { $0.stalled == 6 }
            let states = try await session.background.transfers.map(\.state)
            #expect(states.filter { $0 == .running }.count == 6 && states.filter { $0 == .queued }.count == 4)
            origin.route("/film") { Film.answer($0) }
            for transfer in try await session.background.transfers where transfer.state == .running {
                try await transfer.cancel()
            }
            let handled = Lock<[String]>([])
            try await session.background.handleEvents { event in
                if case .downloaded = event.result { handled.withLock { $0.append(event.transfer.label) } }
                if try await session.background.transfers.count == 1 { session.finishTasksAndInvalidate() }
            }
            #expect(handled.withLock { $0.count } == 4)
        }
    }

    /// Whether bytes ask the agent to hand over to a newer one, or to take no more work. Each program of the user may
    /// do so: the agent exits.
    private static func endsAgent(_ bytes: [UInt8]) -> Bool {
        var decoder = AgentFrameDecoder()
        decoder.receive(bytes)
        while let frame = (try? decoder.next()) ?? nil {
            if let message = try? AgentMessage(frame), [.handOver, .drain].contains(message) { return true }
        }
        return false
    }

    @Test("A frame that one changed byte makes a request to hand over ends the agent, as any such request does")
    func changedToHandOver() async throws {
        try await SurvivalRows.with { rig, _ in
            var bytes = try AgentMessage.listen.frame(id: 1).encoded()
            bytes[5] = 17
            #expect(Self.endsAgent(bytes))
            let hello = AgentMessage.hello(.init(lowest: 1, highest: 1, program: "fuzz"))
            let first = try await rig.link()
            let socket = try await LocalSocket.connect(to: rig.socket, timeout: .seconds(60))
            try await socket.send(try hello.frame(id: 1).encoded() + bytes, .never)
            #expect(await rig.ended() == 0)
            socket.close()
            first.close()
        }
    }

    @Test("Frames of random bytes, and valid frames with changed bytes, end the conversation and never the agent")
    func fuzzedFrames() async throws {
        try await SurvivalRows.with { rig, _ in
            try await rig.link().close()
            var random = SeededGenerator.printed("ScaleRows.fuzzedFrames")
            let attachment = AgentMessage.Attachment(
                identifier: "org.example.fuzz", settings: TransferCoding.encode(SessionSettings(Configuration.default)),
                secrets: [])
            let messages: [AgentMessage] = [
                .hello(.init(lowest: 1, highest: 1, program: "fuzz")), .attach(attachment), .list(after: 0), .listen,
                .submit(.init(transfer: "f", order: [1, 2, 3], secrets: [])),
                .command(.init(transfer: "f", verb: "pause")), .acknowledge(sequence: 7), .status, .identifiers,
                .detach,
            ]
            for round in 0..<(ProcessInfo.processInfo.environment["URLLOADING_LONG"] == nil ? 150 : 20_000) {
                let socket = try await LocalSocket.connect(to: rig.socket, timeout: .seconds(60))
                var bytes: [UInt8] = []
                for message in messages.prefix(Int.random(in: 0...messages.count, using: &random)) {
                    bytes += try message.frame(id: 1).encoded()
                }
                if round % 3 == 0 { bytes += (0..<200).map { _ in UInt8.random(in: 0...255, using: &random) } }
                for _ in 0..<Int.random(in: 0...4, using: &random) where !bytes.isEmpty {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                if !Self.endsAgent(bytes) { try? await socket.send(bytes, .never) }
                socket.close()
            }
            let next = try await rig.attachAgain()
            let found = try await next.transfers()
            #expect(found.isEmpty && rig.isRunning)
        }
    }
}
