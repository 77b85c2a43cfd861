// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// A known content coding is removed on every path by which a body reaches a program, regardless of the request's
/// fields.
@Suite(.timeLimit(.minutes(4)))
struct CodingRows {
    /// `printf 'what is in it' | gzip -n`
    private static let coded = OldDelegateTableRows.packed
    private static let text = Data("what is in it".utf8)

    enum Asking: CaseIterable, Sendable {
        /// The session's default fields.
        case byDefault
        case inTheRequest, inTheConfiguration

        var configuration: URLSessionConfiguration {
            let configuration = URLSessionConfiguration.ephemeral
            let fields = ["Accept-Encoding": "br;q=1.0, gzip;q=0.9"]
            if self == .inTheConfiguration { configuration.httpAdditionalHeaders = fields }
            return configuration
        }

        func request(_ url: URL) -> URLRequest {
            var request = URLRequest(url: url)
            if self == .inTheRequest { request.setValue("gzip", forHTTPHeaderField: "Accept-Encoding") }
            return request
        }
    }

    enum TaskKind: CaseIterable, Sendable {
        case data, bytes, upload, download, handler, uploadHandler, downloadHandler, delegate, turned
        case connection, oldDownload
    }

    private static func serve(_ origin: HTTPTestServer, _ fields: Headers = [:]) {
        origin.route("/") { request in
            var headers: Headers = [.contentEncoding: "gzip", .contentType: "text/plain"]
            for field in fields { headers[field.name] = field.value }
            guard request.headers[.range] == "bytes=2-5" else { return .ok(.bytes(coded), headers: headers) }
            headers[.contentRange] = "bytes 2-5/\(coded.count)"
            return .status(.partialContent, headers: headers, body: .bytes(Array(coded[2...5])))
        }
    }

    private static func get(
        _ kind: TaskKind, _ request: URLRequest, _ configuration: URLSessionConfiguration
    ) async throws -> Data {
        let session = URLSession(configuration: configuration)
        defer { session.finishTasksAndInvalidate() }
        switch kind {
        case .data: return try await session.data(for: request).0
        case .upload: return try await session.upload(for: request, from: Data()).0
        case .bytes:
            var all = Data()
            for try await byte in try await session.bytes(for: request).0 { all.append(byte) }
            return all
        case .download:
            let file = try await session.download(for: request).0
            defer { try? FileManager.default.removeItem(at: file) }
            return try Data(contentsOf: file)
        case .handler:
            return try await withCheckedThrowingContinuation { continuation in
                session.dataTask(with: request) { data, _, error in
                    continuation.resume(with: data.map { .success($0) } ?? .failure(error!))
                }.resume()
            }
        case .uploadHandler:
            return try await withCheckedThrowingContinuation { continuation in
                session.uploadTask(with: request, from: Data()) { data, _, error in
                    continuation.resume(with: data.map { .success($0) } ?? .failure(error!))
                }.resume()
            }
        case .downloadHandler:
            return try await withCheckedThrowingContinuation { continuation in
                session.downloadTask(with: request) { file, _, error in
                    continuation.resume(
                        with: Result {
                            if let error { throw error }
                            return try Data(contentsOf: file!)
                        })
                }.resume()
            }
        case .delegate:
            let recorder = Recorder()
            let own = recorder.session { $0.httpAdditionalHeaders = configuration.httpAdditionalHeaders }
            let task = own.dataTask(with: request)
            await recorder.complete(task)
            await recorder.expectOrder(own)
            return recorder.record(task).data
        case .turned:
            let recorder = Recorder()
            let content = Box<Data>()
            recorder.onResponse = { $2(.becomeDownload) }
            recorder.onFile = { content.add((try? Data(contentsOf: $1)) ?? Data()) }
            let own = recorder.session { $0.httpAdditionalHeaders = configuration.httpAdditionalHeaders }
            own.dataTask(with: request).resume()
            await recorder.completed.reaches(1)
            await recorder.expectOrder(own)
            return content.all.first ?? Data()
        case .connection:
            return try await withCheckedThrowingContinuation { continuation in
                NSURLConnection.sendAsynchronousRequest(request, queue: OperationQueue()) { _, data, error in
                    continuation.resume(with: data.map { .success($0) } ?? .failure(error!))
                }
            }
        case .oldDownload:
            let folder = try makeTemporaryFolder("folder")
            defer { try? FileManager.default.removeItem(at: folder) }
            let delegate = ConnectionRows.Downloader(folder)
            Thread.detachNewThread {
                _ = NSURLDownload(request: request, delegate: delegate)
                delegate.done.runLoop()
            }
            await delegate.done.reaches(1)
            let name = try FileManager.default.contentsOfDirectory(atPath: folder.path).first ?? ""
            return try Data(contentsOf: folder.appendingPathComponent(name))
        }
    }

    @Test(
        "a coded body is decoded, even if the program sets Accept-Encoding", arguments: TaskKind.allCases,
        Asking.allCases)
    func decoded(_ kind: TaskKind, _ asking: Asking) async throws {
        try await withHTTPTestServer(serving: { Self.serve($0) }) { origin in
            let data = try await Self.get(kind, asking.request(origin.url()), asking.configuration)
            #expect(data == Self.text)
        }
    }

    @Test(
        "a part that answers a Range stays encoded, and a full response in its place is decoded",
        arguments: [
            TaskKind.data, .bytes, .delegate, .download,
        ])
    func ranges(_ kind: TaskKind) async throws {
        try await withHTTPTestServer(serving: { Self.serve($0) }) { origin in
            var request = URLRequest(url: origin.url())
            request.setValue("bytes=2-5", forHTTPHeaderField: "Range")
            let part = try await Self.get(kind, request, .ephemeral)
            #expect(part == Data(Self.coded[2...5]))
            request.setValue("bytes=900-", forHTTPHeaderField: "Range")
            let whole = try await Self.get(kind, request, .ephemeral)
            #expect(whole == Self.text)
        }
    }

    @Test("an unknown content coding is kept")
    func unknown() async throws {
        try await withHTTPTestServer { origin in
            Self.serve(origin, [.contentEncoding: "aws-chunked"])
            let data = try await Self.get(.data, Asking.inTheRequest.request(origin.url()), .ephemeral)
            #expect(data == Data(Self.coded))
        }
    }

    @Test("a stored response is served decoded, even if the program sets Accept-Encoding")
    func stored() async throws {
        try await withHTTPTestServer { origin in
            Self.serve(origin, [.cacheControl: "max-age=60"])
            let configuration = URLSessionConfiguration.ephemeral
            for asking in [Asking.inTheRequest, .byDefault, .inTheRequest] {
                let data = try await Self.get(.data, asking.request(origin.url()), configuration)
                #expect(data == Self.text)
            }
            #expect(origin.counts.requests == 1)
        }
    }

    @Test(
        "a damaged body of a known content coding is cannotDecodeRawData",
        arguments: ["gzip", "deflate", "br", "zstd", "gzip, br", String(repeating: "gzip, ", count: 5) + "gzip"])
    func damaged(_ coding: String) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in
                .ok(.bytes(Array("neither of them".utf8)), headers: [.contentEncoding: coding])
            }
            let session = URLSession(configuration: .ephemeral)
            let result = await session.result(URLRequest(url: origin.url()))
            #expect(result.error?.code == .cannotDecodeRawData)
            session.finishTasksAndInvalidate()
        }
    }

    /// A compressed body that is not what was sent.
    enum Damage: CaseIterable, Sendable {
        case beginning, middle, cutInItsMiddle, cutInItsTrailer

        var body: [UInt8] {
            var body = CodingRows.coded
            switch self {
            case .beginning: body[0] ^= 0xFF
            // A byte of the content, so that the checksum fails at the latest.
            case .middle: body[15] ^= 0x10
            case .cutInItsMiddle: body.removeLast(body.count - 18)
            case .cutInItsTrailer: body.removeLast(3)
            }
            return body
        }
    }

    @Test(
        "a body that is damaged or cut anywhere is cannotDecodeRawData, however it is received",
        arguments: Damage.allCases,
        [TaskKind.data, .bytes, .upload, .download, .handler, .uploadHandler, .downloadHandler])
    func damagedAnywhere(_ damage: Damage, _ kind: TaskKind) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.bytes(damage.body), headers: [.contentEncoding: "gzip"]) }
            let request = URLRequest(url: origin.url())
            let error = await #expect(throws: URLError.self) { _ = try await Self.get(kind, request, .ephemeral) }
            #expect(error?.code == .cannotDecodeRawData)
        }
    }
}
