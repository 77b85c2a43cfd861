// SPDX-License-Identifier: Apache-2.0

// The files and bodies of finished transfers, as a program receives them.

import FoundationEssentials
import Glibc
import URLLoadingIO

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
    /// - Returns: the result, or the error of the transfer or of its file.
    /// - Throws: the reason why the file cannot be taken over now, such as a full disk or too many open files: the
    ///   event must not be acknowledged, because the file would be removed.
    static func of(
        _ record: TransferRecord, _ cookies: CookieJar?
    ) async throws(LoadError) -> Result<BackgroundResult, LoadError> {
        let result = await BlockingThreads.files.call(.never) { () -> Result<BackgroundResult, Failure> in
            Result { () throws(Failure) in try read(record) }
        }
        switch result {
        case .success(let taken)?:
            if record.ignoresCookies != true { cookies?.receive(taken.response) }
            return .success(taken)
        case .failure(.lasting(let error))?: return .failure(error)
        case .failure(.passing(let error))?: throw error
        case nil: throw LoadError(.cancelled, phase: .receiving, party: .local)
        }
    }

    private enum Failure: Error {
        case passing(LoadError)
        case lasting(LoadError)

        init(_ failure: IOFailure) {
            let error = LoadError(file: failure, .receiving)
            // A file that the disk cannot read does not become readable.
            if case .system(EIO) = failure.code {
                self = .lasting(error)
            } else {
                self = failure.mayPass ? .passing(error) : .lasting(error)
            }
        }
    }

    private static func read(_ record: TransferRecord) throws(Failure) -> BackgroundResult {
        switch record.outcome {
        case .file(let path, let size, let response):
            guard let response = response.response else { throw .lasting(.undeliverable(path)) }
            do throws(IOFailure) {
                let file =
                    record.destination == nil ? try second(of: path) : try FileWriter.adopt(path)
                file.deliver()
                return .file(DownloadedFile(response, file, size))
            } catch { throw Failure(error) }
        case .answer(let path, let size, let response):
            guard let response = response.response else { throw .lasting(.undeliverable(path)) }
            guard size > 0 else { return .answer(Data(), response) }
            do throws(IOFailure) {
                return .answer(Data(try FileWriter.adopt(path).content(upTo: Int(size))), response)
            } catch { throw Failure(error) }
        case .failed(let error): throw .lasting(error.loadError)
        case nil: throw .lasting(.undeliverable(record.id))
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
