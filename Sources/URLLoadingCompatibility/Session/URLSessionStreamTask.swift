public import Foundation
import URLLoading
import URLLoadingIO

/// A connection of bytes, both ways; TLS from any moment on.
///
/// ```swift
/// let task = session.streamTask(withHostName: "mail.example.org", port: 25)
/// task.resume()
/// let (greeting, _) = try await task.readData(ofMinLength: 1, maxLength: 512, timeout: 10)
/// try await task.write(Data("EHLO me.example.org\r\n".utf8), timeout: 10)
/// ```
/// Reads are carried out in their order, and so are writes; both wait until the stream is connected. Handlers are called on
/// the session's ``URLSession/delegateQueue``, each once. Nothing is read from the socket that nobody asked for.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {
    private let calls = CallChain()

    /// Reads bytes.
    /// - Parameters:
    ///   - minBytes: waits for so many, or the end; with 0 for nothing.
    ///   - maxBytes: takes no more; at least 1.
    ///   - timeout: seconds; 0 for as long as the time limits of the session allow. Counts from when the reads before it
    ///     are over.
    ///   - completionHandler: called once: the bytes, fewer than `minBytes` only at the end, and whether that was the end;
    ///     or a `URLError`. After `URLError.timedOut` the stream goes on.
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

    /// The same, awaited.
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
        if case .success((_, true)) = result { bridge?.hear(.readClosed) }
        return result
    }

    /// Writes bytes, behind those of earlier calls.
    /// - Parameters:
    ///   - timeout: seconds; 0 for as long as the time limits of the session allow. A write that is given up on its way is
    ///     the last one.
    ///   - completionHandler: called once, when the system has taken all of them; or with a `URLError`.
    open func write(_ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void)
    {
        perform(.output) { [self] in
            let error = await write(data, timeout).failure
            return { completionHandler(error) }
        }
    }

    /// The same, awaited.
    open func write(_ data: Data, timeout: TimeInterval) async throws {
        try await withCheckedThrowingContinuation { continuation in
            calls.append(.output) { [self] in continuation.resume(with: await write(data, timeout)) }
        }
    }

    private func write(_ data: Data, _ timeout: TimeInterval) async -> Result<Void, any Error> {
        await attempt { (stream) throws(LoadError) in try await stream.write(data, timeout: Duration(timeout: timeout))
        }
    }

    /// Tells the peer that nothing more comes, behind all that is being written. The delegate hears `writeClosedFor`.
    open func closeWrite() {
        calls.append(.output) { [self] in
            let result = await attempt { (stream) throws(LoadError) in try await stream.closeWrite() }
            if result.failure == nil { bridge?.hear(.writeClosed) }
        }
    }

    /// Reads no more, when the reads that were asked for are over. The delegate hears `readClosedFor`.
    open func closeRead() {
        calls.append(.input) { [self] in
            guard let stream = bridge?.stream else { return }
            stream.closeRead()
            bridge?.hear(.readClosed)
        }
    }

    /// Speaks TLS from here on, when all reads and writes that were asked for are over; later ones wait for it. The
    /// certificate must name the host. A handshake that fails ends the stream. Bytes that are there and nobody has read end
    /// it, too: whoever sits between could have put them there.
    open func startSecureConnection() {
        calls.append(.both) { [self] in
            // The delegate is asked about the server by whose stream it is.
            await TaskBridge.$current.withValue(bridge) {
                _ = await attempt { (stream) throws(LoadError) in try await stream.startSecureConnection() }
            }
        }
    }

    /// Ends the secure connection, when all reads and writes that were asked for are over, and with it the stream: TLS
    /// cannot be left and the connection kept (RFC 8446 §6.1 allows nothing after it that would be safe).
    @available(*, deprecated, message: "A secure connection cannot become a plain one; use closeWrite and closeRead")
    open func stopSecureConnection() {
        calls.append(.both) { [self] in
            guard let stream = bridge?.stream, stream.isSecure else { return }
            try? await stream.closeWrite()
            stream.closeRead()
            bridge?.hear(.writeClosed)
            bridge?.hear(.readClosed)
        }
    }

    /// Gives the connection to a pair of streams, when it is made, all reads and writes that were asked for are over, and the
    /// task is not suspended. The delegate hears `didBecome`, and nothing after it: the task is over.
    open func captureStreams() {
        calls.append(.both) { [self] in
            let result = await attempt { (stream) throws(LoadError) in try await stream.connected() }
            guard result.failure == nil, let stream = bridge?.stream else { return }
            bridge?.hear(.captured(CapturedStreams(stream)))
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

    /// - Parameter call: gives what is to be called on the delegate queue.
    private func perform(_ side: CallChain.Side, _ call: @escaping @Sendable () async -> @Sendable () -> Void) {
        calls.append(side) { [lane] in
            let call = await call()
            // A stand-in has no session, and no queue.
            if let lane { lane.append(.call(call)) } else { call() }
        }
    }
}
