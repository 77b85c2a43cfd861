// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoading
import URLLoadingTesting

/// Checklist 51: multipart responses, one response and body per part.
@Suite(.timeLimit(.minutes(4)))
struct PartRows {
    private static let mixed =
        "ignored\r\n--sep\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\nX: 1\r\n\r\none\r\n"
        + "--sep\r\n\r\nt\r\n-w\r-o\n\r\n--sep  \r\nX-Empty:\r\n\r\n\r\n--sep--\r\nignored, too"

    private static func answer(_ text: String, _ type: String, cuts: [Int] = []) -> HTTPTestServer.Response {
        let bytes = Array(text.utf8)
        let borders = [0] + cuts + [bytes.count]
        let pieces = zip(borders, borders.dropFirst()).map {
            HTTPTestServer.Response.Piece.bytes(Array(bytes[$0..<$1]))
        }
        return .ok(
            .chunks(pieces), headers: [.contentType: type, .server: "cam", "X": "0", "Content-Range": "bytes 0-1/2"])
    }

    /// Reads every part, as text.
    private static func texts(_ response: Response, _ body: ResponseBody) async throws -> [String] {
        var texts: [String] = []
        for try await part in try body.parts(of: response) {
            texts.append(String(decoding: try await part.body.collect(upTo: 1000), as: UTF8.self))
        }
        return texts
    }

    @Test("each part arrives with its fields, a response and its content, however the body is split")
    func parts() async throws {
        let length = Self.mixed.utf8.count
        try await withHTTPTestServer { origin in
            origin.route("/*") { request in
                let cuts = request.path.dropFirst().split(separator: "-").compactMap { Int($0) }
                return Self.answer(Self.mixed, "multipart/mixed; boundary=\"sep\"", cuts: cuts)
            }
            try await withSession(.ephemeral) { session in
                let everywhere = (1..<length).map { String($0) }
                for cut in everywhere + [everywhere.joined(separator: "-"), ""] {
                    try await session.load(Request(url: origin.url("/\(cut)"))) { response, body in
                        var parts: [(ResponsePart, String)] = []
                        for try await part in try body.parts(of: response) {
                            parts.append(
                                (part, String(decoding: try await part.body.collect(upTo: 100), as: UTF8.self)))
                        }
                        #expect(parts.map(\.1) == ["one", "t\r\n-w\r-o\n", ""], "\(cut)")
                        #expect(parts.map(\.0.headers.count) == [3, 0, 1])
                        let first = try #require(parts.first?.0.response)
                        #expect(first.mediaType?.essence == "text/plain" && first.expectedLength == 3)
                        #expect(first.url == response.url && first.http?.status == .ok)
                        #expect(first.http?.headers["X"] == "1" && first.http?.headers[.server] == "cam")
                        let second = try #require(parts.dropFirst().first?.0.response)
                        #expect(
                            second.mediaType == nil && second.expectedLength == nil && second.http?.headers["X"] == "0")
                        #expect(second.http?.headers.contains("Content-Range") == false)
                    }
                }
            }
            // The epilogue is read, so each connection served the next request.
            #expect(origin.counts.accepted == 1)
        }
    }

    @Test("byteranges, form-data and a load with a handle deliver parts")
    func kinds() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/ranges") { _ in
                Self.answer(
                    "--B\r\nContent-Range: bytes 0-1/8\r\n\r\nab\r\n"
                        + "--B\r\nContent-Range: bytes 6-7/8\r\n\r\ngh\r\n--B--\r\n",
                    "Multipart/ByteRanges;boundary=B")
            }
            origin.route("/form") { _ in
                Self.answer(
                    "--f\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--f--",
                    "multipart/form-data; boundary=f")
            }
            try await withSession(.ephemeral) { session in
                var ranges: [String?] = []
                let texts = try await session.load(Request(url: origin.url("/ranges"))) { response, body in
                    var texts: [String] = []
                    for try await part in try body.parts(of: response) {
                        ranges.append(part.response.http?.headers[.contentRange])
                        for try await line in part.body.lines { texts.append(line) }
                    }
                    return texts
                }
                #expect(texts == ["ab", "gh"] && ranges == ["bytes 0-1/8", "bytes 6-7/8"])
                let task = session.dataTask(from: origin.url("/form"))
                task.resume()
                let form = try await Self.texts(task.response, task.body)
                #expect(form == ["1"])
                guard case .completed(nil) = task.snapshot.state else {
                    Issue.record("\(task)")
                    return
                }
            }
        }
    }

    @Test("a part that is not read to its end is skipped")
    func skipping() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                let large = String(repeating: "0123456789\r\n--se", count: 40_000)
                return Self.answer(
                    "--sep\r\n\r\n\(large)\r\n--sep\r\n\r\n\(large)\r\n--sep\r\n\r\nlast\r\n--sep--",
                    "multipart/mixed; boundary=sep")
            }
            try await withSession(.ephemeral) { session in
                try await session.load(Request(url: origin.url())) { response, body in
                    var parts: ResponseBody.Parts.Iterator = try body.parts(of: response).makeAsyncIterator()
                    let first = try #require(try await parts.next())
                    var content: ResponseBody.Iterator = first.body.makeAsyncIterator()
                    _ = try #require(try await content.next())
                    let second = try #require(try await parts.next())
                    await expectFailure(.bodyUnavailable, .local) { try await content.next() }
                    // there is one reader for each part, one for the parts, and none for the body
                    let size = try await second.body.collect(upTo: 1 << 20).count
                    #expect(size == 40_000 * 16)
                    await expectFailure(.bodyUnavailable) { try await second.body.collect(upTo: 1) }
                    await expectFailure(.bodyUnavailable) { for try await _ in body {} }
                    await expectFailure(.bodyUnavailable) { for try await _ in try body.parts(of: response) {} }
                    let third = try #require(try await parts.next())
                    #expect(try await third.body.collect(upTo: 4) == Data("last".utf8))
                    let end = try await parts.next()
                    #expect(end == nil)
                    let again = try await parts.next()
                    #expect(again == nil)
                }
            }
        }
    }

    @Test("a part is delivered before the next one arrives, without reading ahead")
    func replacing() async throws {
        let peer = ScriptedPeer([
            .takeUntil("\r\n\r\n"),
            .give("HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=--cam\r\n\r\n"),
            .give("--cam\r\nContent-Type: image/jpeg\r\nContent-Length: 4\r\n\r\nJPG1"), .hold,
            .give("\r\n--cam\r\n\r\nJPG2\r\n--cam\r\n\r\nhal"), .end,
        ])
        var configuration = Configuration.ephemeral
        configuration.connect(to: peer)
        configuration.limits.partCount = 2
        try await withSession(configuration) { session in
            try await session.load(Request(url: URL(string: "http://cam.example/")!)) { response, body in
                var parts: ResponseBody.Parts.Iterator = try body.parts(of: response).makeAsyncIterator()
                let first = try #require(try await parts.next())
                var content: ResponseBody.Iterator = first.body.makeAsyncIterator()
                // With a length, the end of a part is known without its delimiter.
                let chunk = try await content.next()
                #expect(chunk.map { Data($0) } == Data("JPG1".utf8) && first.response.expectedLength == 4)
                peer.release()
                let end = try await content.next()
                #expect(end == nil)
                var texts: [String] = []
                while let part = try await parts.next() {
                    texts.append(String(decoding: try await part.body.collect(upTo: 10), as: UTF8.self))
                }
                // A body ended by closing is accepted. The number of parts is not limited.
                #expect(texts == ["JPG2", "hal"])
            }
        }
    }

    @Test(
        "a body that is not multipart, truncated or over the limits is an error of its own",
        arguments: [
            ("text/plain; boundary=sep", "", .unacceptableContentType, nil),
            ("multipart/mixed", "", .malformedBoundary, nil),
            ("multipart/mixed; boundary=\"\"", "", .malformedBoundary, nil),
            ("multipart/mixed; boundary=sep", "", .truncatedMultipart, 0),
            ("multipart/mixed; boundary=sep", "--sep\r\n\r\nabc", .truncatedMultipart, 0),
            ("multipart/mixed; boundary=sep", "--sep\r\n\r\nabc\r\n--sep\r\nX", .truncatedMultipart, 1),
            (
                "multipart/mixed; boundary=sep", "--sep\r\n\r\na\r\n--sep\r\n\r\nb\r\n--sep\r\n\r\nc\r\n--sep--",
                .tooManyParts, 1
            ),
            (
                "multipart/mixed; boundary=sep", "--sep\r\nX: \(String(repeating: "x", count: 100))\r\n\r\n\r\n--sep--",
                .headTooLarge, 0
            ),
            ("multipart/mixed; boundary=sep", "--sep\r\nA:\r\nB:\r\nC:\r\n\r\n\r\n--sep--", .tooManyFields, 0),
            ("multipart/mixed; boundary=sep", "--sep\r\nA B: c\r\n\r\n\r\n--sep--", .malformedFieldName, 0),
            ("multipart/mixed; boundary=sep", "LONG\r\n--sep--", .multipartPreambleTooLarge, 0),
            ("multipart/mixed; boundary=sep", "--sep\r\n\r\na\r\n--sep--LONG", .multipartEpilogueTooLarge, 1),
        ] as [(String, String, LoadError.Reason, Int?)])
    func broken(_ type: String, _ text: String, _ reason: LoadError.Reason, _ complete: Int?) async throws {
        var configuration = Configuration.ephemeral
        configuration.limits.partHeadSize = 64
        configuration.limits.partFieldCount = 2
        configuration.limits.partCount = 2
        let pieces = text.split(separator: "LONG", omittingEmptySubsequences: false)
        let whole = pieces.joined(separator: String(repeating: "x", count: 70_000))
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in Self.answer(whole, type) }
            try await withSession(configuration) { session in
                var seen: [String] = []
                let error = await failure(reason, .remote, .receiving) {
                    try await session.load(Request(url: origin.url())) { response, body in
                        var parts: ResponseBody.Parts.Iterator = try body.parts(of: response).makeAsyncIterator()
                        do {
                            while let part = try await parts.next() {
                                seen.append(String(decoding: try await part.body.collect(upTo: 1000), as: UTF8.self))
                            }
                        } catch {
                            // An error is permanent.
                            await expectFailure(reason) { _ = try await parts.next() }
                            throw error
                        }
                    }
                }
                #expect(error?.url == origin.url())
                if reason == .unacceptableContentType {
                    #expect(error?.detail == "the type is text/plain, and multipart is required")
                }
                #expect(seen.count == complete ?? 0)
            }
        }
    }

    @Test("cancelling ends a wait for a part, and for its content", arguments: [0, 30, 60])
    func cancelled(_ count: Int64) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/", faults: [.init(.responseBody(after: count), .stall)]) { _ in
                .ok(
                    .bytes(Array(("--sep\r\nX: 1\r\n\r\n" + String(repeating: "x", count: 100) + "\r\n--sep--").utf8)),
                    headers: [.contentType: "multipart/mixed; boundary=sep"])
            }
            let session = Session(.patient)
            let load = Task {
                try await session.load(Request(url: origin.url())) { response, body in
                    try await Self.texts(response, body).count
                }
            }
            try await origin.wait { $0.stalled == 1 }
            load.cancel()
            await expectFailure(.cancelled, .local) { try await load.value }
            await expectEmpty(session)
            try await origin.wait { $0.open == 0 }
        }
    }
}
