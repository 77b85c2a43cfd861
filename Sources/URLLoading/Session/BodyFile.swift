// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import URLLoadingWire

/// The file of a body whose first pieces were read before it became a download: a data task of the classic API that
/// becomes a download task. Accepts one call at a time.
package final class BodyFile: Sendable {
    private let work: DownloadWork
    private let response: Response
    private let request: Request

    package init(_ response: Response, to request: Request, _ session: Session) {
        (self.response, self.request) = (response, request)
        work = DownloadWork(DownloadOptions(), nil, session.core.configuration)
    }

    /// Creates the file.
    package func open() async throws(LoadError) {
        _ = try await work.begin(response, request)
        if response.http?.headers.contains(.contentEncoding) == true { work.forgetRecord() }
    }

    /// Appends a piece to the file.
    package func append(_ data: Data) async throws(LoadError) { try await work.append(data) }

    /// Completes the file at the end of the body.
    package func finish() async throws(LoadError) { try await work.finish() }

    /// The complete file.
    package var result: DownloadedFile? { work.result }

    /// The token that resumes the download; `nil` if it cannot be resumed.
    package var resumeToken: ResumeToken? {
        work.leave()
        return work.resumeToken(isEarly: false)
    }
}
