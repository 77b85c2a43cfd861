import Synchronization
import URLLoading
import URLLoadingIO
public import URLLoadingWire

/// A server of resumable uploads on a ``TestOrigin``: draft-ietf-httpbis-resumable-upload-12, interop
/// version 9. It keeps what it gets in memory, fails where a test wants it to, and tells what was sent.
///
/// ```swift
/// let server = ResumableUploadServer()
/// try await withTestOrigin { origin in
///     server.serve("/files", on: origin)
///     server.inject(.init(.received(70_000), .reset))
///     _ = try await session.uploadResumably(Request(url: origin.url("/files"), method: .post), from: .data(film))
///     assert(server.uploads.first?.content == Array(film))
///     assert(server.transfers.map(\.count).reduce(0, +) == film.count)   // no byte came twice
/// }
/// ```
/// A request for an upload ends the one that is going on (§4.6). Requests without `Upload-Complete` are
/// plain uploads.
public final class ResumableUploadServer: Sendable {
    /// How it behaves.
    public struct Configuration: Sendable {
        /// Stated as `max-size`, and enforced; `nil` for no limit.
        public var maximumSize: Int64?
        /// Stated as `max-append-size`, and enforced: what exceeds it is answered with 413.
        public var maximumAppendSize: Int64?
        /// Stated as `min-append-size`, and enforced, but for the last part.
        public var minimumAppendSize: Int64?
        /// Seconds, stated as `max-age`; not enforced.
        public var maximumAge: Int64?
        /// Whether it sends 104 when an upload is created.
        public var announces = true
        /// The version it states and wants stated.
        public var interopVersion = ResumableUploads.interopVersion
        /// How many bytes pass between two 104 that tell the offset; `nil` for none.
        public var progressStep: Int64?
        /// Whether an empty append to a complete upload is answered with the final answer once more; if not,
        /// with 410.
        public var repeatsAnswer = false
        /// The URL of an upload as it is stated in Location; by default its path.
        public var location: @Sendable (_ path: String) -> String = { $0 }

        public init() {}
    }

    /// An upload it has.
    public struct Upload: Sendable {
        /// Where it lies.
        public let path: String
        /// The request that created it, without body.
        public let request: TestOrigin.RecordedRequest
        /// What has come so far.
        public internal(set) var content: [UInt8] = []
        /// The length of the whole, if the client has told.
        public internal(set) var length: Int64?
        /// Whether all of it was sent, and processed.
        public internal(set) var isComplete = false
        /// SHA-256 of ``content``, 64 hexadecimal digits.
        public var digest: String { Digest.hex(content) }

        var final: TestOrigin.Answer?
        var owner: (number: Int, connection: OriginConnection)?
    }

    /// A request that carried content, whether it came to its end or not.
    public struct Transfer: Sendable, Hashable {
        /// POST, PUT, PATCH.
        public let method: Method
        /// The path of the upload; that of the resource for a plain one.
        public let path: String
        /// Where in the whole its content begins.
        public let offset: Int64
        /// How many bytes of it were taken.
        public internal(set) var count: Int64
        /// `Upload-Complete`.
        public let completes: Bool
    }

    /// Answers when all of an upload is there.
    public typealias Handler = @Sendable (Upload) async throws -> TestOrigin.Answer

    struct State: Sendable {
        var uploads: [String: Upload] = [:]
        var order: [String] = []
        var transfers: [Transfer] = []
        var requests: [String] = []
        var faults: [Fault] = []
        var owners = 0
    }

    public let configuration: Configuration
    let state = Lock(State())

    public init(_ configuration: Configuration = Configuration()) { self.configuration = configuration }

    /// Takes uploads to a path of an origin.
    /// - Parameters:
    ///   - path: of the resource that uploads are sent to.
    ///   - folder: where upload resources are made, with `/` at its end.
    ///   - handler: answers when a whole is there, in the place of that resource; 200 by default.
    public func serve(
        _ path: String, on origin: TestOrigin, uploadsIn folder: String = "/uploads/",
        _ handler: @escaping Handler = { .ok("\($0.content.count) bytes") }
    ) {
        origin.route(path) { [self] request, connection in
            UploadReceiver(self, request, connection, folder: folder, handler)
        }
        origin.route(folder + "*") { [self] request, connection in
            UploadReceiver(self, request, connection, folder: nil, handler)
        }
    }

    // MARK: What a test sees

    /// The uploads it has, in the order they were created.
    public var uploads: [Upload] { state.withLock { state in state.order.compactMap { state.uploads[$0] } } }

    /// The requests with content, in order. Their offsets and counts say what was sent twice.
    public var transfers: [Transfer] { state.withLock { $0.transfers } }

    /// Every request: `POST /files`, `HEAD /uploads/1`.
    public var requests: [String] { state.withLock { $0.requests } }

    // MARK: What a test does

    /// Fails once at a point; several faults at one point come one after the other.
    public func inject(_ fault: Fault) { state.withLock { $0.faults.append(fault) } }

    /// Loses all uploads: whoever asks gets 404.
    public func forget() {
        state.withLock { state in
            state.uploads = [:]
            state.order = []
        }
    }

    /// Changes an upload behind the client's back.
    public func change(_ path: String, _ change: @Sendable (inout [UInt8]) -> Void) {
        state.withLock { state in
            guard var upload = state.uploads[path] else { return }
            change(&upload.content)
            state.uploads[path] = upload
        }
    }

    /// Something that goes wrong, once, at a named point of an upload.
    public struct Fault: Sendable, Hashable {
        public enum Point: Sendable, Hashable {
            /// The upload exists, and nothing was said of it.
            case created
            /// The 104 was sent.
            case announced
            /// Exactly so many bytes of the whole are stored; at least 1.
            case received(Int64)
            /// All is there and was processed; the answer was not sent.
            case completed
            /// The offset was asked for.
            case asked
            /// A request with a part has come, and none of its content was taken.
            case appending
        }
        public let point: Point
        /// What happens, as on a ``TestOrigin``, or an answer in place of the right one.
        public let effect: Effect

        public enum Effect: Sendable, Hashable {
            case connection(TestOrigin.Fault.Effect)
            /// This status, with these fields: name, value, name, value.
            case status(Int, [String])
        }

        /// Something that happens to the connection.
        public init(_ point: Point, _ effect: TestOrigin.Fault.Effect) {
            self.point = point
            self.effect = .connection(effect)
        }

        /// An answer.
        public init(_ point: Point, status: Status, _ fields: KeyValuePairs<String, String> = [:]) {
            self.point = point
            effect = .status(status.code, fields.flatMap { [$0.key, $0.value] })
        }
    }
}
