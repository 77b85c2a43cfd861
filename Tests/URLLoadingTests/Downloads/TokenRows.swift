// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Files that tokens name, and delivered files, must not be damaged (checklist 131-135, security 76-79).
@Suite(.timeLimit(.minutes(4)))
struct TokenRows {
    static let content = DownloadRows.content

    /// A server whose pauses end when the test says so.
    static func timed() -> (ManualClock, HTTPTestServer.Configuration) {
        let clock = ManualClock()
        return (clock, .init(clock: clock))
    }

    @Test("a token used after its download is complete does not change the delivered file")
    func tokenTwice() async throws {
        try await DownloadRows.with(stallsAfter: 700_000) { folder, session, origin in
            let token = try await DownloadRows.cut(session, origin)
            origin.route("/file") { DownloadRows.answer($0, "\"one\"") }
            let place = folder.url("whole")
            try await session.download(resuming: token, to: place)
            #expect(contents(place) == Self.content)
            // Whatever error is thrown, the file stays.
            origin.route("/file") { request in
                guard let range = request.headers[.range], let first = Int(range.dropFirst(6).dropLast()) else {
                    return .ok("x")
                }
                let text =
                    "HTTP/1.1 206 Partial Content\r\n"
                    + "Content-Range: bytes \(first)-\(Self.content.count - 1)/\(Self.content.count)\r\n"
                    + "ETag: \"one\"\r\nContent-Length: \(Self.content.count - first)\r\n\r\nabc"
                return .raw([.bytes(Array(text.utf8))], then: .close)
            }
            do { try await session.download(resuming: token, to: folder.url("second")) } catch {}
            #expect(contents(place) == Self.content)
            unlink(place.path())
            unlink(folder.url("second").path())
        }
    }

    /// The second part follows after a second.
    private static func serveInTwoParts(_ origin: HTTPTestServer) {
        let head = "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nContent-Length: \(content.count)\r\n\r\n"
        origin.route("/file") { _ in
            .raw(
                [
                    .bytes(Array(head.utf8)), .bytes([UInt8](content.prefix(700_000))), .pause(.seconds(1)),
                    .bytes([UInt8](content.dropFirst(700_000))),
                ], then: .close)
        }
    }

    @Test("an early token used after completion does not change the delivered file")
    func earlyTokenAfter() async throws {
        let (clock, setting) = Self.timed()
        try await DownloadRows.with(setting) { folder, session, origin in
            Self.serveInTwoParts(origin)
            let place = folder.url("whole")
            let task = session.downloadTask(
                Request(url: origin.url("/file")), options: DownloadOptions(destination: place))
            task.resume()
            try await task.received()
            let early = try #require(task.resumeToken)
            clock.advance(by: .seconds(1))
            _ = try await task.value
            #expect(contents(place) == Self.content)
            origin.route("/file") { _ in .ok("changed", headers: [.etag: "\"two\""]) }
            do { try await session.download(resuming: early, to: folder.url("second")) } catch {}
            #expect(contents(place) == Self.content)
            unlink(place.path())
            unlink(folder.url("second").path())
        }
    }

    @Test("a temporary file is removed although a token of it was stored")
    func keptForEver() async throws {
        let (clock, setting) = Self.timed()
        try await DownloadRows.with(setting) { folder, session, origin in
            Self.serveInTwoParts(origin)
            var task: LoadTask<DownloadedFile>? = session.downloadTask(Request(url: origin.url("/file")))
            task?.resume()
            _ = try await task?.response
            let data = task?.resumeToken?.data
            #expect(data != nil)
            clock.advance(by: .seconds(1))
            var file: DownloadedFile? = try await task?.value
            #expect(file?.size == Int64(Self.content.count))
            (file, task) = (nil, nil)
            try await eventuallyFiles(folder.names) { $0.isEmpty }
        }
    }

    @Test("a forged token cannot read bytes of another file")
    func foreignContent() async throws {
        let folder = try TemporaryFolder()
        let secret = folder.url("secret")
        try Data("password".utf8).write(to: secret)
        let record = ResumeToken.Record(
            url: "http://h/", fields: [], validator: "\"a\"", offset: 8, length: nil, path: secret.path(), bytes: nil,
            tail: "", isEarly: false)
        let stored = ResumeToken(record, nil).data
        let token = try ResumeToken(stored)
        let gave = try? token.dataWithContent()
        #expect(
            gave.map { String(decoding: $0, as: UTF8.self).contains(Data("password".utf8).base64EncodedString()) }
                != true)
        unlink(secret.path())
    }

    @Test(
        "a range response that is shorter or longer than its Content-Range is an error",
        arguments: ["short", "chunked", "long"])
    func shortRest(_ how: String) async throws {
        try await DownloadRows.with(stallsAfter: 700_000) { folder, session, origin in
            let token = try await DownloadRows.cut(session, origin)
            origin.route("/file") { request in
                guard let range = request.headers[.range], let first = Int(range.dropFirst(6).dropLast()) else {
                    return DownloadRows.answer(request, "\"one\"")
                }
                let headers: Headers = [
                    .etag: "\"one\"", .contentRange: "bytes \(first)-\(Self.content.count - 1)/\(Self.content.count)",
                ]
                let rest = [UInt8](Self.content[first...])
                switch how {
                case "short": return .status(.partialContent, headers: headers, body: .bytes(Array(rest.prefix(1000))))
                case "chunked":
                    return .status(.partialContent, headers: headers, body: .chunks([.bytes(Array(rest.prefix(1000)))]))
                default: return .status(.partialContent, headers: headers, body: .bytes(rest + rest))
                }
            }
            let place = folder.url("whole")
            do {
                try await session.download(resuming: token, to: place)
                #expect(
                    contents(place) == Self.content, "\(how): \(contents(place)?.count ?? -1) of \(Self.content.count)")
            } catch { (error as? LoadError)?.resumeToken?.discard() }
            token.discard()
            unlink(place.path())
        }
    }

    @Test("a complete download is not loaded again", arguments: [true, false])
    func completeNotAgain(_ isEarly: Bool) async throws {
        try await DownloadRows.with { folder, session, origin in
            origin.route("/file") { request in
                if let range = request.headers[.range], range == "bytes=\(Self.content.count)-" {
                    return .status(
                        .rangeNotSatisfiable,
                        headers: [.contentRange: "bytes */\(Self.content.count)", .etag: "\"one\""])
                }
                return DownloadRows.answer(request, "\"one\"")
            }
            let place = folder.url("data.bin")
            try Data("old".utf8).write(to: place)
            let keeping = session.downloadTask(
                Request(url: origin.url("/file")), options: DownloadOptions(destination: place, overwrites: false))
            keeping.resume()
            let error = await failure(.cannotMoveFile) { try await keeping.value }
            unlink(place.path())
            if let token = error?.resumeToken {
                try await session.download(resuming: token, to: place)
                let whole = origin.requests.filter { $0.headers[.range] == nil }.count
                #expect(whole == 1, "sent \(whole) times")
            }
            unlink(place.path())
        }
    }

    @Test("a download of a range is not resumed as one of the whole content", arguments: [true, false])
    func ownRange(_ hidden: Bool) async throws {
        try await DownloadRows.with { folder, session, origin in
            let cuts = Atomic<Int>(0)
            origin.route("/file") { request in
                let range = request.headers[.range] ?? ""
                let first = Int(range.dropFirst(6).prefix { $0 != "-" }) ?? 0
                let last = Int(range.split(separator: "-").last.map { String($0) } ?? "") ?? Self.content.count - 1
                let total = hidden ? "*" : "\(Self.content.count)"
                let end = range.hasSuffix("-") ? Self.content.count - 1 : last
                let bytes = [UInt8](Self.content[first...end])
                let isFirst = cuts.add(1, ordering: .relaxed).oldValue == 0
                let text =
                    "HTTP/1.1 \(range.isEmpty ? "200 OK" : "206 Partial Content")\r\nETag: \"one\"\r\n"
                    + (range.isEmpty ? "" : "Content-Range: bytes \(first)-\(end)/\(total)\r\n")
                    + "Transfer-Encoding: chunked\r\n\r\n\(String(bytes.count, radix: 16))\r\n"
                return .raw(
                    [
                        .bytes(Array(text.utf8)), .bytes(isFirst ? Array(bytes.prefix(300_000)) : bytes),
                        .bytes(isFirst ? [] : Array("\r\n0\r\n\r\n".utf8)),
                    ], then: .close)
            }
            let wanted = Self.content[500_000...999_999]
            let place = folder.url("part")
            let request = Request(url: origin.url("/file"), headers: [.range: "bytes=500000-999999"])
            let error = await failure(.truncated) { try await session.download(request, to: place) }
            if let token = error?.resumeToken {
                do {
                    try await session.download(resuming: token, to: place)
                    #expect(contents(place) == wanted || contents(place) == Self.content)
                } catch {}
                token.discard()
            }
            unlink(place.path())
        }
    }

    /// Resumes in the first event after the failure.
    private final class Heir: LoadObserver {
        let couldClaim = Lock<Bool?>(nil)

        func observe(_ event: LoadEvent, of load: LoadIdentity) {
            guard case .completed(let error?) = event, let token = error.resumeToken, let path = token.record.path
            else { return }
            // A token that is stored releases its file to other holders.
            _ = token.data
            let file = try? FileWriter.reopen(path).0
            couldClaim.withLock { $0 = file?.claim() }
            file?.unclaim()
        }
    }

    @Test("a download can be resumed as soon as its failure is reported")
    func atOnce() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/file", faults: [.init(.responseBody(after: 700_000), .close)]) {
                DownloadRows.answer($0, "\"one\"")
            }
            let heir = Heir()
            try await withSession(.ephemeral.with { $0.observers = [heir] }) { session in
                let task = session.downloadTask(Request(url: origin.url("/file"))).resumed()
                await failure(.truncated) { try await task.value }?.resumeToken?.discard()
            }
            #expect(heir.couldClaim.withLock { $0 } == true)
        }
    }

    @Test("one token may be used in two downloads at once")
    func twoAtOnce() async throws {
        try await DownloadRows.with(stallsAfter: 700_000) { folder, session, origin in
            let token = try ResumeToken(try await DownloadRows.cut(session, origin).data)
            let requests = Watched(0)
            // The first download begins anew and slowly, the second resumes.
            origin.route("/file") { request in
                if requests.add() == 1 { return DownloadRows.answer(request, "\"one\"") }
                return .ok(.chunks([.bytes([1, 2, 3]), .pause(.milliseconds(300))]), headers: [.etag: "\"two\""])
            }
            let place = folder.url("a")
            let second = session.downloadTask(
                resuming: try ResumeToken(token.data), options: DownloadOptions(destination: folder.url("b")))
            let first = session.downloadTask(resuming: token, options: DownloadOptions(destination: place)).resumed()
            // The first download's request is the first of the two.
            try await requests.wait { $0 > 0 }
            second.resume()
            do { _ = try await first.value } catch {}
            do { _ = try await second.value } catch {}
            #expect(contents(place) == Self.content)
            for name in folder.names { unlink(folder.url(name).path()) }
        }
    }

    @Test("a range of 2^63-1 bytes does not trap")
    func overflow() async throws {
        try await DownloadRows.with(stallsAfter: 700_000) { folder, session, origin in
            let token = try await DownloadRows.cut(session, origin)
            origin.route("/file") { request in
                guard let range = request.headers[.range], let first = Int(range.dropFirst(6).dropLast()) else {
                    return .ok("x")
                }
                let headers: Headers = [
                    .etag: "\"one\"",
                    .contentRange: "bytes \(first)-\(DownloadRows.content.count - 1)/\(DownloadRows.content.count)",
                ]
                return .status(.partialContent, headers: headers, body: .declared(.max, bytes: [1, 2, 3]))
            }
            let place = folder.url("whole")
            do { try await session.download(resuming: token, to: place) } catch {
                (error as? LoadError)?.resumeToken?.discard()
            }
            token.discard()
            unlink(place.path())
        }
    }
}
