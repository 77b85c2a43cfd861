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

/// Resumed downloads: the effect of each response on the partial file and its token (RFC 9110 §13.1.5, §14.2, §15.3.7).
@Suite(.timeLimit(.minutes(4)))
struct ResumeRows {
    static let content = DownloadRows.content
    static let held = 700_000
    static let modified = "Sun, 06 Nov 1994 08:49:37 GMT"

    /// A partial file as an earlier process left it, and the stored token that names it.
    static func hold(
        _ url: URL, in folder: TemporaryFolder, validator: String = "\"one\"",
        _ change: (inout ResumeToken.Record) -> Void = { _ in }
    ) throws -> ResumeToken {
        let file = try FileWriter.create(in: folder.path, prefix: ResumeToken.prefix)
        try file.write([UInt8](content.prefix(held)), at: 0)
        file.keep()
        var record = ResumeToken.Record(
            url: url.absoluteString, fields: [], validator: validator, offset: Int64(held),
            length: Int64(content.count), path: file.path,
            bytes: nil, tail: try file.tail(before: Int64(held)), isEarly: false)
        change(&record)
        return try ResumeToken(ResumeToken(record, nil).data)
    }

    static func configuration(_ folder: TemporaryFolder) -> Configuration {
        var configuration = Configuration.patient
        configuration.temporaryDirectory = URL(filePath: folder.path)
        return configuration
    }

    /// Expects that the partial file is unchanged.
    static func expectPartial(
        _ folder: TemporaryFolder, _ comment: String, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let names = folder.names
        #expect(
            names.count == 1 && names[0].hasPrefix(ResumeToken.prefix), "\(comment): \(names)",
            sourceLocation: sourceLocation)
        let bytes = names.first.flatMap { contents(folder.url($0)) }
        #expect(
            bytes == content.prefix(held), "\(comment): \(bytes?.count ?? -1) bytes", sourceLocation: sourceLocation)
    }

    /// Resumes with a token against a server with ranges, and expects a range request.
    static func expectResumes(
        _ token: ResumeToken?, _ folder: TemporaryFolder, _ origin: HTTPTestServer, _ comment: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let token = try #require(token, "\(comment)", sourceLocation: sourceLocation)
        origin.removeFaults()
        origin.route("/file") { DownloadRows.answer($0, "\"one\"") }
        let session = Session(configuration(folder))
        let place = folder.url("whole")
        try await session.download(resuming: token, to: place)
        #expect(contents(place) == content, "\(comment)", sourceLocation: sourceLocation)
        #expect(origin.requests.last?.headers[.range] == "bytes=\(held)-", "\(comment)", sourceLocation: sourceLocation)
        unlink(place.path())
        await expectEmpty(session)
    }

    // MARK: Failures before the answer

    enum Ending: String, CaseIterable, Sendable {
        case closed, silent, decisionCancels, pausedWhileWaiting, cancelledBeforeItBegan, sessionWasInvalidated
    }

    @Test("a resumed download that fails before its response still carries its token", arguments: Ending.allCases)
    func keepsToken(_ ending: Ending) async throws {
        let folder = try TemporaryFolder()
        let clock = ManualClock()
        try await withHTTPTestServer { origin in
            let fault: HTTPTestServer.Fault.Effect = ending == .closed ? .close : .stall
            if ending != .decisionCancels {
                origin.route("/file", faults: [.init(.requestHead, fault)]) { _ in .ok("never") }
            }
            if ending == .decisionCancels { origin.route("/file") { DownloadRows.answer($0, "\"one\"") } }
            let token = try Self.hold(origin.url("/file"), in: folder)
            var configuration = Self.configuration(folder)
            if ending == .silent {
                configuration.use(clock)
                configuration.timeouts.idle = .seconds(10)
            }
            let session = Session(configuration)
            if ending == .sessionWasInvalidated { session.invalidateAndCancel() }
            var decisions = Decisions()
            if ending == .decisionCancels { decisions.response = Decision { _ in .cancel } }
            let task = session.downloadTask(resuming: token, decisions: decisions)
            var paused: ResumeToken?
            switch ending {
            case .closed, .decisionCancels, .sessionWasInvalidated: task.resume()
            case .silent:
                task.resume()
                try await origin.wait { $0.stalled == 1 }
                try await clock.untilWaiting()
                clock.advance(by: .seconds(11))
            case .pausedWhileWaiting:
                task.resume()
                try await origin.wait { $0.stalled == 1 }
                paused = await task.cancelProducingResumeToken()
                #expect(paused != nil)
            case .cancelledBeforeItBegan:
                paused = await task.cancelProducingResumeToken()
                #expect(paused != nil)
            }
            var error: LoadError?
            do throws(LoadError) { _ = try await task.value } catch let thrown { error = thrown }
            let expected: [Ending: LoadError.Reason] = [
                .closed: .connectionLost, .silent: .idleTimeout, .sessionWasInvalidated: .sessionInvalidated,
            ]
            #expect(error?.reason == expected[ending] ?? .cancelled, "\(ending): \(String(describing: error))")
            origin.releaseStalls()
            await expectEmpty(session)
            Self.expectPartial(folder, "\(ending)")
            try await Self.expectResumes(error?.resumeToken, folder, origin, "\(ending)")
        }
    }

    @Test("a resumed download whose server refuses the connection still carries its token, repeatedly")
    func refusedConnection() async throws {
        let folder = try TemporaryFolder()
        let origin = try HTTPTestServer()
        let closed = origin.url("/file")
        origin.start()
        await origin.stop()
        var token: ResumeToken? = try Self.hold(closed, in: folder)
        let session = Session(Self.configuration(folder))
        for _ in 0..<3 {
            let given = try #require(token)
            token = await failure(.connectionRefused) {
                try await session.download(resuming: given, to: folder.url("whole"))
            }?.resumeToken
        }
        await expectEmpty(session)
        Self.expectPartial(folder, "refused")
        #expect(token?.offset == Int64(Self.held))
        token?.discard()
        #expect(folder.names == [])
    }

    // MARK: Every answer

    enum Outcome: Sendable { case appended, restarted, refused, mismatched }
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let status: Int
        var headers: [(FieldName, String)] = []
        let outcome: Outcome
        var testDescription: String { "\(status) \(name)" }
    }

    static let range = "bytes \(held)-\(content.count - 1)/\(content.count)"
    /// The responses to a range request; the validator is added for each kind.
    static let rows: [Row] = [
        Row(name: "same", status: 206, headers: [(.contentRange, range)], outcome: .appended),
        Row(
            name: "same, length unknown", status: 206,
            headers: [(.contentRange, "bytes \(held)-\(content.count - 1)/*")], outcome: .appended),
        Row(name: "other", status: 206, headers: [(.contentRange, range)], outcome: .mismatched),
        Row(name: "none", status: 206, headers: [(.contentRange, range)], outcome: .mismatched),
        Row(name: "weak", status: 206, headers: [(.contentRange, range)], outcome: .mismatched),
        Row(
            name: "same, multipart", status: 206, headers: [(.contentType, "multipart/byteranges; boundary=x")],
            outcome: .mismatched),
        Row(name: "same, no range", status: 206, outcome: .mismatched),
        Row(
            name: "same, two ranges", status: 206, headers: [(.contentRange, range), (.contentRange, range)],
            outcome: .mismatched),
        Row(
            name: "same, earlier start", status: 206,
            headers: [(.contentRange, "bytes \(held - 1)-\(content.count - 1)/\(content.count)")],
            outcome: .mismatched),
        Row(
            name: "same, later start", status: 206,
            headers: [(.contentRange, "bytes \(held + 1)-\(content.count - 1)/\(content.count)")],
            outcome: .mismatched),
        Row(
            name: "same, early end", status: 206,
            headers: [(.contentRange, "bytes \(held)-\(content.count - 2)/\(content.count)")], outcome: .mismatched),
        Row(
            name: "same, early end, length unknown", status: 206,
            headers: [(.contentRange, "bytes \(held)-\(content.count - 2)/*")], outcome: .mismatched),
        Row(
            name: "same, other length", status: 206,
            headers: [(.contentRange, "bytes \(held)-\(content.count)/\(content.count + 1)")], outcome: .mismatched),
        Row(
            name: "same, coded", status: 206, headers: [(.contentRange, range), (.contentEncoding, "br")],
            outcome: .mismatched),
        Row(name: "other", status: 200, outcome: .restarted),
        Row(name: "none", status: 200, outcome: .restarted),
        Row(name: "same", status: 200, outcome: .restarted),
        Row(name: "other", status: 203, outcome: .refused),
        Row(name: "none", status: 204, outcome: .refused),
        Row(name: "same", status: 304, outcome: .refused),
        Row(name: "none", status: 401, outcome: .refused),
        Row(name: "none", status: 404, outcome: .refused),
        Row(name: "none", status: 407, outcome: .refused),
        Row(name: "other", status: 412, outcome: .refused),
        Row(
            name: "same, complete", status: 416, headers: [(.contentRange, "bytes */\(content.count)")],
            outcome: .refused),
        Row(name: "none, other length", status: 416, headers: [(.contentRange, "bytes */5")], outcome: .refused),
        Row(name: "none", status: 500, outcome: .refused),
        Row(name: "none", status: 503, headers: [(.retryAfter, "7")], outcome: .refused),
    ]

    private static func headers(_ row: Row, _ validator: String) -> Headers {
        var headers = Headers()
        for (name, value) in row.headers { headers.append(name, value) }
        let isTag = validator.hasPrefix("\"")
        switch row.name.prefix(4) {
        case "same": headers.append(isTag ? .etag : .lastModified, validator)
        case "othe": headers.append(isTag ? .etag : .lastModified, isTag ? "\"two\"" : "Sun, 06 Nov 1994 08:49:38 GMT")
        case "weak": headers.append(.etag, "W/\"one\"")
        default: break
        }
        return headers
    }

    /// A server that now has other content of the same length.
    static let other = Data(content.reversed())

    @Test(
        "a 206 that repeats the validator is appended, a 200 restarts, every other response leaves the partial file",
        arguments: rows, ["\"one\"", modified])
    func answers(_ row: Row, _ validator: String) async throws {
        let folder = try TemporaryFolder()
        let comment = "\(row.status) \(row.name), \(validator)"
        try await withHTTPTestServer { origin in
            let token = try Self.hold(origin.url("/file"), in: folder, validator: validator)
            let headers = Self.headers(row, validator)
            let status = try #require(Status(row.status))
            origin.route("/file") { request in
                let body: [UInt8] =
                    switch row.outcome {
                    case .appended: [UInt8](Self.content[Self.held...])
                    case .restarted: [UInt8](Self.other)
                    case .mismatched: [UInt8](Self.other[Self.held...])
                    case .refused: Array("a page".utf8)
                    }
                let isBare = row.status == 204 || row.status == 304
                return .status(status, headers: headers, body: isBare ? .none : .bytes(body))
            }
            let session = Session(Self.configuration(folder))
            let place = folder.url("whole")
            let task = session.downloadTask(resuming: token, options: DownloadOptions(destination: place)).resumed()
            var error: LoadError?
            do throws(LoadError) { _ = try await task.value } catch let thrown { error = thrown }
            let request = origin.requests.last
            #expect(
                request?.headers[.range] == "bytes=\(Self.held)-" && request?.headers[.ifRange] == validator,
                "\(comment)")
            #expect(origin.requests.count == 1, "\(comment)")
            await expectEmpty(session)
            switch row.outcome {
            case .appended:
                #expect(error == nil && contents(place) == Self.content, "\(comment): \(String(describing: error))")
            case .restarted:
                #expect(error == nil && contents(place) == Self.other, "\(comment): \(String(describing: error))")
            case .refused, .mismatched:
                let isExpected =
                    error?.response?.http?.status == status && error?.resumeToken?.offset == Int64(Self.held)
                #expect(isExpected, "\(comment): \(String(describing: error))")
                #expect(error?.response?.http?.headers[.retryAfter] == headers[.retryAfter], "\(comment)")
                Self.expectPartial(folder, comment)
                if validator == "\"one\"" { try await Self.expectResumes(error?.resumeToken, folder, origin, comment) }
            }
            unlink(place.path())
            for name in folder.names { unlink(folder.url(name).path()) }
        }
    }

    @Test("the error page of a first download is its result")
    func firstPage() async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/file") { _ in .status(.notFound, body: .bytes(Array("a page".utf8))) }
            let session = Session(Self.configuration(folder))
            let place = folder.url("page")
            let response = try await session.download(Request(url: origin.url("/file")), to: place)
            #expect(response.http?.status == .notFound && contents(place) == Data("a page".utf8))
            unlink(place.path())
            await expectEmpty(session)
        }
    }

    // MARK: Sent requests

    @Test("a validator that is not UTF-8 is sent byte for byte, from a stored token too", arguments: [false, true])
    func latinTag(_ isStored: Bool) async throws {
        let folder = try TemporaryFolder()
        let tag: [UInt8] = [0x22, 0x63, 0x61, 0x66, 0xE9, 0x22]
        try await withHTTPTestServer { origin in
            origin.route("/file") { _ in
                let length = "Content-Length: \(Self.content.count)\r\n\r\n"
                return .raw(
                    [
                        .bytes(Array("HTTP/1.1 200 OK\r\nETag: ".utf8) + tag + Array("\r\n\(length)".utf8)),
                        .bytes([UInt8](Self.content.prefix(Self.held))),
                    ],
                    then: .close)
            }
            let session = Session(Self.configuration(folder))
            let place = folder.url("whole")
            let error = await failure(.truncated) {
                try await session.download(Request(url: origin.url("/file")), to: place)
            }
            var token = try #require(error?.resumeToken)
            if isStored { token = try ResumeToken(token.data) }
            origin.route("/file") { _ in
                let head =
                    "HTTP/1.1 206 Partial Content\r\nContent-Range: \(Self.range)\r\n"
                    + "Content-Length: \(Self.content.count - Self.held)\r\nETag: "
                return .raw(
                    [
                        .bytes(Array(head.utf8) + tag + Array("\r\n\r\n".utf8)),
                        .bytes([UInt8](Self.content[Self.held...])),
                    ], then: .close)
            }
            try await session.download(resuming: token, to: place)
            let sent = origin.requests.last?.headers.withValueBytes(of: .ifRange) { Array($0) }
            #expect(sent == tag, "\(String(describing: sent))")
            #expect(contents(place) == Self.content)
            unlink(place.path())
            await expectEmpty(session)
        }
    }

    @Test("of a stored token's fields only the Accept fields are sent")
    func forgedFields() async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/file") { DownloadRows.answer($0, "\"one\"") }
            let token = try Self.hold(origin.url("/file"), in: folder) { record in
                record.fields = [
                    ["Host", "evil.example"], ["Cookie", "a=forged"], ["Authorization", "Basic forged"],
                    ["Proxy-Authorization", "Basic forged"],
                    ["X-Forwarded-For", "forged"], ["Accept-Language", "de"], ["Transfer-Encoding", "chunked"],
                ]
            }
            let session = Session(Self.configuration(folder))
            let place = folder.url("whole")
            try await session.download(resuming: token, to: place)
            let headers = try #require(origin.requests.last?.headers)
            let text = headers.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
            #expect(!text.contains("forged") && !text.contains("evil") && !text.contains("chunked"), "\(text)")
            #expect(headers[.acceptLanguage] == "de")
            #expect(contents(place) == Self.content)
            unlink(place.path())
            await expectEmpty(session)
        }
    }
}
