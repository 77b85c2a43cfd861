// SPDX-License-Identifier: Apache-2.0

// Records loads and passes them on. The records are in `Notes`, under one lock, because loads run concurrently.

import FoundationEssentials
public import URLLoading
import URLLoadingWire

/// Records all requests and responses of a session: method, URL, fields and body of each request; status, fields and
/// body of each response in the pieces in which it arrived; times and errors.
///
/// ```swift
/// let recorder = RecordingHandler()
/// var configuration = Configuration.ephemeral
/// configuration.handlers = [recorder]
/// try await withSession(configuration) { session in … }
/// try await recorder.finished().write(to: file)
/// ```
/// The handler accepts every request. Put it last among the handlers to record the responses that callers see, or first
/// to record those of the network. Each request of a redirect chain is one exchange, and so is a request repeated with
/// another bearer token; responses to other challenges are not recorded. Bodies are recorded decoded, as far as they
/// are read, and are never delayed: data beyond ``bodyLimit`` passes unrecorded, and the recording states that. Interim
/// responses and properties are not recorded.
public final class RecordingHandler: ProtocolHandler {
    /// The maximum number of bytes kept of one body, at least 0. All exchanges stay in memory until the recorder is
    /// released.
    public let bodyLimit: Int
    private let secrets: RecordedSecrets
    private let notes = Notes()

    /// Creates an empty recorder.
    public init(bodyLimit: Int = 1 << 20, secrets: RecordedSecrets = .removed()) {
        self.bodyLimit = max(0, bodyLimit)
        self.secrets = secrets
    }

    /// The recording so far. Exchanges in progress are recorded as `open`.
    public var recording: Recording { notes.recording }

    /// Waits until the recorder is not called by any load, also by one that has just ended, and returns the recording.
    ///
    /// Await or end your loads first. A load that has not come to the recorder yet is not waited for, and neither is a
    /// load whose body is not being read at this moment: its exchange is recorded as `open`.
    /// - Parameter limit: the longest time to wait.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func finished(
        timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line
    ) async throws -> Recording {
        try await WaitLimit(limit, "the end of what is recorded", file, line).poll {
            !notes.isBusy
        } seen: {
            let open = recording.exchanges.filter { $0.ending == .open }
            return "open exchanges: \(open.map { "\($0.method) \($0.url.shown)" }.shown())"
        }
        return recording
    }

    /// Returns true: every request passes this handler.
    public func canHandle(_ request: Request) -> Bool { true }

    /// Forwards the request and records it with its response.
    public func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
        let exchange = Recording.Exchange(
            request.method, secrets.stripped(request.url), headers: secrets.stripped(request.headers))
        let note = Note(notes, notes.begin(exchange, client.clock), client.clock, bodyLimit, secrets)
        notes.enter()
        defer { notes.leave() }
        var request = request
        request.body = request.body?.watched {
            note.beginBody()
        } piece: {
            note.send($0)
        }
        do throws(LoadError) {
            let asked = request.url
            let answer = try await client.next.load(request) { [self] renewal in
                switch renewal {
                case .refused(let response, let token): note.answer(recorded(response, asked, refusedToken: token))
                case .sentAgain: note.sendAgain()
                }
            }
            note.answer(recorded(answer.response, asked, redirect: answer.redirect))
            guard answer.response.expectedLength != 0 else {
                note.end(Headers())
                return answer
            }
            return answer.with(body: RecordedBody(body: answer.body, note: note)) { note.trailers }
        } catch {
            note.fail(error)
            throw error
        }
    }

    private func recorded(
        _ response: Response, _ asked: URL, redirect: Request? = nil, refusedToken: Int? = nil
    ) -> Recording.Response {
        var recorded = Recording.Response(
            response.http.map { .init($0.status, version: $0.version, headers: secrets.stripped($0.headers)) },
            expectedLength: response.expectedLength)
        if response.url != asked { recorded.url = secrets.stripped(response.url) }
        let fromField = response.http?.headers[.contentType].flatMap { MediaType($0) }
        if response.mediaType != fromField { recorded.mediaType = response.mediaType }
        recorded.refusedToken = refusedToken
        recorded.redirect = redirect.map { .init(method: $0.method, url: secrets.stripped($0.url)) }
        return recorded
    }
}

/// Passes a body on and records its pieces.
private struct RecordedBody: AsyncSequence {
    let body: ResponseBody
    let note: Note
    func makeAsyncIterator() -> Iterator { Iterator(body: body, pieces: body.makeAsyncIterator(), note: note) }

    struct Iterator: AsyncIteratorProtocol {
        let body: ResponseBody
        var pieces: ResponseBody.Iterator
        let note: Note

        mutating func next() async throws -> Chunk? {
            note.notes.enter()
            defer { note.notes.leave() }
            do throws(LoadError) {
                guard let piece = try await pieces.next() else {
                    note.end(body.trailers)
                    return nil
                }
                piece.withUnsafeBytes { note.receive($0) }
                return piece
            } catch {
                note.fail(error)
                throw error
            }
        }
    }
}
