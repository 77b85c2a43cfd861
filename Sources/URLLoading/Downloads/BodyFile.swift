package import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// The file for a body whose first pieces were read before anybody knew that it would be one: of the classic shape's data
/// task that becomes a download. One call at a time.
package final class BodyFile: Sendable {
    private let work: DownloadWork
    private let response: Response
    private let request: Request

    package init(_ response: Response, to request: Request, _ session: Session) {
        (self.response, self.request) = (response, request)
        work = DownloadWork(DownloadOptions(), nil, session.core.configuration)
    }

    /// Makes the file.
    package func open() async throws(LoadError) {
        _ = try await work.begin(response, request)
        if response.http?.headers.contains(.contentEncoding) == true { work.forgetRecord() }
    }

    /// Writes a piece behind those before it.
    package func append(_ data: Data) async throws(LoadError) { try await work.append(data) }

    /// The body is complete.
    package func finish() async throws(LoadError) { try await work.finish() }

    /// The complete file.
    package var result: DownloadedFile? { work.result }

    /// With what the rest can be loaded; `nil` if it cannot.
    package var resumeToken: ResumeToken? {
        work.leave()
        return work.resumeToken(isEarly: false)
    }
}
