// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Tokens of downloads in several parts: what a killed process, and a loss of power, have left.
@Suite(.timeLimit(.minutes(4)))
struct ParallelTokenRows {
    static let content = ParallelRows.content
    static let named: [Range<Int64>] = [0..<100_000, 500_000..<700_000]
    static let later: [Range<Int64>] = [0..<150_000, 500_000..<900_000, 1_500_000..<1_600_000]

    /// A partial file that a killed process has left: its token is older than its journal.
    /// - Parameter journal: the ranges that the journal states; nil for none.
    static func hold(
        _ url: URL, _ folder: TemporaryFolder, journal: [Range<Int64>]? = later,
        _ change: (inout ResumeToken.Record, FileWriter) throws -> Void = { _, _ in }
    ) throws -> ResumeToken {
        let file = try FileWriter.create(in: folder.path, prefix: ResumeToken.prefix)
        for range in journal ?? named {
            try file.write(Array(content[Int(range.lowerBound)..<Int(range.upperBound)]), at: range.lowerBound)
        }
        if let journal { try FileRanges(file, length: Int64(content.count)).wrote(journal, now: 0) }
        file.keep()
        var record = ResumeToken.Record(
            url: url.absoluteString, fields: [], validator: "\"one\"", offset: named[0].upperBound,
            length: Int64(content.count), path: file.path, bytes: nil,
            tail: try file.tail(before: named[0].upperBound), isEarly: true)
        record.boot = SystemBoot.identity
        record.ranges = [try file.mark(named[1])]
        try change(&record, file)
        return try ResumeToken(ResumeToken(record, nil).data)
    }

    private func with(_ use: (ParallelRows.Rig) async throws -> Void) async throws {
        try await ParallelRows.with(first: {
            .ok(.bytes(ParallelRows.content), headers: [.etag: "\"one\""])
        }) { try await use($0) }
    }

    /// Resumes, and returns how many bytes were requested again.
    private func resume(_ token: ResumeToken, _ rig: ParallelRows.Rig) async throws -> Int64 {
        let task = rig.session.downloadTask(resuming: token, options: rig.options)
        let events = task.events
        task.resume()
        var received: Int64 = 0
        for await event in events { if case .received(let bytes) = event { received += Int64(bytes.count) } }
        _ = try await task.value
        try rig.expectComplete()
        return received
    }

    @Test("after the death of the process only what its journal does not state is loaded") func killed() async throws {
        try await with { rig in
            let token = try Self.hold(rig.url, rig.folder)
            #expect(token.offset == 300_000)
            #expect(try await resume(token, rig) == Int64(Self.content.count) - 650_000)
            #expect(rig.origin.requests.allSatisfy { $0.headers[.ifRange] == "\"one\"" })
        }
    }

    @Test("without a valid journal the ranges of the token count", arguments: [true, false])
    func journal(isDamaged: Bool) async throws {
        try await with { rig in
            let token = try Self.hold(rig.url, rig.folder, journal: isDamaged ? Self.later : nil) { record, file in
                let page = Int64((Self.content.count + 4095) / 4096 * 4096)
                if isDamaged { try file.write([0xFF], at: page + 17) }
                #expect(FileRanges.journal(of: file, length: Int64(Self.content.count)) == nil)
            }
            #expect(try await resume(token, rig) == Int64(Self.content.count) - 300_000)
        }
    }

    @Test("after a loss of power only what was on the disk counts, wherever the zeros are") func power() async throws {
        try await with { rig in
            let token = try Self.hold(rig.url, rig.folder) { record, file in
                let synced: Range<Int64> = 500_000..<600_000
                record.mark = DiskMark(offset: 50_000, tail: try file.tail(before: 50_000))
                record.syncedRanges = [try file.mark(synced)]
                // What was not on the disk is lost.
                try file.write([UInt8](repeating: 0, count: 450_000), at: 50_000)
                try file.write([UInt8](repeating: 0, count: 1_000_000), at: 600_000)
            }
            let after = try PowerCutRows.afterReboot(token.data)
            #expect(try await resume(after, rig) == Int64(Self.content.count) - 150_000)
        }
    }

    @Test("a file that differs from its token is refused", arguments: [99_999, 699_999])
    func changed(place: Int64) async throws {
        try await with { rig in
            let token = try Self.hold(rig.url, rig.folder) { try $1.write([UInt8(0xEE)], at: place) }
            await expectFailure(.invalidResumeToken) { _ = try await resume(token, rig) }
            token.discard()
        }
    }

    @Test("content that has changed on the server is loaded as a whole") func replaced() async throws {
        try await with { rig in
            let token = try Self.hold(rig.url, rig.folder)
            rig.origin.route("/file") { _ in .ok(.bytes(ParallelRows.other), headers: [.etag: "\"two\""]) }
            _ = try await rig.session.downloadTask(resuming: token, options: rig.options).resumed().value
            #expect(try rig.folder.bytes("file") == ParallelRows.other)
        }
    }

    enum Refused: String, CaseIterable, Sendable { case unavailable, cancelled }

    /// A token whose ranges begin behind the beginning of the file, as after a loss of power.
    static func holdTail(_ rig: ParallelRows.Rig, from begin: Int64, upTo end: Int64) throws -> ResumeToken {
        let token = try hold(rig.url, rig.folder, journal: [0..<named[0].upperBound, begin..<end]) { record, file in
            record.ranges = [try file.mark(begin..<end)]
            record.syncedRanges = record.ranges
            try file.write([UInt8](repeating: 0, count: Int(begin)), at: 0)
        }
        return try PowerCutRows.afterReboot(token.data)
    }

    @Test(
        "a download in parts whose first request fails leaves its token as it was", arguments: Refused.allCases,
        [false, true])
    func failedRestart(_ refusal: Refused, isAfterReboot: Bool) async throws {
        try await with { rig in
            var rig = rig
            rig.options.resumeFile = rig.folder.url("token")
            let token =
                try isAfterReboot
                ? Self.holdTail(rig, from: 500_000, upTo: 900_000) : Self.hold(rig.url, rig.folder)
            try token.data.write(to: rig.folder.url("token"))
            rig.origin.route("/file") { _ in
                switch refusal {
                case .unavailable: .status(.serviceUnavailable)
                case .cancelled: .raw([], then: .stall)
                }
            }
            let task = rig.task().resumed()
            if refusal == .cancelled {
                try await rig.origin.wait { $0.requests == 1 }
                #expect(task.resumeToken?.data == token.data)
                task.cancel()
            }
            let error = await failure(refusal == .cancelled ? .cancelled : .unacceptableStatus) { try await task.value }
            #expect(error?.resumeToken?.data == token.data)
            #expect(try rig.folder.bytes("token") == [UInt8](token.data))
            rig.origin.releaseStalls()
            rig.origin.route("/file") { request in
                ParallelRows.range(request).map { ParallelRows.part(request, $0) }
                    ?? .ok(.bytes(ParallelRows.content), headers: [.etag: "\"one\""])
            }
            let next = rig.task()
            let events = next.events
            next.resume()
            var received: Int64 = 0
            for await event in events { if case .received(let bytes) = event { received += Int64(bytes.count) } }
            _ = try await next.value
            #expect(received == Int64(Self.content.count) - (isAfterReboot ? 400_000 : 650_000))
            try rig.expectComplete()
        }
    }

    @Test("if the beginning alone is missing, one connection is enough") func beginning() async throws {
        try await ParallelRows.with(4, { $0.connections.maximumPerHost = 1 }) { rig in
            let token = try Self.holdTail(rig, from: 500_000, upTo: Int64(Self.content.count))
            #expect(try await resume(token, rig) == 500_000)
        }
    }

    @Test("a token is refused in the same process, too, once its file was cut by a new beginning") func cut()
        async throws
    {
        try await ParallelRows.with { rig in
            let token = try await ParallelRows.interrupt(rig)
            #expect(token.record.ranges?.isEmpty == false)
            // The server ignores the range, and loses the connection.
            rig.origin.route("/file") { _ in
                .ok(
                    .declared(Int64(Self.content.count), bytes: Array(Self.content.prefix(300_000))),
                    headers: [.etag: "\"one\""])
            }
            var options = rig.options
            options.parallelRanges = nil
            var error: LoadError?
            do throws(LoadError) {
                _ = try await rig.session.downloadTask(resuming: token, options: options).resumed().value
            } catch let thrown { error = thrown }
            let newer = try #require(error?.resumeToken)
            #expect(newer.offset == 300_000)
            rig.origin.route("/file") { request in
                ParallelRows.range(request).map { ParallelRows.part(request, $0) } ?? .status(.notFound)
            }
            await expectFailure(.invalidResumeToken) {
                _ = try await rig.session.downloadTask(resuming: token, options: rig.options).resumed().value
            }
            _ = try await rig.session.downloadTask(resuming: newer, options: rig.options).resumed().value
            try rig.expectComplete()
        }
    }

    @Test("a token for another machine has the first range") func content() async throws {
        try await with { rig in
            let token = try Self.hold(rig.url, rig.folder)
            let carried = try ResumeToken(token.dataWithContent())
            #expect(carried.offset == 100_000 && carried.record.version == 1)
            token.discard()
            #expect(try await resume(carried, rig) == Int64(Self.content.count) - 100_000)
        }
    }

    @Test(
        "a token of the first version and a file in parts are read with its journal, also if its length was unknown",
        arguments: [2_000_000, nil] as [Int64?])
    func firstVersion(length: Int64?) async throws {
        try await with { rig in
            let token = try Self.hold(rig.url, rig.folder) { record, _ in
                (record.ranges, record.length) = (nil, length)
            }
            #expect(token.record.version == 1)
            #expect(try await resume(token, rig) == Int64(Self.content.count) - 650_000)
        }
    }

    @Test(
        "tokens with impossible ranges are refused",
        arguments: [
            [(90_000, 200_000)], [(500_000, 400_000)], [(500_000, 500_000)], [(1_900_000, 2_000_001)],
            [(500_000, 600_000), (550_000, 700_000)],
        ] as [[(Int64, Int64)]])
    func unsound(_ ranges: [(Int64, Int64)]) throws {
        let folder = try TemporaryFolder()
        let address = try url("http://h.example/file")
        #expect(throws: LoadError.self) {
            _ = try Self.hold(address, folder) { record, _ in
                record.ranges = ranges.map { RangeMark(begin: $0.0, end: $0.1, tail: "") }
            }
        }
    }

    @Test("ranges of content that is too long, or not loaded with HTTP, are refused", arguments: [false, true])
    func unfit(isLong: Bool) throws {
        let folder = try TemporaryFolder()
        let address = try url(isLong ? "http://h.example/file" : "ftp://h.example/file")
        #expect(throws: LoadError.self) {
            _ = try Self.hold(address, folder) { record, _ in if isLong { record.length = .max } }
        }
    }

    @Test("version and content of a token must agree") func version() throws {
        let folder = try TemporaryFolder()
        let data = try Self.hold(try url("http://h.example/file"), folder).data
        let text = String(decoding: data, as: UTF8.self)
        for changed in [text.replacing("Resume/2", with: "Resume/1"), text.replacing("Resume/2", with: "Resume/3")] {
            #expect(throws: LoadError.self) { _ = try ResumeToken(Data(changed.utf8)) }
        }
        #expect(ParallelRanges("4 of 1048576") == .automatic && ParallelRanges("x of 1") == nil)
        var ranges = ParallelRanges.automatic
        (ranges.count, ranges.minimumPartSize) = (0, 0)
        #expect(ranges.count == 1 && ranges.minimumPartSize == 64 << 10)
        #expect(ParallelRanges(99).count == 16 && (8 as ParallelRanges).description == "8 of 1048576")
    }
}
