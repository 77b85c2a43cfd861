// SPDX-License-Identifier: Apache-2.0

// `-T` to ftp: a URL of a folder is completed with the name of the file; `-C` sends the bytes that the server lacks.

import FoundationEssentials
import Glibc
import URLLoading

enum FTPUpload {
    static func prepare(_ request: inout Request, _ options: Options, _ session: Session) async throws {
        guard let path = options.request.upload, path != "-", request.url.scheme?.lowercased().hasPrefix("ftp") == true
        else {
            return
        }
        let file = URL(filePath: path)
        if request.url.path(percentEncoded: true).hasSuffix("/") {
            request.url = request.url.appending(path: file.lastPathComponent)
        }
        guard options.output.continues, let there = try await size(request.url, session), there > 0 else { return }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
        let size = Int64(status.st_size)
        request.ftpStoreOffset = min(there, size)
        request.body = .file(file, range: min(there, size)..<size)
    }

    /// Returns the size of the file on the server; `nil` if it does not exist.
    private static func size(_ url: URL, _ session: Session) async throws -> Int64? {
        do throws(LoadError) {
            return try await session.data(for: Request(url: url, method: .head)).1.expectedLength
        } catch {
            guard error.reason == .fileNotFound || error.reason == .ftpCommandRefused else { throw error }
            return nil
        }
    }
}
