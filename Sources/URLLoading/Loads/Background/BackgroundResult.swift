// SPDX-License-Identifier: Apache-2.0

// The files and bodies of finished transfers, as a program receives them.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// The successful result of a transfer.
enum BackgroundResult: Sendable {
    case file(DownloadedFile)
    case answer(Data, Response)

    private var response: Response {
        switch self {
        case .file(let file): file.response
        case .answer(_, let response): response
        }
    }

    /// Takes over the file of a finished transfer, and the cookies of its response.
    /// - Throws: the error of the transfer, or of its file.
    static func of(_ record: TransferRecord, _ cookies: CookieJar?) async throws(LoadError) -> BackgroundResult {
        let result = await BlockingThreads.files.call(.never) { () -> Result<BackgroundResult, LoadError> in
            Result { () throws(LoadError) in try read(record) }
        }
        guard let result else { throw LoadError(.cancelled, phase: .receiving, party: .local) }
        let taken = try result.get()
        if record.ignoresCookies != true { cookies?.receive(taken.response) }
        return taken
    }

    private static func read(_ record: TransferRecord) throws(LoadError) -> BackgroundResult {
        switch record.outcome {
        case .file(let path, let size, let response):
            guard let response = response.response else { throw .undeliverable(path) }
            do throws(IOFailure) {
                let file =
                    record.destination == nil ? try second(of: path) : try FileWriter.adopt(path)
                file.deliver()
                return .file(DownloadedFile(response, file, size))
            } catch { throw LoadError(file: error, .receiving) }
        case .answer(let path, let size, let response):
            guard let response = response.response else { throw .undeliverable(path) }
            guard size > 0 else { return .answer(Data(), response) }
            do throws(IOFailure) {
                return .answer(Data(try FileWriter.adopt(path).content(upTo: Int(size))), response)
            } catch { throw LoadError(file: error, .receiving) }
        case .failed(let error): throw error.loadError
        case nil: throw .undeliverable(record.id)
        }
    }

    /// Gives a file of the agent's a second name, which belongs to this process: the program may move or drop it, and
    /// the agent still has the file if the program is killed before it acknowledged the event.
    private static func second(of path: String) throws(IOFailure) -> FileWriter {
        let folder = path.folder.folder + "/delivered"
        try PrivateFolder.make(folder)
        let file = try FileWriter.adopt(path, in: folder, prefix: ResumeToken.prefix)
        // The agent removes unclaimed files of programs that were killed.
        _ = file.claim()
        return file
    }
}

extension LoadError {
    fileprivate static func undeliverable(_ detail: String) -> LoadError {
        LoadError(.cannotReadFile, phase: .receiving, party: .system, detail: detail)
    }
}
