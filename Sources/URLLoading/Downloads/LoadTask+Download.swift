import Synchronization
import URLLoadingIO

extension LoadTask where Output == DownloadedFile {
    /// The file, if the download is complete.
    package var result: DownloadedFile? { load.download?.result }

    /// The complete file. May be awaited by any number of tasks, at any time; waits for ever if nobody
    /// resumes the task.
    /// - Throws: ``LoadError`` of the load, with a ``LoadError/resumeToken`` if it can go on later;
    ///   ``LoadError/Reason/cancelled`` also if the calling task is cancelled, which leaves the load as it is.
    public var value: DownloadedFile {
        get async throws(LoadError) {
            defer { withExtendedLifetime(self) {} }
            try await load.finished()
            guard let file = load.download?.result else { throw .bodyUnavailable }
            return file
        }
    }

    /// With what this download could go on if it ended at this moment: for programs that may be killed. Ask
    /// when the response is there, and store it; whoever resumes with it goes on from what was written until
    /// the end. `nil` before the response, if the response cannot be resumed (no strong validator, RFC 9110
    /// §8.8), and when the download is complete. Reads up to 64 KiB of the file.
    public var resumeToken: ResumeToken? { load.download?.resumeToken(isEarly: true) }

    /// Ends the load as ``cancel()`` does.
    /// - Returns: with what it can go on; `nil` if it would have to begin anew, or is complete. Returns when
    ///   the load is over, cancelled or not.
    public func cancelProducingResumeToken() async -> ResumeToken? {
        cancel()
        defer { withExtendedLifetime(self) {} }
        while true {
            do throws(LoadError) { try await load.finished() } catch {
                // Not our own cancellation, which ends only the wait.
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
