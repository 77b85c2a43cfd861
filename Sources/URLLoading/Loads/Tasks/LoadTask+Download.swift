// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

extension LoadTask where Output == DownloadedFile {
    /// The file of a complete download; `nil` before.
    package var result: DownloadedFile? { load.download?.result }

    /// The trailer fields of the response, once the download is complete; none before.
    package var trailers: Headers { load.state.withLock { $0.trailers } }

    /// The complete file. Any number of tasks may await it, at any time. Waits forever if the task is never resumed.
    /// - Throws: ``LoadError`` of the load, with a ``LoadError/resumeToken`` if it can be resumed;
    ///   ``LoadError/Reason/cancelled`` also if the calling task is cancelled, which does not affect the load.
    public var value: DownloadedFile {
        get async throws(LoadError) {
            defer { withExtendedLifetime(self) {} }
            try await load.finished()
            guard let file = load.download?.result else { throw .bodyUnavailable }
            return file
        }
    }

    /// A token that resumes this download if it ends now: for programs that may be killed. Store one once the response
    /// is known; it resumes the download after the last byte written before the end of the process. After a power
    /// failure or a reboot it resumes after the bytes that were on disk when the token was requested, so store another
    /// every few seconds, as ``LoadEvent/received(_:)`` arrives. `nil` before the response, if the response cannot be
    /// resumed (no strong validator, RFC 9110 §8.8), and when the download is complete. Reads up to 64 KiB of the file.
    public var resumeToken: ResumeToken? { load.download?.resumeToken(isEarly: true) }

    /// The offset at which a token requested now would resume the download after a power failure.
    package var offsetOnDisk: Int64 { load.download?.offsetOnDisk ?? 0 }

    /// Cancels the load as ``cancel()`` does, and waits until it has ended.
    /// - Returns: the token that resumes the download; `nil` if it would have to start anew, or is complete. Cancelling
    ///   the calling task does not shorten the wait.
    public func cancelProducingResumeToken() async -> ResumeToken? {
        cancel()
        defer { withExtendedLifetime(self) {} }
        while true {
            do throws(LoadError) { try await load.finished() } catch {
                // The load runs on: only this wait was cancelled, so wait in another task.
                guard case .failed(let error)? = load.state.withLock({ $0.outcome }) else {
                    await Task { try? await load.finished() }.value
                    continue
                }
                return error.resumeToken
            }
            return nil
        }
    }
}
