// The body of a request that is an `InputStream`. Its reads may block, so they run on threads that may.

import Foundation
import URLLoading
import URLLoadingIO

/// The bytes of a stream, once.
struct StreamPieces: AsyncSequence, Sendable {
    nonisolated(unsafe) let stream: InputStream
    private static let most = 64 * 1024

    func makeAsyncIterator() -> Iterator { Iterator(reader: Reader(stream)) }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: Reader

        mutating func next() async throws -> Data? {
            let reader = reader
            let piece = await BlockingThreads.streams.call(.never) { reader.read() }
            return try piece?.get()
        }
    }

    // Unchecked: used by one task, one read after the other.
    fileprivate final class Reader: @unchecked Sendable {
        private let stream: InputStream
        private var isOpen = false

        init(_ stream: InputStream) { self.stream = stream }

        deinit { if isOpen { stream.close() } }

        func read() -> Result<Data?, any Error> {
            if !isOpen {
                isOpen = true
                if stream.streamStatus == .notOpen { stream.open() }
            }
            var bytes = [UInt8](repeating: 0, count: StreamPieces.most)
            let count = stream.read(&bytes, maxLength: bytes.count)
            if count < 0 { return .failure(stream.streamError ?? URLError.described(.requestBodyStreamExhausted)) }
            return .success(count == 0 ? nil : Data(bytes[..<count]))
        }
    }
}

extension RequestBody {
    /// - Parameter length: what the request's Content-Length says; `nil` sends it chunked.
    static func stream(_ stream: InputStream, length: Int64?) -> RequestBody {
        let pieces = StreamPieces(stream: stream)
        return .stream(length: length) { pieces }
    }
}

extension BlockingThreads {
    /// Apart from files: a stream may wait for its writer as long as that wants.
    fileprivate static let streams = BlockingThreads(limit: 256)
}
