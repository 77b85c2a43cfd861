// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Every method of the delegates of connections and downloads, called on the promised queue, in its place.
@Suite(.timeLimit(.minutes(4)))
struct OldDelegateTableRows {
    static let methods: [String: String] = [
        "fail": "NSURLConnectionDelegate.connection(_:didFailWithError:)",
        "storage": "NSURLConnectionDelegate.connectionShouldUseCredentialStorage(_:)",
        "any challenge": "NSURLConnectionDelegate.connection(_:willSendRequestFor:)",
        "can": "NSURLConnectionDelegate.connection(_:canAuthenticateAgainstProtectionSpace:)",
        "challenge": "NSURLConnectionDelegate.connection(_:didReceive:)",
        "cancelled": "NSURLConnectionDelegate.connection(_:didCancel:)",
        "will send": "NSURLConnectionDataDelegate.connection(_:willSend:redirectResponse:)",
        "response": "NSURLConnectionDataDelegate.connection(_:didReceive:)",
        "data": "NSURLConnectionDataDelegate.connection(_:didReceive:)",
        "body": "NSURLConnectionDataDelegate.connection(_:needNewBodyStream:)",
        "sent":
            "NSURLConnectionDataDelegate.connection(_:didSendBodyData:totalBytesWritten:totalBytesExpectedToWrite:)",
        "cache": "NSURLConnectionDataDelegate.connection(_:willCacheResponse:)",
        "finish": "NSURLConnectionDataDelegate.connectionDidFinishLoading(_:)",
        "written": "NSURLConnectionDownloadDelegate.connection(_:didWriteData:totalBytesWritten:expectedTotalBytes:)",
        "resume":
            "NSURLConnectionDownloadDelegate.connectionDidResumeDownloading(_:totalBytesWritten:expectedTotalBytes:)",
        "file": "NSURLConnectionDownloadDelegate.connectionDidFinishDownloading(_:destinationURL:)",
    ]
    static let ofDownloads: [String: String] = [
        "begin": "NSURLDownloadDelegate.downloadDidBegin(_:)",
        "will send": "NSURLDownloadDelegate.download(_:willSend:redirectResponse:)",
        "can": "NSURLDownloadDelegate.download(_:canAuthenticateAgainstProtectionSpace:)",
        "challenge": "NSURLDownloadDelegate.download(_:didReceive:)",
        "cancelled": "NSURLDownloadDelegate.download(_:didCancel:)",
        "storage": "NSURLDownloadDelegate.downloadShouldUseCredentialStorage(_:)",
        "response": "NSURLDownloadDelegate.download(_:didReceive:)",
        "resume": "NSURLDownloadDelegate.download(_:willResumeWith:fromByte:)",
        "data": "NSURLDownloadDelegate.download(_:didReceiveDataOfLength:)",
        "decode": "NSURLDownloadDelegate.download(_:shouldDecodeSourceDataOfMIMEType:)",
        "destination": "NSURLDownloadDelegate.download(_:decideDestinationWithSuggestedFilename:)",
        "created": "NSURLDownloadDelegate.download(_:didCreateDestination:)",
        "finish": "NSURLDownloadDelegate.downloadDidFinish(_:)",
        "fail": "NSURLDownloadDelegate.download(_:didFailWithError:)",
    ]
    @Test("the tables contain every method of the delegates of connections and downloads")
    func isWhole() async throws {
        let surface = try await PublicSurface(of: "URLLoadingCompatibility")
        let declared = surface.delegateMethods { $0.hasPrefix("NSURL") }
        #expect(declared.count > 25)
        #expect((Array(Self.methods.values) + Array(Self.ofDownloads.values)).sorted() == declared)
    }

    /// `printf 'what is in it' | gzip -n`
    static let packed: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x2B, 0xCF, 0x48, 0x2C, 0x51, 0xC8, 0x2C, 0x56,
        0xC8, 0xCC, 0x53,
        0xC8, 0x2C, 0x01, 0x00, 0x26, 0x0A, 0xED, 0x8B, 0x0D, 0x00, 0x00, 0x00,
    ]

    private static func routes(_ origin: HTTPTestServer) {
        origin.route("/from") { _ in .redirect("/to", status: .temporaryRedirect) }
        for path in ["/to", "/cancel"] {
            origin.route(path) { request in
                guard request.headers[.authorization] != nil else {
                    return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"r\""])
                }
                return .ok("in")
            }
        }
        origin.route("/kept") { _ in .ok("kept", headers: ["Cache-Control": "max-age=60"]) }
        origin.route("/packed") { _ in
            .ok(
                .bytes(packed),
                headers: [.contentType: "application/gzip", "Content-Disposition": "attachment; filename=packed.gz"])
        }
        origin.route("/broken") { _ in .ok(.bytes(packed.dropLast()), headers: [.contentType: "application/x-gzip"]) }
        origin.route("/file") { request in
            guard request.headers[.range] == nil else {
                return .status(
                    .partialContent, headers: [.etag: "\"one\"", .contentRange: "bytes 1000-1999/2000"],
                    body: .repeated(count: 1000))
            }
            return .ok(.repeated(count: 2000), headers: [.etag: "\"one\""])
        }
    }

    // MARK: Connections

    @Test("each method of a connection's delegate is called, on its queue, in its place (checklist 151-156, 169, 170)")
    func connections() async throws {
        try await withHTTPTestServer(serving: Self.routes) { origin in
            var calls: Set<String> = []
            func run(_ request: URLRequest, _ delegate: EveryConnectionCall, _ words: [String]) async throws {
                try await Self.run(request, delegate, delegate.queue, delegate.calls)
                #expect(delegate.calls.all == words)
                calls.formUnion(delegate.calls.all)
            }
            var streamed = URLRequest(url: origin.url("/from"))
            streamed.httpMethod = "PUT"
            streamed.httpBodyStream = Answers.body
            try await run(
                streamed, EveryDataCall(),
                [
                    "storage elsewhere", "will send", "sent", "will send again", "body", "sent", "can", "challenge",
                    "body", "sent",
                    "response", "data", "finish",
                ])
            try await run(
                URLRequest(url: origin.url("/kept")), EveryDataCall(),
                [
                    "storage elsewhere", "will send", "response", "data", "cache", "finish",
                ])
            try await run(
                URLRequest(url: origin.url("/cancel")), EveryDataCall(),
                [
                    "storage elsewhere", "will send", "can", "challenge", "cancelled", "fail -999",
                ])
            try await run(
                URLRequest(url: origin.url("/file")), EveryFileCall(), ["storage elsewhere", "written", "file"])
            origin.inject(.init(.responseBody(after: 1000), .close), onConnection: origin.counts.accepted + 1)
            try await run(
                URLRequest(url: origin.url("/file")), EveryFileCall(),
                [
                    "storage elsewhere", "written", "resume 1000/2000", "written", "file",
                ])
            let one = OneChallengeCall()
            try await Self.run(URLRequest(url: origin.url("/to")), one, one.queue, one.calls)
            #expect(one.calls.all == ["any challenge", "finish"])
            Self.expectAll(Self.methods, calls.union(one.calls.all))
        }
    }

    @Test("a resumed download sends its request's fields; a refusal is not stored as a file", arguments: [true, false])
    func continues(isLet: Bool) async throws {
        try await withHTTPTestServer { origin in
            let asked = Counter()
            origin.route("/file") { request in
                asked.add()
                guard request.headers["X-Key"] == "open", isLet || asked.value == 1 else {
                    return .status(.forbidden, body: .bytes(Array("no".utf8)))
                }
                guard request.headers[.range] == nil else {
                    return .status(
                        .partialContent, headers: [.etag: "\"one\"", .contentRange: "bytes 1000-1999/2000"],
                        body: .repeated(count: 1000))
                }
                return .ok(.repeated(count: 2000), headers: [.etag: "\"one\""])
            }
            origin.inject(.init(.responseBody(after: 1000), .close), onConnection: 1)
            var request = URLRequest(url: origin.url("/file"))
            request.setValue("open", forHTTPHeaderField: "X-Key")
            let delegate = EveryFileCall()
            try await Self.run(request, delegate, delegate.queue, delegate.calls)
            let rest = isLet ? ["resume 1000/2000", "written", "file"] : ["written", "fail -1005"]
            #expect(
                delegate.calls.all.filter { $0 != "written" } == ["storage elsewhere"] + rest.filter { $0 != "written" }
            )
            #expect(origin.requests.map { $0.headers["X-Key"] } == ["open", "open"])
        }
    }

    private static func run(
        _ request: URLRequest, _ delegate: any NSURLConnectionDelegate, _ queue: OperationQueue, _ calls: RecordedCalls
    ) async throws {
        let connection = try #require(NSURLConnection(request: request, delegate: delegate, startImmediately: false))
        connection.setDelegateQueue(queue)
        connection.start()
        await calls.done.reaches(1)
    }

    private static func expectAll(
        _ table: [String: String], _ calls: Set<String>, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let missing = table.keys.filter { word in !calls.contains { $0 == word || $0.hasPrefix(word + " ") } }
        #expect(missing.isEmpty, sourceLocation: sourceLocation)
    }

    // MARK: Downloads

    @Test("each method of a download's delegate is called, on its thread, in its place (checklist 154, 155, 158, 169)")
    func downloads() async throws {
        let folder = try makeTemporaryFolder("folder")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withHTTPTestServer(serving: Self.routes) { origin in
            var calls: Set<String> = []
            func load(_ path: String, _ words: [String]) async {
                let delegate = EveryDownloadCall(folder)
                let request = URLRequest(url: origin.url(path))
                await Self.onRunLoop(delegate) { NSURLDownload(request: request, delegate: delegate) }
                #expect(delegate.calls.all == words)
                calls.formUnion(delegate.calls.all)
            }
            let beginning = ["storage", "begin", "will send"]
            await load(
                "/from",
                beginning + [
                    "will send again", "can", "challenge", "response", "destination", "data", "created", "finish",
                ])
            await load("/cancel", beginning + ["can", "challenge", "cancelled", "fail -999"])
            await load(
                "/packed",
                beginning + ["response", "decode application/gzip", "destination", "data", "created", "finish"])
            let packed = try String(contentsOf: folder.appendingPathComponent("packed"), encoding: .utf8)
            #expect(packed == "what is in it")
            await load(
                "/broken", beginning + ["response", "decode application/x-gzip", "destination", "data", "fail -1015"])
            let data = try await Self.resumeData(origin)
            let delegate = EveryDownloadCall(folder)
            let path = folder.appendingPathComponent("whole").path
            await Self.onRunLoop(delegate) { NSURLDownload(resumeData: data, delegate: delegate, path: path) }
            #expect(delegate.calls.all == ["storage", "begin", "resume", "data", "created", "finish"])
            Self.expectAll(Self.ofDownloads, calls.union(delegate.calls.all))
        }
    }

    /// Returns the resume data of a download that was interrupted midway.
    private static func resumeData(_ origin: HTTPTestServer) async throws -> Data {
        origin.route("/file", faults: [.init(.responseBody(after: 1000), .stall)]) { _ in
            .ok(.repeated(count: 2000), headers: [.etag: "\"one\""])
        }
        let session = URLSession(configuration: .ephemeral)
        let task = session.downloadTask(with: origin.url("/file")).resumed()
        try await task.received(1000)
        let data = await task.cancelByProducingResumeData()
        session.invalidateAndCancel()
        origin.removeFaults()
        origin.releaseStalls()
        routes(origin)
        return try #require(data)
    }

    private static func onRunLoop(_ delegate: EveryDownloadCall, _ make: @escaping @Sendable () -> NSURLDownload) async
    {
        let done = delegate.calls.done
        Thread.detachNewThread {
            delegate.begins()
            let download = make()
            done.runLoop()
            withExtendedLifetime(download) {}
        }
        await done.reaches(1)
    }
}
