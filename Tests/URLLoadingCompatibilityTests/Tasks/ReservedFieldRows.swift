// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Fields that the library owns: the classic API overwrites them instead of failing the task.
@Suite(.timeLimit(.minutes(4)))
struct ReservedFieldRows {
    private static let text = Data("naïve".utf8)

    /// Answers with what it received: method, length, coding, bytes of the body.
    private static func echo(_ origin: HTTPTestServer) {
        let answer: @Sendable (HTTPTestServer.RecordedRequest) -> HTTPTestServer.Response = { request in
            let length = request.headers[.contentLength] ?? "-", coding = request.headers[.transferEncoding] ?? "-"
            return .ok("\(request.method) \(length) \(coding) \(request.bodyCount)")
        }
        origin.route("/", answer)
        origin.route("/moved") { _ in .status(.permanentRedirect, headers: [.location: "/"]) }
    }

    enum Source: CaseIterable, Sendable { case body, upload, file, stream, streamedUpload, resumedUpload }

    private static func send(
        _ source: Source, _ origin: HTTPTestServer, _ fields: [String: String], path: String = "/",
        _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) async throws -> Result3 {
        var request = URLRequest(url: origin.url(path))
        request.httpMethod = "PUT"
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        let recorder = Recorder()
        recorder.onBody = { $1(InputStream(data: text)) }
        let session = recorder.session(nil, change)
        defer { session.finishTasksAndInvalidate() }
        let folder = try TemporaryFolder()
        let file = try folder.write("body", text)
        let task: URLSessionTask
        switch source {
        case .body:
            request.httpBody = text
            task = session.dataTask(with: request)
        case .stream:
            request.httpBodyStream = InputStream(data: text)
            task = session.dataTask(with: request)
        case .upload, .resumedUpload: task = session.uploadTask(with: request, from: text)
        case .file: task = session.uploadTask(with: request, fromFile: file)
        case .streamedUpload: task = session.uploadTask(withStreamedRequest: request)
        }
        await recorder.complete(task)
        return Result3(
            data: recorder.record(task).data, response: task.response, error: task.error as? URLError)
    }

    private static func words(_ result: Result3) -> String {
        result.error.map { "\($0.code.rawValue)" } ?? String(decoding: result.data ?? Data(), as: UTF8.self)
    }

    @Test(
        "a wrong or unreadable Content-Length is replaced by the length of the body",
        arguments: ["5", "7", "", "12 bytes", "-1", "6, 6", "99999999999999999999"], [Source.body, .upload, .file])
    func wrongLength(_ stated: String, _ source: Source) async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            for path in ["/", "/moved"] {
                let result = try await Self.send(source, origin, ["Content-Length": stated], path: path)
                #expect(Self.words(result) == "PUT 6 - 6", "\(path)")
            }
        }
    }

    @Test("a Content-Length that is stated for a stream is its length; an unreadable one is dropped")
    func streams() async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            for source in [Source.stream, .streamedUpload] {
                for (stated, expected) in [
                    ("6", "PUT 6 - 6"), ("", "PUT - chunked 6"), ("x", "PUT - chunked 6"), ("-6", "PUT - chunked 6"),
                ] {
                    let result = try await Self.send(source, origin, ["Content-Length": stated])
                    #expect(Self.words(result) == expected, "\(source) \(stated)")
                }
            }
        }
    }

    @Test("framing fields of a request without a body, and of a configuration, are not sent")
    func withoutBody() async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let session = URLSession(configuration: .ephemeral)
            for fields in [["Content-Length": "5"], ["Content-Length": ""], ["Transfer-Encoding": "chunked"]] {
                var request = URLRequest(url: origin.url())
                request.allHTTPHeaderFields = fields
                #expect(Self.words(await session.result(request)) == "GET - - 0")
                request.httpMethod = "POST"
                #expect(Self.words(await session.result(request)) == "POST 0 - 0")
            }
            session.finishTasksAndInvalidate()
            for source in [Source.body, .file, .stream] {
                let result = try await Self.send(source, origin, [:]) {
                    $0.httpAdditionalHeaders = ["Content-Length": "3", "transfer-encoding": "gzip"]
                }
                #expect(Self.words(result) == (source == .stream ? "PUT - chunked 6" : "PUT 6 - 6"))
            }
        }
    }

    @Test("Transfer-Encoding: chunked sends the body in chunks, whatever its source", arguments: Source.allCases)
    func chunked(_ source: Source) async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            for coding in ["chunked", "Chunked"] {
                let fields = ["Transfer-Encoding": coding, "Content-Length": "99"]
                let result = try await Self.send(source, origin, fields, path: source == .body ? "/moved" : "/")
                #expect(Self.words(result) == "PUT - chunked 6")
            }
            let plain = try await Self.send(source, origin, ["Transfer-Encoding": "identity"])
            let isStream = [.stream, .streamedUpload].contains(source)
            #expect(Self.words(plain) == (isStream ? "PUT - chunked 6" : "PUT 6 - 6"))
        }
    }

    @Test("a body that the program claims to have compressed for the transfer is refused")
    func unsupportedCoding() async throws {
        try await withHTTPTestServer(serving: Self.echo) { origin in
            let result = try await Self.send(.body, origin, ["Transfer-Encoding": "gzip, chunked"])
            #expect(Self.words(result) == "-1000")
        }
    }

    @Test("over HTTP/2 the same fields are replaced")
    func http2() async throws {
        try await withHTTP2TestServer { server in
            server.route("/") { request in
                .ok("\(request.headers[.contentLength] ?? "-") \(request.body.count)")
            }
            for (fields, expected) in [
                (["Content-Length": "5"], "6 6"), (["Transfer-Encoding": "chunked"], "- 6"),
            ] {
                var request = URLRequest(url: server.url())
                request.httpMethod = "PUT"
                request.httpBody = Self.text
                request.allHTTPHeaderFields = fields
                let configuration = URLSessionConfiguration.ephemeral
                configuration.adjust { $0.connections.httpVersions = .http2PriorKnowledge }
                let session = URLSession(configuration: configuration)
                #expect(Self.words(await session.result(request)) == expected)
                session.finishTasksAndInvalidate()
            }
        }
    }
}
