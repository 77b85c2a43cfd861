// SPDX-License-Identifier: Apache-2.0

// In this folder: a server for resumable uploads

import Synchronization
import URLLoading
import URLLoadingIO
public import URLLoadingWire

/// A server of resumable uploads on an ``HTTPTestServer``: draft-ietf-httpbis-resumable-upload-12, interop version 9.
/// It keeps uploads in memory, fails where a test tells it to, and records what was sent.
///
/// ```swift
/// let server = ResumableUploadServer()
/// try await withHTTPTestServer { origin in
///     server.serve("/files", on: origin)
///     server.inject(.init(.received(70_000), .reset))
///     _ = try await session.uploadResumably(Request(url: origin.url("/files"), method: .post), from: .data(film))
///     assert(server.uploads.first?.content == Array(film))
///     assert(server.transfers.map(\.count).reduce(0, +) == film.count)   // no byte came twice
/// }
/// ```
/// A new request for an upload ends the one in progress (§4.6). Requests without `Upload-Complete` are plain uploads.
public final class ResumableUploadServer: Sendable {
    /// The limits and behaviour of the server.
    public struct Configuration: Sendable {
        /// Announced as `max-size`, and enforced; `nil` for no limit.
        public var maximumSize: Int64?
        /// Announced as `max-append-size`, and enforced: larger requests are answered with 413.
        public var maximumAppendSize: Int64?
        /// Announced as `min-append-size`, and enforced except for the last part.
        public var minimumAppendSize: Int64?
        /// Seconds, announced as `max-age`; not enforced.
        public var maximumAge: Int64?
        /// Whether 104 is sent when an upload is created.
        public var announces = true
        /// The interop version that the server announces and requires.
        public var interopVersion = ResumableUploads.interopVersion
        /// The number of bytes between two 104 responses that report the offset; `nil` for none.
        public var progressStep: Int64?
        /// Whether an empty append to a complete upload receives the final response again; otherwise it receives 410.
        public var repeatsAnswer = false
        /// The URL of an upload as sent in Location; by default its path.
        public var location: @Sendable (_ path: String) -> String = { $0 }

        /// Creates a configuration of a server without faults.
        public init() {}
    }

    /// An upload of the server.
    public struct Upload: Sendable {
        /// The path of the upload resource.
        public let path: String
        /// The request that created it, without its body.
        public let request: HTTPTestServer.RecordedRequest
        /// The content received so far.
        public internal(set) var content: [UInt8] = []
        /// The length of the whole upload, if the client has stated it.
        public internal(set) var length: Int64?
        /// Whether all of it was received and processed.
        public internal(set) var isComplete = false
        /// SHA-256 of ``content``, 64 hexadecimal digits.
        public var digest: String { Digest.hex(content) }

        var final: HTTPTestServer.Response?
        var owner: (number: Int, connection: OriginConnection)?
    }

    /// A request with content, complete or not.
    public struct Transfer: Sendable, Hashable {
        /// POST, PUT or PATCH.
        public let method: Method
        /// The path of the upload resource; for a plain upload that of the target resource.
        public let path: String
        /// The offset of its content in the whole upload.
        public let offset: Int64
        /// The number of bytes that were stored.
        public internal(set) var count: Int64
        /// The value of `Upload-Complete`.
        public let completes: Bool
    }

    /// Returns the response when an upload is complete.
    public typealias Handler = @Sendable (Upload) async throws -> HTTPTestServer.Response

    struct State: Sendable {
        var uploads: [String: Upload] = [:]
        var order: [String] = []
        var transfers: [Transfer] = []
        var requests: [String] = []
        var faults: [Fault] = []
        var owners = 0
    }

    /// The settings of the server.
    public let configuration: Configuration
    let state = Lock(State())

    /// Creates a server; its routes are added to a test server.
    public init(_ configuration: Configuration = Configuration()) { self.configuration = configuration }

    /// Accepts uploads to a path of an origin.
    /// - Parameters:
    ///   - path: the resource that uploads are sent to.
    ///   - folder: the path of upload resources, with a trailing `/`.
    ///   - handler: returns the final response of a complete upload; 200 by default.
    public func serve(
        _ path: String, on origin: HTTPTestServer, uploadsIn folder: String = "/uploads/",
        _ handler: @escaping Handler = { .ok("\($0.content.count) bytes") }
    ) {
        origin.route(path) { [self] request, connection in
            UploadReceiver(self, request, connection, folder: folder, handler)
        }
        origin.route(folder + "*") { [self] request, connection in
            UploadReceiver(self, request, connection, folder: nil, handler)
        }
    }

    // MARK: Records

    /// The uploads, in the order of their creation.
    public var uploads: [Upload] { state.withLock { state in state.order.compactMap { state.uploads[$0] } } }

    /// The requests with content, in order. Offsets and counts show which bytes were sent repeatedly.
    public var transfers: [Transfer] { state.withLock { $0.transfers } }

    /// All requests, such as `POST /files` and `HEAD /uploads/1`.
    public var requests: [String] { state.withLock { $0.requests } }

    // MARK: Control

    /// Adds a fault that occurs once; several faults at the same point occur one after another.
    public func inject(_ fault: Fault) { state.withLock { $0.faults.append(fault) } }

    /// Removes all uploads: requests for them receive 404.
    public func forget() {
        state.withLock { state in
            state.uploads = [:]
            state.order = []
        }
    }

    /// Changes the content of an upload without the client's knowledge.
    public func change(_ path: String, _ change: @Sendable (inout [UInt8]) -> Void) {
        state.withLock { state in
            guard var upload = state.uploads[path] else { return }
            change(&upload.content)
            state.uploads[path] = upload
        }
    }

    /// A fault that occurs once, at a named point of an upload.
    public struct Fault: Sendable, Hashable {
        /// The moments at which a fault may occur.
        public enum Point: Sendable, Hashable {
            /// The upload was created, and no response was sent.
            case created
            /// The 104 was sent.
            case announced
            /// Exactly this number of bytes of the whole upload is stored; at least 1.
            case received(Int64)
            /// The upload is complete and was processed; the final response was not sent.
            case completed
            /// The offset was requested.
            case asked
            /// A request with a part has arrived, and none of its content was stored.
            case appending
        }
        /// The moment at which the fault occurs.
        public let point: Point
        /// A fault as in ``HTTPTestServer``, or a response in place of the right one.
        public let effect: Effect

        /// The effects of a fault.
        public enum Effect: Sendable, Hashable {
            /// An effect on the connection.
            case connection(HTTPTestServer.Fault.Effect)
            /// This status with these fields: name, value, name, value.
            case status(Int, [String])
        }

        /// Creates a fault of the connection.
        public init(_ point: Point, _ effect: HTTPTestServer.Fault.Effect) {
            self.point = point
            self.effect = .connection(effect)
        }

        /// Creates a fault that sends a wrong response.
        public init(_ point: Point, status: Status, _ fields: KeyValuePairs<String, String> = [:]) {
            self.point = point
            effect = .status(status.code, fields.flatMap { [$0.key, $0.value] })
        }
    }
}
