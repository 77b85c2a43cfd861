// SPDX-License-Identifier: Apache-2.0

public import Foundation
import Synchronization
import URLLoading

/// A TCP connection for reading and writing bytes; TLS may be started at any time.
///
/// ```swift
/// let task = session.streamTask(withHostName: "mail.example.org", port: 25)
/// task.resume()
/// let (greeting, _) = try await task.readData(ofMinLength: 1, maxLength: 512, timeout: 10)
/// try await task.write(Data("EHLO me.example.org\r\n".utf8), timeout: 10)
/// ```
/// Reads are carried out in order, and so are writes; both wait until the stream is connected. Handlers are called on
/// the session's ``URLSession/delegateQueue``, each once. The socket is read only on request.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    private let calls = CallChain()
    private let hasClosedRead = Atomic<Bool>(false)
    private let hasClosedWrite = Atomic<Bool>(false)

    /// Reads bytes.
    /// - Parameters:
    ///   - minBytes: the read waits for this many bytes or the end of the stream; 0 does not wait.
    ///   - maxBytes: the maximum number of bytes returned; at least 1.
    ///   - timeout: seconds; with 0 only the session's timeouts apply. Counts from the end of the preceding reads.
    ///   - completionHandler: called once, with the bytes (fewer than `minBytes` only at the end) and whether the end
    ///     was reached, or with a `URLError`. After `URLError.timedOut` the stream remains usable.
    open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
        completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
    ) {
        perform(.input) { [self] in
            let result = await read(minBytes, maxBytes, timeout)
            return switch result {
            case .success(let (data, isEnd)): { completionHandler(data, isEnd, nil) }
            case .failure(let error): { completionHandler(nil, false, error) }
            }
        }
    }

    /// The async form of `readData`.
    open func readData(ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval) async throws -> (
        Data?, Bool
    ) {
        try await withCheckedThrowingContinuation { continuation in
            calls.append(.input) { [self] in
                continuation.resume(with: await read(minBytes, maxBytes, timeout).map { ($0.0, $0.1) })
            }
        }
    }

    private func read(_ least: Int, _ most: Int, _ timeout: TimeInterval) async -> Result<(Data, Bool), any Error> {
        let result = await attempt { (stream) throws(LoadError) in
            let (data, isEnd) = try await stream.read(
                atLeast: least, atMost: max(1, most), timeout: Duration(timeout: timeout))
            return (data, isEnd)
        }
        if case .success((_, true)) = result { noteClosedRead() }
        return result
    }

    /// Writes bytes, after those of earlier calls.
    /// - Parameters:
    ///   - timeout: seconds; with 0 only the session's timeouts apply. After a write that timed out midway, no further
    ///     write is possible.
    ///   - completionHandler: called once, when all bytes were passed to the system, or with a `URLError`.
    open func write(_ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void)
    {
        perform(.output) { [self] in
            let error = await write(data, timeout).failure
            return { completionHandler(error) }
        }
    }

    /// The async form of `write`.
    open func write(_ data: Data, timeout: TimeInterval) async throws {
        try await withCheckedThrowingContinuation { continuation in
            calls.append(.output) { [self] in continuation.resume(with: await write(data, timeout)) }
        }
    }

    private func write(_ data: Data, _ timeout: TimeInterval) async -> Result<Void, any Error> {
        await attempt { (stream) throws(LoadError) in try await stream.write(data, timeout: Duration(timeout: timeout))
        }
    }

    /// Closes the write side after all pending writes. The delegate is notified with `writeClosedFor`.
    open func closeWrite() {
        calls.append(.output) { [self] in
            let result = await attempt { (stream) throws(LoadError) in try await stream.closeWrite() }
            if result.failure == nil { noteClosedWrite() }
        }
    }

    /// Closes the read side after all pending reads. The delegate is notified with `readClosedFor`.
    open func closeRead() {
        calls.append(.input) { [self] in
            guard let stream = bridge?.stream else { return }
            stream.closeRead()
            noteClosedRead()
        }
    }

    private func noteClosedRead() {
        if !hasClosedRead.exchange(true, ordering: .relaxed) { bridge?.process(.readClosed) }
    }

    private func noteClosedWrite() {
        if !hasClosedWrite.exchange(true, ordering: .relaxed) { bridge?.process(.writeClosed) }
    }

    /// Starts TLS after all pending reads and writes; later ones wait for it. The certificate must be valid for the
    /// host name. A failed handshake ends the stream. Received bytes that were not read end it as well: an attacker on
    /// the network could have injected them.
    open func startSecureConnection() {
        calls.append(.both) { [self] in
            // The delegate decides about the server in the name of this stream's task.
            await TaskBridge.$current.withValue(bridge) {
                _ = await attempt { (stream) throws(LoadError) in try await stream.startSecureConnection() }
            }
        }
    }

    /// Ends TLS after all pending reads and writes, and with it the stream: TLS cannot be ended with the connection
    /// kept open (after its end, RFC 8446 §6.1 allows no data that would be safe).
    @available(*, deprecated, message: "A secure connection cannot become a plain one; use closeWrite and closeRead")
    open func stopSecureConnection() {
        calls.append(.both) { [self] in
            guard let stream = bridge?.stream, stream.isSecure else { return }
            try? await stream.closeWrite()
            stream.closeRead()
            noteClosedWrite()
            noteClosedRead()
        }
    }

    /// Hands the connection over to a pair of streams, once it is established, all pending reads and writes are done,
    /// and the task is not suspended. The delegate is notified with `didBecome`, its last call: the task is over.
    open func captureStreams() {
        calls.append(.both) { [self] in
            let result = await attempt { (stream) throws(LoadError) in try await stream.connected() }
            guard result.failure == nil, let stream = bridge?.stream else { return }
            bridge?.process(.captured(CapturedStreams(stream)))
        }
    }

    // MARK: Calls

    private func attempt<Value: Sendable>(
        _ call: (StreamTask) async throws(LoadError) -> Value
    ) async -> Result<Value, any Error> {
        guard let bridge, let stream = bridge.stream else {
            return .failure(error ?? URLError.described(.networkConnectionLost))
        }
        do throws(LoadError) { return .success(try await call(stream)) } catch { return .failure(URLError(error)) }
    }

    /// - Parameter call: returns the closure to call on the delegate queue.
    private func perform(_ side: CallChain.Side, _ call: @escaping @Sendable () async -> @Sendable () -> Void) {
        calls.append(side) { [lane] in
            let call = await call()
            // A task created in a test has no session and no queue.
            if let lane { lane.append(.call(call)) } else { call() }
        }
    }
}
