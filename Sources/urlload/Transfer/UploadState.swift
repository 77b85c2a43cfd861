// SPDX-License-Identifier: Apache-2.0

// The file with the token of a resumable upload, readable by its owner alone. It is replaced in one step, so that it is
// complete whenever the process or the machine stops.

import Glibc
import URLLoading

struct UploadState: Sendable {
    let path: String

    /// Returns `nil` if the file is missing or empty.
    func token() throws -> UploadToken? {
        guard access(path, F_OK) == 0 else { return nil }
        let file = try InputFile(path)
        var bytes: [UInt8] = []
        while bytes.count <= 1 << 20, let piece = try file.next() { bytes += piece }
        let text = String(decoding: bytes, as: UTF8.self)
        return text.allSatisfy(\.isWhitespace) ? nil : try UploadToken(text)
    }

    func save(_ token: UploadToken) throws(OutputError) {
        let temporary = path + ".new"
        // Removes the file of a run that was killed; only this function writes it.
        unlink(temporary)
        let number = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw .system(errno, path) }
        let file = FileDescriptor(number: number, name: path)
        do throws(OutputError) { try file.write(token.text + "\n") } catch {
            close(number)
            unlink(temporary)
            throw error
        }
        let isSaved = fsync(number) == 0
        guard close(number) == 0, isSaved, rename(temporary, path) == 0 else {
            let error = OutputError.system(errno, path)
            unlink(temporary)
            throw error
        }
    }

    func remove() { unlink(path) }
}
