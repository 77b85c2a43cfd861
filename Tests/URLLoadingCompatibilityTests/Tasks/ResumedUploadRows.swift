// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Resumed upload tasks: the IETF's resumable uploads in the classic API.
@Suite(.timeLimit(.minutes(4)))
struct ResumedUploadRows {
    fileprivate static let content = Data((0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
    private static let cut: Int64 = 70_000

    private static func request(_ origin: HTTPTestServer) -> URLRequest {
        var request = URLRequest(url: origin.url("/files"))
        request.httpMethod = "POST"
        request.setValue("secret", forHTTPHeaderField: "X-Token")
        return request
    }

    /// Returns a server of resumable uploads, and a session with a recorder.
    private static func rig(
        _ setting: ResumableUploadServer.Configuration = .init(),
        _ use:
            nonisolated(nonsending) (ResumableUploadServer, HTTPTestServer, Recorder, URLSession) async throws -> Void
    ) async throws {
        let server = ResumableUploadServer(setting)
        try await withHTTPTestServer { origin in
            server.serve("/files", on: origin)
            let recorder = Recorder()
            let session = recorder.session()
            try await use(server, origin, recorder, session)
            await recorder.expectOrder(session)
        }
    }

    private static func expectWhole(_ server: ResumableUploadServer, sourceLocation: SourceLocation = #_sourceLocation)
    {
        #expect(server.uploads.first?.isComplete == true, sourceLocation: sourceLocation)
        #expect(server.uploads.first.map { Data($0.content) == content } == true, sourceLocation: sourceLocation)
        #expect(server.transfers.map(\.count).reduce(0, +) == Int64(content.count), sourceLocation: sourceLocation)
    }

    private static func withFile<R>(_ use: nonisolated(nonsending) (URL) async throws -> R) async throws -> R {
        let file = temporaryURL("resumed")
        try content.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        return try await use(file)
    }

    /// Runs a task until its connection is lost. Returns its resume data.
    private static func interrupted(
        _ server: ResumableUploadServer, _ recorder: Recorder, _ task: URLSessionUploadTask
    ) async throws -> Data {
        server.inject(.init(.received(cut), .reset))
        let before = recorder.completed.value
        task.resume()
        await recorder.completed.reaches(before + 1)
        let error = try #require(recorder.record(task).errors.last ?? nil)
        #expect(error.code == .networkConnectionLost)
        #expect((task.error as? URLError)?.userInfo[NSURLSessionUploadTaskResumeData] is Data)
        return try #require(error.uploadTaskResumeData)
    }

    @Test("an interrupted upload of bytes resumes at its offset; bytes that were sent are not sent again")
    func bytes() async throws {
        try await Self.rig { server, origin, recorder, session in
            let heard = Box<Int>()
            let totals = Box<Int64>()
            recorder.onInformational = { heard.add($1.statusCode) }
            var request = Self.request(origin)
            (request.timeoutInterval, request.httpShouldHandleCookies, request.networkServiceType) = (
                30, false, .background
            )
            let first = session.uploadTask(with: request, from: Self.content)
            let data = try await Self.interrupted(server, recorder, first)
            #expect(heard.all == [104])
            #expect(!String(decoding: data.prefix(2_000), as: UTF8.self).contains("secret"))
            recorder.onSent = { total, expected in if expected == Int64(Self.content.count) { totals.add(total) } }
            let second = session.uploadTask(withResumeData: data)
            #expect(second.originalRequest?.url == origin.url("/files") && second.originalRequest?.httpMethod == "POST")
            await recorder.complete(second, number: 2)
            #expect(recorder.words(second) == "sent response data complete")
            #expect(recorder.record(second).data == Data("400000 bytes".utf8))
            Self.expectWhole(server)
            #expect(totals.all.first.map { $0 > Self.cut } == true && totals.all.last == Int64(Self.content.count))
            #expect(second.countOfBytesSent == Int64(Self.content.count))
        }
    }

    @Test("an upload of a file is resumed with a completion handler, and with the async method")
    func file() async throws {
        try await Self.withFile { file in
            try await Self.rig { server, origin, recorder, session in
                let data = try await Self.interrupted(
                    server, recorder, session.uploadTask(with: Self.request(origin), fromFile: file))
                #expect(data.count < 2_000)
                server.inject(.init(.received(2 * Self.cut), .reset))
                let second: URLError? = await withCheckedContinuation { continuation in
                    session.uploadTask(withResumeData: data) {
                        continuation.resume(returning: ($1 == nil && $0 == nil) ? $2 as? URLError : nil)
                    }.resume()
                }
                let again = try #require(second?.uploadTaskResumeData)
                let (body, response) = try await session.upload(resumeFrom: again)
                #expect(body == Data("400000 bytes".utf8) && (response as? HTTPURLResponse)?.statusCode == 200)
                Self.expectWhole(server)
            }
        }
    }

    @Test(
        "the delegate provides the rest of a stream, from the byte that the server expects next",
        arguments: [false, true])
    func stream(_ isAsync: Bool) async throws {
        final class Async: NSObject, URLSessionTaskDelegate, Sendable {
            let offsets = Box<Int64>()
            func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64)
                async -> InputStream?
            {
                offsets.add(OperationQueue.current === session.delegateQueue ? offset : -1)
                return InputStream(data: ResumedUploadRows.content.dropFirst(Int(offset)))
            }
        }
        try await Self.rig { server, origin, recorder, session in
            let offsets = Box<Int64>()
            recorder.onBody = { _, answer in answer(InputStream(data: Self.content)) }
            recorder.onRest = { offset, answer in
                offsets.add(offset)
                answer(InputStream(data: Self.content.dropFirst(Int(offset))))
            }
            let data = try await Self.interrupted(
                server, recorder, session.uploadTask(withStreamedRequest: Self.request(origin)))
            if isAsync {
                let delegate = Async()
                let (body, _) = try await session.upload(resumeFrom: data, delegate: delegate)
                #expect(delegate.offsets.all == [Self.cut] && body == Data("400000 bytes".utf8))
            } else {
                let second = session.uploadTask(withResumeData: data)
                await recorder.complete(second, number: 2)
                #expect(offsets.all == [Self.cut] && recorder.words(second) == "rest sent response data complete")
            }
            Self.expectWhole(server)
        }
    }

    @Test("without a delegate for the rest of a stream the task fails")
    func noStream() async throws {
        try await Self.rig { server, origin, recorder, session in
            recorder.onBody = { _, answer in answer(InputStream(data: Self.content)) }
            let data = try await Self.interrupted(
                server, recorder, session.uploadTask(withStreamedRequest: Self.request(origin)))
            let alone = URLSession(configuration: .ephemeral)
            await #expect(throws: URLError.self) { _ = try await alone.upload(resumeFrom: data) }
            alone.invalidateAndCancel()
        }
    }

    @Test("cancelling for resume data provides it, in the error as well; the upload resumes with it")
    func cancelled() async throws {
        try await Self.rig { server, origin, recorder, session in
            server.inject(.init(.received(Self.cut), .stall))
            let heard = Counter()
            recorder.onInformational = { _, _ in heard.add() }
            let first = session.uploadTask(with: Self.request(origin), from: Self.content).resumed()
            await heard.reaches(1)
            try await origin.wait { $0.stalled == 1 }
            let data = try #require(await first.cancelByProducingResumeData())
            await recorder.completed.reaches(1)
            let error = recorder.record(first).errors.first ?? nil
            #expect(error?.code == .cancelled && error?.uploadTaskResumeData == data)
            origin.releaseStalls()
            let again = await first.cancelByProducingResumeData()
            #expect(again == nil)
            // The resumed task was not begun, so its data is still valid.
            let unbegun = session.uploadTask(withResumeData: data)
            let same = try #require(await unbegun.cancelByProducingResumeData())
            let (body, _) = try await session.upload(resumeFrom: same)
            #expect(body == Data("400000 bytes".utf8))
            Self.expectWhole(server)
        }
    }

    @Test("a plain cancel, a complete upload and an unbegun upload provide no resume data")
    func aPlainCancelACompleteUploadAndAnUnbegunUploadProvideNoResumeData() async throws {
        try await Self.rig { server, origin, recorder, session in
            let unbegun = session.uploadTask(with: Self.request(origin), from: Self.content)
            let nothing = await unbegun.cancelByProducingResumeData()
            #expect(nothing == nil)
            server.inject(.init(.received(Self.cut), .stall))
            let stalled = session.uploadTask(with: Self.request(origin), from: Self.content).resumed()
            try await origin.wait { $0.stalled == 1 }
            stalled.cancel()
            await recorder.completed.reaches(2)
            #expect((recorder.record(stalled).errors.first ?? nil)?.uploadTaskResumeData == nil)
            origin.releaseStalls()
            let whole = session.uploadTask(with: Self.request(origin), from: Self.content)
            await recorder.complete(whole, number: 3)
            #expect(recorder.record(whole).errors.first == .some(nil))
            let late = await whole.cancelByProducingResumeData()
            #expect(late == nil)
        }
    }

    @Test("a server without support receives the whole upload, and an interrupted upload has no resume data")
    func plainServer() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/files") { request in .ok(request.headers[.contentLength] ?? "-") }
            origin.route("/lost", faults: [.init(.requestBody(after: Self.cut), .reset)]) { _ in .ok("never") }
            let recorder = Recorder()
            let session = recorder.session()
            let task = session.uploadTask(with: Self.request(origin), from: Self.content)
            await recorder.complete(task)
            #expect(recorder.record(task).data == Data("400000".utf8))
            var request = Self.request(origin)
            request.url = origin.url("/lost")
            let lost = session.uploadTask(with: request, from: Self.content)
            await recorder.complete(lost, number: 2)
            let error = recorder.record(lost).errors.first ?? nil
            #expect(error != nil && error?.uploadTaskResumeData == nil)
            let data = await lost.cancelByProducingResumeData()
            #expect(data == nil)
            await recorder.expectOrder(session)
        }
    }

    @Test("an upload sent again after a challenge resumes the second upload")
    func challenged() async throws {
        try await Self.rig { server, origin, recorder, session in
            recorder.onChallenge = { _, answer in
                server.inject(.init(.received(Self.cut), .reset))
                answer(.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
            }
            server.inject(.init(.completed, status: .unauthorized, ["WWW-Authenticate": "Basic realm=\"x\""]))
            let task = session.uploadTask(with: Self.request(origin), from: Self.content)
            await recorder.complete(task)
            let data = try #require((recorder.record(task).errors.first ?? nil)?.uploadTaskResumeData)
            #expect(server.uploads.count == 2)
            let (body, _) = try await session.upload(resumeFrom: data)
            #expect(body == Data("400000 bytes".utf8))
            #expect(server.uploads.last?.isComplete == true && server.transfers.last?.path == server.uploads.last?.path)
        }
    }

    @Test("a server that limits the size of a request receives the rest in parts", arguments: [true, false])
    func parts(_ announces: Bool) async throws {
        var setting = ResumableUploadServer.Configuration()
        (setting.maximumAppendSize, setting.announces) = (150_000, announces)
        try await Self.rig(setting) { server, origin, recorder, session in
            let task = session.uploadTask(with: Self.request(origin), from: Self.content)
            await recorder.complete(task)
            #expect(recorder.record(task).errors.first == .some(nil))
            #expect(recorder.record(task).data == Data("400000 bytes".utf8))
            #expect(server.uploads.last.map { Data($0.content) == Self.content } == true)
        }
    }

    @Test("a complete upload whose response was lost is found complete", arguments: [true, false])
    func completeMeanwhile(_ repeats: Bool) async throws {
        var setting = ResumableUploadServer.Configuration()
        setting.repeatsAnswer = repeats
        try await Self.rig(setting) { server, origin, recorder, session in
            server.inject(.init(.completed, .reset))
            let first = session.uploadTask(with: Self.request(origin), from: Self.content)
            await recorder.complete(first)
            let data = try #require((recorder.record(first).errors.first ?? nil)?.uploadTaskResumeData)
            let (body, response) = try await session.upload(resumeFrom: data)
            #expect((response as? HTTPURLResponse)?.statusCode == (repeats ? 200 : 204))
            #expect(body == (repeats ? Data("400000 bytes".utf8) : Data()))
            Self.expectWhole(server)
        }
    }

    // MARK: Resume data that cannot be used

    @Test("resume data that is damaged, truncated, of a download or unknown fails the task with cannotOpenFile")
    func damaged() async throws {
        try await Self.rig { server, origin, recorder, session in
            let good = try await Self.interrupted(
                server, recorder, session.uploadTask(with: Self.request(origin), from: Self.content))
            var flipped = good
            flipped[good.count - 5] ^= 1
            var early = good
            early[60] ^= 1
            let all = [
                flipped, early, good.dropLast(), good.prefix(100), good.prefix(30), Data(), Data("nonsense".utf8),
                Data("URLLoading-Resume/1\n0\n{}".utf8), Data("URLLoading-Upload/1\n\n\n".utf8),
                Data(repeating: 10, count: 40),
            ]
            for data in all {
                let error = await #expect(throws: URLError.self) { _ = try await session.upload(resumeFrom: data) }
                #expect(error?.code == .cannotOpenFile && error?.uploadTaskResumeData == nil)
            }
            // Resume data of an upload does not resume a download.
            await #expect(throws: URLError.self) { _ = try await session.download(resumeFrom: good) }
        }
    }

    @Test("an upload that the server has forgotten fails, as does one whose file was changed or removed")
    func changed() async throws {
        try await Self.withFile { file in
            try await Self.rig { server, origin, recorder, session in
                let data = try await Self.interrupted(
                    server, recorder, session.uploadTask(with: Self.request(origin), fromFile: file))
                var other = Self.content
                other[0] ^= 1
                try other.write(to: file)
                let changed = await #expect(throws: URLError.self) { _ = try await session.upload(resumeFrom: data) }
                #expect(changed?.code == .cannotOpenFile)
                try FileManager.default.removeItem(at: file)
                await #expect(throws: URLError.self) { _ = try await session.upload(resumeFrom: data) }
                #expect(server.uploads.first?.isComplete == false)
                let bytes = try await Self.interrupted(
                    server, recorder, session.uploadTask(with: Self.request(origin), from: Self.content))
                server.forget()
                let forgotten = await #expect(throws: URLError.self) { _ = try await session.upload(resumeFrom: bytes) }
                #expect(forgotten?.code == .resourceUnavailable && forgotten?.uploadTaskResumeData == nil)
                try Self.content.write(to: file)
            }
        }
    }

    @Test("a file changed while the server is asked is not appended")
    func changesMeanwhile() async throws {
        try await Self.withFile { file in
            try await Self.rig { server, origin, recorder, session in
                let data = try await Self.interrupted(
                    server, recorder, session.uploadTask(with: Self.request(origin), fromFile: file))
                server.inject(.init(.asked, status: .unauthorized, ["WWW-Authenticate": "Basic realm=\"x\""]))
                recorder.onChallenge = { _, answer in
                    try? Data(Self.content.reversed()).write(to: file)
                    answer(.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
                }
                let task = session.uploadTask(withResumeData: data)
                await recorder.complete(task, number: 2)
                #expect((recorder.record(task).errors.first ?? nil)?.code == .cannotOpenFile)
                #expect(server.uploads.first?.content.count == Int(Self.cut))
            }
        }
    }

    @Test("an unavailable server loses nothing: the next error contains the resume data, too")
    func stillAway() async throws {
        try await Self.rig { server, origin, recorder, session in
            let data = try await Self.interrupted(
                server, recorder, session.uploadTask(with: Self.request(origin), from: Self.content))
            server.inject(.init(.asked, status: .serviceUnavailable))
            let error = await #expect(throws: URLError.self) { _ = try await session.upload(resumeFrom: data) }
            let again = try #require(error?.uploadTaskResumeData)
            #expect(error?.code == .badServerResponse && again == data)
            _ = try await session.upload(resumeFrom: again)
            Self.expectWhole(server)
        }
    }

    @Test("an upload URL on another server is not used: no secret is sent there, and the upload cannot be resumed")
    func foreignPlace() async throws {
        var setting = ResumableUploadServer.Configuration()
        setting.location = { "http://localhost:1\($0)" }
        try await Self.rig(setting) { server, origin, recorder, session in
            server.inject(.init(.received(Self.cut), .reset))
            let task = session.uploadTask(with: Self.request(origin), from: Self.content)
            await recorder.complete(task)
            let error = recorder.record(task).errors.first ?? nil
            #expect(error != nil && error?.uploadTaskResumeData == nil)
        }
    }
}
