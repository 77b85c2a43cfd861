// SPDX-License-Identifier: Apache-2.0

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
        private let isOpen = Atomic<Bool>(false)

        init(_ stream: InputStream) { self.stream = stream }

        deinit { if isOpen.load(ordering: .relaxed) { stream.close() } }

        func read() -> Result<Data?, any Error> {
            if !isOpen.exchange(true, ordering: .relaxed) {
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
    /// - Parameter length: the value of the request's Content-Length; `nil` sends the body chunked.
    static func stream(_ stream: InputStream, length: Int64?) -> RequestBody {
        let pieces = StreamPieces(stream: stream)
        return .stream(length: length) { pieces }
    }
}
