// SPDX-License-Identifier: Apache-2.0

// A pipe or a device as a request body: of unknown length, and readable only once. It is opened and read on a thread of
// its own, because other loads continue meanwhile: opening a named pipe waits for its writer.

import FoundationEssentials
import Synchronization
import URLLoading
import URLLoadingIO

final class PipedInput: AsyncSequence, Sendable {
    private let path: String
    private let file = Lock<InputFile?>(nil)
    private let isBegun = Atomic<Bool>(false)

    /// A silent pipe holds its thread for as long as it is silent, so these are not the few threads of files.
    private static let threads = BlockingThreads(limit: 256)

    private init(_ path: String) { self.path = path }

    private var name: String { path == "-" ? "standard input" : path }

    static func body(_ path: String) -> RequestBody {
        let input = PipedInput(path)
        var body = RequestBody.stream { input }
        body.contentType = "application/octet-stream"
        return body
    }

    func makeAsyncIterator() -> Iterator { Iterator(input: self) }

    struct Iterator: AsyncIteratorProtocol {
        let input: PipedInput
        private var hasBegun = false

        init(input: PipedInput) { self.input = input }

        /// - Throws: ``OutputError`` if it cannot be read, or was read before and a server has received a part of it.
        mutating func next() async throws -> Data? {
            if !hasBegun {
                guard !input.isBegun.exchange(true, ordering: .relaxed) else {
                    throw OutputError(
                        .read, "\(input.name): the body must be sent again, and this input can be read only once")
                }
                hasBegun = true
            }
            return try await input.read()
        }
    }

    private func read() async throws -> Data? {
        let token = StopToken()
        let piece = await withTaskCancellationHandler {
            await Self.threads.call(token) { Result { () throws(OutputError) in try self.blockingRead() } }
        } onCancel: {
            token.stop(.cancelled)
        }
        guard let piece else { throw CancellationError() }
        return try piece.get().map { Data($0) }
    }

    private func blockingRead() throws(OutputError) -> [UInt8]? {
        if let file = self.file.withLock({ $0 }) { return try file.next() }
        let opened = try InputFile(path)
        self.file.withLock { $0 = opened }
        return try opened.next()
    }
}
