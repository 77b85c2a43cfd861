// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

/// Bodies read byte by byte, and text decoded from bytes.
@Suite(.timeLimit(.minutes(4)))
struct BytesRows {
    /// Bytes in pieces of one, as a server may send them.
    struct Scattered: AsyncSequence, Sendable {
        let bytes: [UInt8]
        struct AsyncIterator: AsyncIteratorProtocol {
            var bytes: ArraySlice<UInt8>
            mutating func next() async -> UInt8? { bytes.popFirst() }
        }
        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(bytes: bytes[...]) }
    }

    private static func collect<S: AsyncSequence>(_ sequence: S) async throws -> [S.Element] {
        var all: [S.Element] = []
        for try await element in sequence { all.append(element) }
        return all
    }

    @Test("lines end at the same terminators as Apple's; empty lines are skipped")
    func lines() async throws {
        let text = "a\nb\r\nc\rd\u{0B}e\u{0C}f\u{85}g\u{2028}h\u{2029}\n\r\n\r\rü é\u{A8}€\u{2027}x"
        let lines = try await Self.collect(Scattered(bytes: Array(text.utf8)).lines)
        #expect(lines == ["a", "b", "c", "d", "e", "f", "g", "h", "ü é\u{A8}€\u{2027}x"])
        let ended = try await Self.collect(Scattered(bytes: Array("one\n\ntwo\r\n".utf8)).lines)
        #expect(ended == ["one", "two"])
    }

    @Test("scalars and characters are decoded from valid and invalid UTF-8")
    func scalars() async throws {
        let text = "aé€😀e\u{301}👩‍👩‍👧🇩🇪\r\nz"
        let scalars = try await Self.collect(Scattered(bytes: Array(text.utf8)).unicodeScalars)
        #expect(scalars == Array(text.unicodeScalars))
        let characters = try await Self.collect(Scattered(bytes: Array(text.utf8)).characters)
        #expect(characters == Array(text))
        for wrong: [UInt8] in [
            [0xFF, 0x61], [0xE2, 0x82, 0x61], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x82],
        ] {
            let repaired = try await Self.collect(Scattered(bytes: wrong).unicodeScalars)
            #expect(repaired == Array(String(decoding: wrong, as: UTF8.self).unicodeScalars), "\(wrong)")
        }
    }

    @Test("bytes(for:) returns response and body; the task's delegate receives redirects and metrics")
    func bytes() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/from") { _ in .redirect("/") }
            origin.route("/") { _ in .ok(.chunks(["one\ntw", .pause(.milliseconds(2)), "o\n", "three"])) }
            origin.route("/large") { _ in .ok(.repeated(count: 3_000_000)) }
            origin.route("/empty") { _ in .status(.noContent) }
            let session = URLSession(configuration: .ephemeral)
            let delegate = Recorder(isSerial: false)
            let (bytes, response) = try await session.bytes(from: origin.url("/from"), delegate: delegate)
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            let lines = try await Self.collect(bytes.lines)
            #expect(lines == ["one", "two", "three"])
            #expect(delegate.words(bytes.task).hasPrefix("redirect"))
            let (large, _) = try await session.bytes(from: origin.url("/large"))
            var count = 0
            for try await byte in large { count += byte == 0x61 ? 1 : 0 }
            #expect(count == 3_000_000 && large.task.countOfBytesReceived == 3_000_000)
            let (empty, _) = try await session.bytes(from: origin.url("/empty"))
            let none = try await Self.collect(empty)
            #expect(none.isEmpty)
            session.finishTasksAndInvalidate()
        }
    }

    @Test(
        "a slow reader slows down the server; releasing the bytes, or cancelling the reader, ends the load",
        arguments: [false, true])
    func abandoned(_ cancels: Bool) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.repeated(count: .max, chunked: true)) }
            let session = URLSession(configuration: .ephemeral)
            let task: URLSessionDataTask
            if cancels {
                let (bytes, _) = try await session.bytes(from: origin.url())
                task = bytes.task
                let reading = Task {
                    for try await _ in bytes {}
                }
                try await Task.sleep(for: .milliseconds(5))
                reading.cancel()
                await #expect(throws: URLError.self) { try await reading.value }
            } else {
                let (bytes, _) = try await session.bytes(from: origin.url())
                task = bytes.task
                var iterator = bytes.makeAsyncIterator()
                let first = try await iterator.next()
                #expect(first == 0x61)
                try await Task.sleep(for: .milliseconds(20))
                // The buffered bytes, and one piece in transit.
                #expect(task.countOfBytesReceived < 2_000_000)
            }
            try await task.eventually(.completed)
            #expect((task.error as? URLError)?.code == .cancelled)
            try await origin.wait { $0.open == 0 }
            session.invalidateAndCancel()
        }
    }

    @Test("an error before the response is thrown by the call, an error within the body by the iterator")
    func errors() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok(.declared(100, bytes: Array("half".utf8))) }
            let session = URLSession(configuration: .ephemeral)
            do {
                _ = try await session.bytes(from: try url("gopher://a.example/"))
                Issue.record("no such scheme")
            } catch { #expect((error as? URLError)?.code == .unsupportedURL) }
            let (bytes, _) = try await session.bytes(from: origin.url())
            var got: [UInt8] = []
            do {
                for try await byte in bytes { got.append(byte) }
                Issue.record("it was truncated")
            } catch { #expect(error is URLError) }
            #expect(got == Array("half".utf8))
            let waiting = Task { try await session.bytes(from: origin.url()) }
            waiting.cancel()
            _ = try? await waiting.value
            session.finishTasksAndInvalidate()
        }
    }

    /// Resumes its task when it is announced, and waits until the task has a response.
    final class Hasty: NSObject, URLSessionTaskDelegate, Sendable {
        func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
            task.resume()
            for _ in 0..<20_000 where task.response == nil { Thread.sleep(forTimeInterval: 0.001) }
        }
    }

    @Test("bytes(for:) returns a response that has come before the caller waits for it", arguments: [5, 400_000])
    func early(_ count: Int) async throws {
        let session = URLSession(configuration: .ephemeral)
        let source = try url("data:text/plain," + String(repeating: "a", count: count))
        let (bytes, response) = try await session.bytes(from: source, delegate: Hasty())
        #expect(response.mimeType == "text/plain")
        let all = try await Self.collect(bytes)
        #expect(all == [UInt8](repeating: 0x61, count: count))
        session.finishTasksAndInvalidate()
    }
}
