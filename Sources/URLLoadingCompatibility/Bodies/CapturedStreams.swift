// SPDX-License-Identifier: Apache-2.0

// Foundation's streams over a connection: reads and writes block the calling thread, as `InputStream` and
// `OutputStream` require. The asynchronous work runs on the poller's thread, so it needs no free thread of the pool.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// The pair of streams that a delegate receives for a stream task.
struct CapturedStreams: Sendable {
    // Unsafe: Foundation's streams are not `Sendable`. Both are created here and handed to the delegate only.
    nonisolated(unsafe) let input: InputStream
    nonisolated(unsafe) let output: OutputStream

    init(_ stream: StreamTask) {
        input = CapturedInput(stream)
        output = CapturedOutput(stream)
    }
}

/// Blocks the calling thread until an asynchronous call has returned.
private func blocking<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Value? {
    let result = Lock<Value?>(nil)
    let done = DispatchSemaphore(value: 0)
    Task.onLoop {
        let value = await body()
        result.withLock { $0 = value }
        done.signal()
    }
    done.wait()
    return result.withLock { $0 }
}

private final class CapturedInput: InputStream {
    private let source: StreamTask
    private let own = Lock<(status: Stream.Status, error: URLError?)>((.notOpen, nil))

    init(_ source: StreamTask) {
        self.source = source
        super.init(data: Data())
    }

    deinit { source.closeRead() }

    override var streamStatus: Stream.Status { own.withLock { $0.status } }
    override var streamError: (any Error)? { own.withLock { $0.error } }
    override var hasBytesAvailable: Bool { streamStatus == .open }

    override func open() { own.withLock { if $0.status == .notOpen { $0.status = .open } } }

    override func close() {
        own.withLock { $0.status = .closed }
        source.closeRead()
    }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        switch streamStatus {
        case .open: break
        case .atEnd: return 0
        default: return -1
        }
        // The caller's buffer has no room for a byte.
        guard maxLength > 0 else { return 0 }
        let source = source
        let result = blocking { () -> Result<(Data, Bool), LoadError> in
            do throws(LoadError) {
                let (data, isEnd) = try await source.read(atLeast: 1, atMost: maxLength)
                return .success((data, isEnd))
            } catch { return .failure(error) }
        }
        switch result {
        case .success(let (data, isEnd))?:
            data.copyBytes(to: buffer, count: data.count)
            if isEnd { own.withLock { $0.status = .atEnd } }
            return data.count
        case .failure(let error)?: own.withLock { $0 = (.error, URLError(error)) }
        case nil: break
        }
        return -1
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool { false }
}

private final class CapturedOutput: OutputStream {
    private let sink: StreamTask?
    private let own = Lock<(status: Stream.Status, error: URLError?)>((.notOpen, nil))

    init(_ sink: StreamTask) {
        self.sink = sink
        super.init(toMemory: ())
    }

    /// Required by `OutputStream`; creates a stream without a connection.
    required init(toMemory: ()) {
        sink = nil
        super.init(toMemory: ())
    }

    deinit { finish() }

    override var streamStatus: Stream.Status { own.withLock { $0.status } }
    override var streamError: (any Error)? { own.withLock { $0.error } }
    override var hasSpaceAvailable: Bool { streamStatus == .open }

    override func open() { own.withLock { if $0.status == .notOpen { $0.status = .open } } }

    override func close() {
        own.withLock { $0.status = .closed }
        finish()
    }

    private func finish() {
        guard let sink else { return }
        Task.onLoop { try? await sink.closeWrite() }
    }

    override func write(_ buffer: UnsafePointer<UInt8>, maxLength: Int) -> Int {
        guard let sink, streamStatus == .open else { return -1 }
        guard maxLength > 0 else { return 0 }
        let data = Data(bytes: buffer, count: maxLength)
        let result = blocking { () -> LoadError? in
            do throws(LoadError) { try await sink.write(data) } catch { return error }
            return nil
        }
        if let error = result.flatMap({ $0 }) {
            own.withLock { $0 = (.error, URLError(error)) }
            return -1
        }
        return maxLength
    }
}
