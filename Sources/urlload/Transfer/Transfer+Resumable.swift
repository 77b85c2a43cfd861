// `-T FILE --resumable STATEFILE`: an upload that outlives the connection, and the process.

import FoundationEssentials
import URLLoading

extension Transfer {
    func uploadResumably(_ request: Request, _ url: URL, _ watch: Watch, _ attempt: Attempt) async throws {
        guard let path = options.uploadState, let file = options.upload else { return }
        let state = UploadState(path: path)
        let (data, response): (Data, Response)
        do {
            (data, response) = try await session.uploadResumably(
                request, from: .file(URL(filePath: file)), resuming: try state.token(), decisions: decisions(watch)
            ) { [screen, options] event in
                if case .created(let token) = event { try state.save(token) }
                if options.trace != .off { screen.note(UploadWords.make(event)) }
            }
        } catch let error as LoadError {
            // With these there is no way on; the next run begins anew.
            if error.reason == .uploadNotFound || error.reason == .uploadTooLarge { state.remove() }
            throw error
        }
        state.remove()
        try await receive(response, Whole(data: data), url, watch, attempt)
    }
}

/// A body that is here already.
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
    /// What `-v` says of it.
    static func make(_ event: UploadEvent) -> String {
        switch event {
        case .created(let token): "\(token) can be resumed"
        case .sent(let offset): "upload: \(offset) bytes sent"
        case .acknowledged(let offset): "upload: the server has \(offset) bytes"
        case .interrupted(let error): "upload interrupted: \(error)"
        case .resumed(let offset): "upload goes on from byte \(offset)"
        }
    }
}

extension LoadError {
    /// What our own code threw, if that ended the load.
    var ownCause: (any Error)? { (underlying as? UploadInterruption)?.cause ?? underlying }
}
