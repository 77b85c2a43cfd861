// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The serialized state from which an upload task is resumed.
@Suite struct UploadTicketTests {
    private static func request() throws -> Request {
        var request = Request(url: try #require(URL(string: "http://u:p@example.org/files?a=b")), method: .post)
        request.headers = [
            .authorization: "Basic secret", .accept: "text/plain", "X-Token": "secret", .cookie: "secret",
        ]
        request.idleTimeout = .milliseconds(1_500)
        (request.handlesCookies, request.trafficClass, request.allowsCellularAccess) = (false, .background, false)
        return request
    }

    private static func ticket(_ source: UploadTicket.Source, _ length: Int64?, _ identity: UploadIdentity? = nil)
        throws -> UploadTicket
    {
        let place = try #require(URL(string: "http://example.org/uploads/1"))
        return UploadTicket(try request(), source, place: place, length: length, identity: identity)
    }

    @Test("a ticket is read back unchanged, without any possible secret")
    func roundTrip() throws {
        let ticket = try Self.ticket(.data(Data("a\nb\n".utf8)), 4)
        #expect(!String(decoding: ticket.data, as: UTF8.self).contains("secret"))
        let read = try UploadTicket(ticket.data)
        #expect(read.data == ticket.data && read.place == ticket.place && read.length == 4 && read.source.isData)
        #expect(read.request.url.absoluteString == "http://example.org/files?a=b" && read.request.method == .post)
        #expect(read.request.headers == [.accept: "text/plain"] && read.request.idleTimeout == .milliseconds(1_500))
        #expect(
            !read.request.handlesCookies && read.request.trafficClass == .background
                && read.request.allowsCellularAccess == false)
        #expect(read.request.allowsExpensiveNetworkAccess == nil)
    }

    @Test("files and streams, with a length and without")
    func sources() throws {
        let identity = UploadIdentity(length: 7, modified: 12, digest: "ab", path: "/tmp/film")
        let file = try UploadTicket(try Self.ticket(.file(URL(filePath: "/tmp/film")), 7, identity).data)
        #expect(file.identity == identity)
        guard case .file(let url) = file.source else {
            Issue.record("no file")
            return
        }
        #expect(url.path() == "/tmp/film")
        let stream = try UploadTicket(try Self.ticket(.provided, nil).data)
        guard case .provided = stream.source else {
            Issue.record("no stream")
            return
        }
        #expect(stream.length == nil && stream.identity == nil)
    }

    @Test("a changed bit or a missing end is detected at every position")
    func damage() throws {
        let good = try Self.ticket(.data(Data("content".utf8)), 7).data
        var unnoticed = 0
        for index in good.indices {
            var bad = good
            bad[index] ^= 1
            if (try? UploadTicket(bad)) != nil || (try? UploadTicket(good.prefix(index))) != nil { unnoticed += 1 }
        }
        #expect(unnoticed == 0)
        #expect((try? UploadTicket(good + Data("x".utf8))) == nil)
    }

    @Test("a stop ends the look at the file, without which there is no ticket")
    func stoppedLook() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("film", Data("content".utf8))
        let request = Request(
            url: try #require(URL(string: "http://example.org/files")), method: .post, body: .file(file))
        let upload = try #require(UploadWork(request, .file(file)))
        var prepared = try PreparedRequest.make(request, DefaultFields(Configuration.ephemeral), isForeign: false)
        prepared.body = try await OutgoingBody.open(.file(file), .never)
        try upload.complete(&prepared)
        let status = try #require(Status(ResumableUploads.statusCode))
        upload.note(HTTPHead(status: status, headers: [.uploadInteropVersion: "9", .location: "/uploads/1"]))
        #expect(await upload.ticket(.never)?.identity?.length == 7)
        let stopped = StopToken()
        stopped.stop(.deadline)
        #expect(await upload.ticket(stopped) == nil)
    }

    @Test("an upload URL at another server is refused")
    func foreign() throws {
        let place = try #require(URL(string: "http://example.com/uploads/1"))
        let ticket = UploadTicket(try Self.request(), .provided, place: place, length: nil, identity: nil)
        #expect(throws: LoadError.self) { try UploadTicket(ticket.data) }
    }
}
