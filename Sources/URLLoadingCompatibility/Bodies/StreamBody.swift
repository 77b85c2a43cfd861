// SPDX-License-Identifier: Apache-2.0

// In this folder: bodies through Foundation's streams, and data that is made when it is read

// A request body read from an `InputStream`. Its reads may block, so they run on blocking threads.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// The bytes of a stream; can be iterated once.
struct StreamPieces: AsyncSequence, Sendable {
    nonisolated(unsafe) let stream: InputStream
    private static let most = 64 * 1024

    func makeAsyncIterator() -> Iterator { Iterator(reader: Reader(stream)) }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: Reader

        mutating func next() async throws -> Data? {
            let reader = reader
            let piece = await BlockingThreads.programs.call(.never) { reader.read() }
            return try piece?.get()
        }
    }

    fileprivate final class Reader: Sendable {
        // Unsafe: used by one task, which makes one read at a time.
        private nonisolated(unsafe) let stream: InputStream
        private let isClaimed = Atomic<Bool>(false)

        init(_ stream: InputStream) { self.stream = stream }

        deinit {
            guard isClaimed.load(ordering: .relaxed) else { return }
            nonisolated(unsafe) let stream = stream
            // A method of the program, which may block; the last reference to the reader is dropped on the event loop.
            BlockingThreads.programs.run {
                if stream.hasSource { stream.close() }
                // Last: another reader finds the stream in use or closed.
                StreamsInUse.remove(stream)
            }
        }

        func read() -> Result<Data?, any Error> {
            if !isClaimed.load(ordering: .relaxed) {
                guard StreamsInUse.insert(stream) else { return .failure(UnreadableStream.used) }
                isClaimed.store(true, ordering: .relaxed)
                if let error = stream.begin() { return .failure(error) }
            }
            var bytes = [UInt8](repeating: 0, count: StreamPieces.most)
            let count = stream.read(&bytes, maxLength: bytes.count)
            if count < 0 { return .failure(stream.failure) }
            // A subclass of the program may return any number.
            guard count <= bytes.count else { return .failure(UnreadableStream.overrun(count, bytes.count)) }
            return .success(count == 0 ? nil : Data(bytes[..<count]))
        }
    }
}

/// The streams that loads are reading. A stream delivers its bytes once, so a second load that reads the same stream
/// would send a part of them.
private enum StreamsInUse {
    // The streams are retained by their readers, so no identifier has two meanings.
    private static let streams = Lock<Set<ObjectIdentifier>>([])

    /// Returns false if the stream is in use.
    static func insert(_ stream: InputStream) -> Bool {
        streams.withLock { $0.insert(ObjectIdentifier(stream)).inserted }
    }

    static func remove(_ stream: InputStream) { streams.withLock { _ = $0.remove(ObjectIdentifier(stream)) } }
}

/// The failure of a stream without an error of its own.
enum UnreadableStream: Error, CustomStringConvertible {
    /// The stream was read before, or is being read by another load.
    case used
    /// The stream was created for a URL that names no file.
    case noFile
    /// `read` reported a failure, and the stream has no error.
    case failed
    /// `read` returned more bytes than the buffer has room for.
    case overrun(Int, Int)

    var description: String {
        switch self {
        case .used: "the body stream was read before; a stream can be sent once"
        case .noFile: "the body stream has no file: InputStream(url:) reads file URLs only"
        case .failed: "the body stream reported a failure without an error"
        case .overrun(let count, let room): "the body stream returned \(count) bytes for a buffer of \(room)"
        }
    }
}

extension InputStream {
    /// Opens the stream, or continues with one that the program opened.
    /// - Returns: the error of a stream that cannot be read.
    fileprivate func begin() -> (any Error)? {
        guard hasSource else { return UnreadableStream.noFile }
        switch streamStatus {
        case .notOpen: open()
        case .atEnd, .closed: return UnreadableStream.used
        case .error: return failure
        case .opening, .open, .reading, .writing: break
        @unknown default: break
        }
        return nil
    }

    /// The error of a stream whose `read` failed. `streamError` is requested in the status `error` only: Foundation's
    /// implementation on Linux ends the process when the stream has no error.
    fileprivate var failure: any Error {
        switch streamStatus {
        case .error: streamError ?? UnreadableStream.failed
        case .closed: UnreadableStream.used
        default: UnreadableStream.failed
        }
    }

    /// Whether Foundation's stream has something to read. `InputStream(url:)` succeeds for a URL that names no file,
    /// and on Linux every method of such a stream ends the process. The class has no property that reveals it.
    fileprivate var hasSource: Bool {
        var mirror: Mirror? = Mirror(reflecting: self)
        while let current = mirror, current.subjectType != InputStream.self { mirror = current.superclassMirror }
        guard let source = mirror?.children.first(where: { $0.label == "_streamStorage" }) else { return true }
        let value = Mirror(reflecting: source.value)
        return value.displayStyle != .optional || !value.children.isEmpty
    }

    /// Whether neither the program nor a load has opened the stream.
    var isUnread: Bool {
        get async {
            nonisolated(unsafe) let stream = self
            // The status of a subclass is code of the program, which may block.
            return await BlockingThreads.programs.call(.never) {
                !stream.hasSource || stream.streamStatus == .notOpen
            } ?? false
        }
    }
}

extension RequestBody {
    /// - Parameter length: the value of the request's Content-Length; `nil` sends the body chunked.
    static func stream(_ stream: InputStream, length: Int64?) -> RequestBody {
        let pieces = StreamPieces(stream: stream)
        return .stream(length: length) { pieces }
    }
}
