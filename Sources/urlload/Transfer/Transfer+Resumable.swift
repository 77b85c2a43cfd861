// SPDX-License-Identifier: Apache-2.0

// `-T FILE --resumable STATEFILE`: an upload that can be resumed after the end of the connection or of the process.

import FoundationEssentials
import URLLoading

extension Transfer {
    func uploadResumably(_ request: Request, _ url: URL, _ watch: Watch, _ attempt: Attempt) async throws {
        guard let path = options.request.uploadState, let file = options.request.upload else { return }
        let state = UploadState(path: path)
        let (data, response): (Data, Response)
        do {
            (data, response) = try await session.uploadResumably(
                request, from: .file(URL(filePath: file)), resuming: try state.token(),
                decisions: decisions(watch, request)
            ) { [screen, options] event in
                if case .created(let token) = event { try state.save(token) }
                if options.trace != .off { screen.note(UploadWords.make(event)) }
            }
        } catch let error as LoadError {
            // The server cannot resume the upload any more; the next run begins anew.
            if error.reason == .uploadNotFound || error.reason == .uploadTooLarge { state.remove() }
            throw error
        }
        state.remove()
        try await receive(response, Whole(data: data), url, watch, attempt)
    }
}

/// A body that is in memory already.
private struct Whole: AsyncSequence, Sendable {
    let data: Data

    struct AsyncIterator: AsyncIteratorProtocol {
        var data: Data?
        mutating func next() async -> Data? {
            defer { data = nil }
            return data
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(data: data) }
}

enum UploadWords {
    /// The line that `-v` prints for an event of the upload.
    static func make(_ event: UploadEvent) -> String {
        switch event {
        case .created(let token): "\(token) can be resumed"
        case .sent(let offset): "upload: \(offset) bytes sent"
        case .acknowledged(let offset): "upload: the server has \(offset) bytes"
        case .interrupted(let error): "upload interrupted: \(error)"
        case .resumed(let offset): "upload resumed at byte \(offset)"
        }
    }
}

extension LoadError {
    /// The error that this command's own code threw, if it ended the load.
    var ownCause: (any Error)? { (underlying as? UploadInterruption)?.cause ?? underlying }
}
