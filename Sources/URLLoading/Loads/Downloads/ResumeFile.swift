// SPDX-License-Identifier: Apache-2.0

// The file in which a download keeps its resume token (`DownloadOptions.resumeFile`), so that the next process
// continues with the same call. Its content is checked as any other serialised token.

import FoundationEssentials
import URLLoadingIO

struct ResumeFile: Sendable {
    let path: String

    init?(_ options: DownloadOptions) {
        guard let url = options.resumeFile else { return nil }
        path = url.path(percentEncoded: false)
    }

    enum Found: Sendable {
        case nothing
        /// A token that does not fit: damaged, of another request, or its partial file is gone or was changed.
        case unusable
        case token(ResumeToken, FileWriter, held: ByteRanges)
    }

    /// Opens the partial file of an earlier download of the request. Blocks.
    /// - Throws: ``LoadError/Reason/invalidResumeToken`` if another download uses the partial file now. A failure of
    ///   the system that may pass, such as too many open files, says nothing of the token: it is thrown, and the token
    ///   and its partial file stay as they are.
    func open(for request: Request, in folders: [String]) throws(LoadError) -> Found {
        let content: [UInt8]?
        do throws(IOFailure) { content = try FileReader.content(of: path, limit: Self.sizeLimit) } catch {
            guard !error.isMissing else { return .nothing }
            throw LoadError(
                LoadError(file: error).reason, phase: .preparing, party: .system, detail: "\(path): \(error.words)")
        }
        guard let content, let token = try? ResumeToken(Data(content)) else { return .unusable }
        guard token.isFor(request.url), request.method == .get, request.body == nil else {
            try discard(token, in: folders)
            return .unusable
        }
        do throws(LoadError) {
            let (file, held) = try token.open(in: folders)
            return .token(token, file, held: held)
        } catch {
            guard error.reason == .invalidResumeToken, error.kind != .partialFileInUse else { throw error }
            return .unusable
        }
    }

    /// Removes the partial file of a token that is to be replaced: nothing else would name it. Not if another download
    /// uses it, or if its content is not what the token says.
    private func discard(_ token: ResumeToken, in folders: [String]) throws(LoadError) {
        let file: FileWriter
        do throws(LoadError) { file = try token.open(in: folders).0 } catch {
            guard error.reason == .invalidResumeToken else { throw error }
            return
        }
        file.unkeep()
        file.discard()
        file.unclaim()
    }

    /// A token has a URL, a few fields, and digests of its ranges.
    private static let sizeLimit: Int64 = 1 << 20

    /// Replaces the token atomically, on the disk before this returns. Blocks.
    func write(_ token: ResumeToken) throws(LoadError) {
        do throws(IOFailure) {
            let file = try FileWriter.createPartial(in: path.folder, prefix: ResumeToken.prefix)
            try file.write([UInt8](token.data), at: 0)
            try file.move(
                from: file.path, to: path, replacing: true, permissions: .exactly(0o600), synchronizes: true)
            file.unclaim()
        } catch {
            throw LoadError(
                .cannotWriteFile, phase: .receiving, party: .system, detail: "\(path): \(error.words)")
        }
    }

    /// Blocks.
    func remove() { PrivateFolder.remove(path) }
}
