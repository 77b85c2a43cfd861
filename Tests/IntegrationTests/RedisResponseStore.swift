// SPDX-License-Identifier: Apache-2.0

// The example of docs/guides/external-cache.md, line by line: `ExternalCacheTests` compares the two.

import FoundationEssentials
import URLLoading

/// Keeps responses in Redis or Valkey, over one connection on which commands do not wait for the replies to others.
actor RedisResponseStore: ResponseStore {
    struct Failure: Error { let text: String }

    private let session: Session
    private let (host, port, prefix): (String, Int, String)
    private var stream: StreamTask?
    private var waiters: [CheckedContinuation<Data?, any Error>] = []
    private var unsent = Data()
    private var isSending = false

    init(host: String, port: Int = 6379, prefix: String = "response:", patience: Duration = .seconds(2)) {
        var configuration = Configuration.ephemeral
        configuration.timeouts.connect = patience
        configuration.timeouts.idle = patience  // a server that is silent for that long is left
        session = Session(configuration)
        (self.host, self.port, self.prefix) = (host, port, prefix)
    }

    func value(for key: String) async throws -> ResponseStoreValue? {
        try await send("GET", prefix + key).map { ResponseStoreValue($0) }
    }

    func store(_ value: ResponseStoreValue, for key: String, lifetime: Duration) async throws {
        let bytes = try await value.data
        _ = try await send(words: [
            Data("SET".utf8), Data((prefix + key).utf8), bytes, Data("EX".utf8),
            Data("\(max(1, lifetime.components.seconds))".utf8),
        ])
    }

    func removeValue(for key: String) async throws { _ = try await send("DEL", prefix + key) }

    /// Sends a command, and returns the bytes of its reply; `nil` for another reply.
    func send(_ words: String...) async throws -> Data? { try await send(words: words.map { Data($0.utf8) }) }

    private func send(words: [Data]) async throws -> Data? {
        guard waiters.count < 1_000 else { throw Failure(text: "too many commands wait for Redis") }
        let stream = stream ?? connect()
        unsent += Data("*\(words.count)\r\n".utf8)
        for word in words { unsent += Data("$\(word.count)\r\n".utf8) + word + Data("\r\n".utf8) }
        return try await withCheckedThrowingContinuation { waiter in
            waiters.append(waiter)
            guard !isSending else { return }
            isSending = true
            Task { await sendAll(stream) }
        }
    }

    private func connect() -> StreamTask {
        let stream = session.streamTask(host: host, port: port)
        self.stream = stream
        stream.resume()
        Task { await receiveAll(stream) }
        return stream
    }

    private func sendAll(_ stream: StreamTask) async {
        do {
            while self.stream === stream, !unsent.isEmpty {
                let bytes = unsent
                unsent = Data()
                try await stream.write(bytes)
            }
            if self.stream === stream { isSending = false }
        } catch {
            fail(stream, error)
        }
    }

    /// Gives each reply to the command that has waited longest, until the connection ends.
    private func receiveAll(_ stream: StreamTask) async {
        var replies = RedisReplies(stream: stream)
        do {
            while true {
                let reply = try await replies.next()
                guard self.stream === stream, !waiters.isEmpty else { throw Failure(text: "a reply to no command") }
                waiters.removeFirst().resume(with: reply)
            }
        } catch {
            fail(stream, error)
        }
    }

    /// Ends the connection: its commands have failed, and the next one makes another connection.
    private func fail(_ stream: StreamTask, _ error: any Error) {
        stream.cancel()
        guard self.stream === stream else { return }
        let failed = waiters
        (self.stream, waiters, unsent, isSending) = (nil, [], Data(), false)
        for waiter in failed { waiter.resume(throwing: error) }
    }
}

/// The replies on a connection to Redis (RESP 2).
struct RedisReplies {
    let stream: StreamTask
    private var input = Data()
    private static let longest = 8 << 20

    init(stream: StreamTask) { self.stream = stream }

    mutating func next() async throws -> Result<Data?, any Error> {
        let line = try await line()
        let text = String(decoding: line.dropFirst(), as: UTF8.self)
        switch line.first {
        case UInt8(ascii: "+"), UInt8(ascii: ":"): return .success(nil)
        case UInt8(ascii: "-"): return .failure(RedisResponseStore.Failure(text: text))
        case UInt8(ascii: "$"):
            guard let count = Int(text), count <= Self.longest else { break }
            guard count >= 0 else { return .success(nil) }
            try await fill { $0.count >= count + 2 }
            return .success(take(count + 2).prefix(count))
        default: break
        }
        throw RedisResponseStore.Failure(text: "not a reply of Redis")
    }

    private mutating func line() async throws -> Data {
        let end = Data("\r\n".utf8)
        try await fill { $0.count > 64 << 10 || $0.firstRange(of: end) != nil }
        guard let range = input.firstRange(of: end) else {
            throw RedisResponseStore.Failure(text: "not a reply of Redis")
        }
        return take(range.upperBound - input.startIndex).dropLast(2)
    }

    private mutating func take(_ count: Int) -> Data {
        defer { input = Data(input.dropFirst(count)) }
        return Data(input.prefix(count))
    }

    private mutating func fill(until isEnough: (Data) -> Bool) async throws {
        while !isEnough(input) {
            let (bytes, isEnd) = try await stream.read(atMost: 64 << 10)
            input += bytes
            if isEnd, !isEnough(input) { throw RedisResponseStore.Failure(text: "Redis closed the connection") }
        }
    }
}
