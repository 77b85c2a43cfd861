// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport

/// AWS Signature Version 4 with moto, whose signatures botocore verifies: uploads and downloads of 100 MB.
@Suite(
    .enabled(if: Servers.areHere, Servers.areMissing),
    .enabled(if: Servers.variable("STORAGE") != nil, "moto is not installed: script/setup --tests"),
    .timeLimit(.minutes(10)), .serialized)
struct StorageTests {
    private static let size = 100_000_000
    private static let content = Data(repeating: 0x61, count: size)

    private static func signer(secret: String? = nil) throws -> AWSSigner {
        let place = try #require(Servers.variable("STORAGE_KEY"))
        let lines = try String(contentsOfFile: place, encoding: .utf8).split(separator: "\n").map(String.init)
        let credentials = AWSCredentials(accessKey: lines[0], secretKey: secret ?? lines[1])
        return AWSSigner(credentials: credentials, region: "us-east-1", service: "s3")
    }

    private static func decisions(_ signer: AWSSigner) -> Decisions {
        var decisions = Decisions()
        decisions.sign = signer.decision
        return decisions
    }

    /// Makes a bucket, and passes a session that signs.
    private static func with(_ name: String, _ use: (Session, URL) async throws -> Void) async throws {
        var configuration = Servers.configuration
        configuration.timeouts.idle = .seconds(120)
        try await withSession(configuration, decisions: decisions(try signer())) { session in
            let bucket = try Servers.url("STORAGE", "/\(name)")
            try await session.data(for: Request(url: bucket, method: .put)).1.requireSuccess()
            try await use(session, bucket)
        }
    }

    /// Loads an object, and compares it with the content.
    private static func expect(_ url: URL, _ session: Session, size: Int = size) async throws {
        let folder = try TemporaryFolder()
        let task = session.downloadTask(
            Request(url: url), options: DownloadOptions(destination: folder.url("file")))
        task.resume()
        #expect(try await task.value.size == Int64(size))
        #expect(try Data(contentsOf: folder.url("file")) == content.prefix(size))
    }

    enum Way: String, CaseIterable, Sendable {
        case signed, unsigned, checksum, file, query, chunks, signedTrailer, unsignedTrailer
    }

    @Test("100 MB go up and come down", arguments: Way.allCases)
    func wholeObject(_ way: Way) async throws {
        try await Self.with("way-\(way.rawValue.lowercased())") { session, bucket in
            let url = bucket.appending(path: "a b")
            var signer = try Self.signer()
            var put = Request(url: url, method: .put, body: .data(Self.content))
            let folder = try TemporaryFolder()
            switch way {
            case .signed: break
            case .unsigned, .unsignedTrailer: signer.payload = .unsigned
            case .checksum: signer.statesChecksum = true
            case .file:
                try Self.content.write(to: folder.url("file"))
                put.body = .file(folder.url("file"))
            case .query: signer.placement = .query(expires: .seconds(600))
            case .chunks, .signedTrailer: break
            }
            var decisions = Self.decisions(signer)
            if [.chunks, .signedTrailer, .unsignedTrailer].contains(way) {
                let upload = signer.streaming(
                    put, length: Int64(Self.size), chunkSize: 1 << 20, checksum: way == .signedTrailer ? .sha256 : nil
                ) {
                    AsyncStream<Data> { pieces in
                        for start in stride(from: 0, to: Self.size, by: 10_000_000) {
                            pieces.yield(Self.content[start..<min(start + 10_000_000, Self.size)])
                        }
                        pieces.finish()
                    }
                }
                (put, decisions) = (upload.request, upload.decisions)
            }
            let (answer, response) = try await session.data(for: put, decisions: decisions)
            #expect(response.status == .ok, "\(String(decoding: answer, as: UTF8.self))")
            try await Self.expect(url, session)
        }
    }

    @Test("A presigned link needs no further signature, and serves ranges") func links() async throws {
        try await Self.with("links") { session, bucket in
            let url = bucket.appending(path: "x")
            let put = Request(url: url, method: .put, body: .data(Self.content.prefix(5_000_000)))
            try await session.data(for: put).1.requireSuccess()
            let link = try await Self.signer().presigned(url, expires: .seconds(600))
            try await withSession(Servers.configuration) { plain in
                try await Self.expect(link, plain, size: 5_000_000)
                let (part, response) = try await plain.data(
                    for: Request(url: link, headers: [.range: "bytes=10-19"]))
                #expect(response.status == .partialContent && part.count == 10)
                let (_, refused) = try await plain.data(from: url)
                #expect(refused.status == .forbidden)
                let tampered = try #require(
                    URL(string: link.absoluteString.replacing("Expires=600", with: "Expires=601")))
                #expect(try await plain.data(from: tampered).1.status == .forbidden)
            }
        }
    }

    @Test("A list of objects has its query signed, with every kind of character") func queries() async throws {
        try await Self.with("queries") { session, bucket in
            for key in ["a/b", "%C3%BC%20~%27%28%29%2A"] {
                let url = try #require(URL(string: "\(bucket.absoluteString)/\(key)"))
                let put = Request(url: url, method: .put, body: .data(Data("x".utf8)))
                try await session.data(for: put).1.requireSuccess()
            }
            var list = Request(url: bucket)
            list.append(queryItems: [
                URLQueryItem(name: "list-type", value: "2"), URLQueryItem(name: "prefix", value: "ü ~'()*"),
            ])
            let (data, response) = try await session.data(for: list)
            #expect(response.status == .ok && String(decoding: data, as: UTF8.self).contains("<KeyCount>1</KeyCount>"))
        }
    }

    @Test("A file in parts has each of its requests signed") func parts() async throws {
        try await Self.with("parts") { session, bucket in
            let url = bucket.appending(path: "x")
            try await session.data(for: Request(url: url, method: .put, body: .data(Self.content))).1.requireSuccess()
            let folder = try TemporaryFolder()
            var options = DownloadOptions(destination: folder.url("file"))
            options.parallelRanges = 4
            let task = session.downloadTask(Request(url: url), options: options)
            task.resume()
            _ = try await task.value
            #expect(try Data(contentsOf: folder.url("file")) == Self.content)
        }
    }

    @Test("Another secret is refused") func wrongSecret() async throws {
        let decisions = Self.decisions(try Self.signer(secret: "another"))
        try await withSession(Servers.configuration, decisions: decisions) { session in
            let (data, response) = try await session.data(from: try Servers.url("STORAGE", "/any"))
            #expect(response.status == .forbidden)
            #expect(String(decoding: data, as: UTF8.self).contains("SignatureDoesNotMatch"))
        }
    }

    @Test("The command uploads and downloads with --aws-sigv4") func command() async throws {
        try await Self.with("command") { _, bucket in
            let place = try #require(Servers.variable("STORAGE_KEY"))
            let lines = try String(contentsOfFile: place, encoding: .utf8).split(separator: "\n").map(String.init)
            let words = ["-s", "-f", "--aws-sigv4", "aws:amz:us-east-1:s3", "-u", "\(lines[0]):\(lines[1])"]
            let folder = try TemporaryFolder()
            try Self.content.prefix(3_000_000).write(to: folder.url("up"))
            let target = bucket.absoluteString + "/up"
            let up = try await Running.urlload(words + ["-T", folder.url("up").path(), target])
            #expect(up.code == 0, "\(up.errors)\(up.text)")
            let down = try await Running.urlload(words + ["-o", folder.url("down").path(), target])
            #expect(down.code == 0, "\(down.errors)")
            #expect(try folder.bytes("down") == folder.bytes("up"))
        }
    }
}
