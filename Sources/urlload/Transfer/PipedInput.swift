// SPDX-License-Identifier: Apache-2.0

// A pipe or a device as a request body: of unknown length, and readable only once. It is read on a thread of its own,
// because other loads continue meanwhile.

import FoundationEssentials
import Synchronization
import URLLoading
import URLLoadingIO

final class PipedInput: AsyncSequence, Sendable {
    private let file: InputFile
    private let name: String
    private let isBegun = Atomic<Bool>(false)

    private init(_ path: String) throws(OutputError) {
        file = try InputFile(path)
        name = path == "-" ? "standard input" : path
    }

    static func body(_ path: String) throws(OutputError) -> RequestBody {
        let input = try PipedInput(path)
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
        let file = file
        let piece = await withTaskCancellationHandler {
            await BlockingThreads.files.call(token) { Result { () throws(OutputError) in try file.next() } }
        } onCancel: {
            token.stop(.cancelled)
        }
        guard let piece else { throw CancellationError() }
        return try piece.get().map { Data($0) }
    }
}
