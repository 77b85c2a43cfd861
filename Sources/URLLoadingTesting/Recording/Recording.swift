// SPDX-License-Identifier: Apache-2.0

// In this folder: loads recorded and replayed

// A recording as a value. `Recording+Text` writes it, `RecordingReader` reads it.

public import FoundationEssentials
public import URLLoading
public import URLLoadingWire

/// The requests of a session and their responses: made by a ``RecordingHandler``, played back by a ``ReplayHandler``,
/// and stored in a text file that can be read, compared and edited.
///
/// ```
/// urlloading recording 1
///
/// request POST https://example.org/greet at 0
/// > Content-Type: text/plain
/// body
/// + world
/// answer 200 HTTP/1.1 at 12.5
/// < Content-Type: text/plain
/// length 13
/// piece at 12.5
/// | hello,
/// + world!
/// end at 14
/// ```
/// ```swift
/// try recorder.recording.write(to: file)
/// let recording = try Recording(contentsOf: file)
/// ```
/// The grammar is in `docs/guides/testing.md`.
public struct Recording: Sendable, Hashable {
    /// The exchanges in the order in which they began. Each request of a redirect chain is a separate exchange, and so
    /// is a request repeated with another bearer token.
    public var exchanges: [Exchange]

    /// Creates a recording of these exchanges.
    public init(_ exchanges: [Exchange] = []) { self.exchanges = exchanges }

    /// Reads a file.
    /// - Throws: ``RecordingError`` with the line number if it is damaged; a `CocoaError` if it cannot be read.
    public init(contentsOf file: URL) throws { try self.init(text: [UInt8](Data(contentsOf: file))) }

    /// Writes a file atomically: an existing file is replaced only if everything succeeds.
    /// - Throws: the error of the file system.
    public func write(to file: URL) throws { try Data(description.utf8).write(to: file, options: .atomic) }

    /// One request with its response.
    public struct Exchange: Sendable, Hashable {
        /// The method of the request.
        public var method: Method
        /// The URL, without userinfo unless secrets are kept.
        public var url: URL
        /// The fields of the request as the caller set them.
        public var headers: Headers
        /// The body of the request; `nil` if there was none.
        public var body: RequestBytes?
        /// The start time, relative to the beginning of the first exchange.
        public var began: Duration
        /// The response; `nil` if none arrived.
        public var answer: Response?
        /// How the exchange ended.
        public var ending: Ending

        /// Creates an exchange.
        public init(
            _ method: Method, _ url: URL, headers: Headers = Headers(), body: RequestBytes? = nil,
            began: Duration = .zero, answer: Response? = nil, ending: Ending = .open
        ) {
            self.method = method
            self.url = url
            self.headers = headers
            self.body = body
            self.began = began
            self.answer = answer
            self.ending = ending
        }
    }

    /// The body of a request, possibly truncated.
    public struct RequestBytes: Sendable, Hashable {
        /// The bytes that were kept.
        public var bytes: [UInt8]
        /// Length and checksum of a truncated body, to distinguish it from others.
        var whole: BodySum?

        /// Creates a complete body.
        public init(_ bytes: [UInt8]) { self.bytes = bytes }

        /// Creates a truncated body from its first bytes.
        init(_ bytes: [UInt8], of whole: BodySum) {
            self.bytes = bytes
            self.whole = whole.count > bytes.count ? whole : nil
        }

        /// Appends bytes in place, because a body may arrive in many small pieces.
        mutating func add(_ more: UnsafeRawBufferPointer, upTo limit: Int, of whole: BodySum) {
            bytes += more.prefix(max(0, limit - bytes.count))
            self.whole = whole.count > bytes.count ? whole : nil
        }

        /// The length of the whole body in bytes.
        public var count: Int64 { sum.count }
        /// Whether the body is truncated.
        public var isTruncated: Bool { whole != nil }

        var sum: BodySum {
            if let whole { return whole }
            var sum = BodySum()
            bytes.withUnsafeBytes { sum.add($0) }
            return sum
        }
    }

    /// The response of an exchange.
    public struct Response: Sendable, Hashable {
        /// Status and fields; `nil` for schemes without them.
        public var http: Head?
        /// The URL of the response, if it differs from the requested one.
        public var url: URL?
        /// The media type stated by a handler.
        public var mediaType: MediaType?
        /// The announced length in bytes; `nil` if none was.
        public var expectedLength: Int64?
        /// The request to which a handler redirected.
        public var redirect: Redirect?
        /// The number of the session's bearer token that this response refused, counted from 0, if the session then
        /// requested the next token.
        public var refusedToken: Int?
        /// The time of the response, relative to the beginning of the first exchange.
        public var at: Duration
        /// The decoded body as it arrived, piece by piece, as far as it was read.
        public var pieces: [Piece]
        /// The total number of bytes, if not all were kept.
        public var fullLength: Int64?
        /// The trailers.
        public var trailers: Headers

        /// Creates a response; without pieces, it has no body.
        public init(_ http: Head?, at: Duration = .zero, expectedLength: Int64? = nil, pieces: [Piece] = []) {
            self.http = http
            self.at = at
            self.expectedLength = expectedLength
            self.pieces = pieces
            trailers = Headers()
        }
    }

    /// Status and fields of a response.
    public struct Head: Sendable, Hashable {
        /// The status.
        public var status: Status
        /// The version of HTTP.
        public var version: HTTPVersion
        /// The fields, without secrets unless they are kept.
        public var headers: Headers

        /// Creates a head.
        public init(_ status: Status, version: HTTPVersion = .http11, headers: Headers = Headers()) {
            self.status = status
            self.version = version
            self.headers = headers
        }
    }

    /// The request to which a handler redirected.
    public struct Redirect: Sendable, Hashable {
        /// The method of the request.
        public var method: Method
        /// The URL of the request.
        public var url: URL
    }

    /// A part of a body that arrived at one time.
    public struct Piece: Sendable, Hashable {
        /// The bytes, never empty.
        public var bytes: [UInt8]
        /// The time of arrival, relative to the beginning of the first exchange.
        public var at: Duration

        /// Creates a piece.
        public init(_ bytes: [UInt8], at: Duration = .zero) {
            self.bytes = bytes
            self.at = at
        }
    }

    /// How an exchange ended.
    public enum Ending: Sendable, Hashable {
        /// With the end of the response.
        case complete(at: Duration)
        /// With an error.
        case failed(Failure, at: Duration)
        /// Without a recorded end: the load was cancelled, a redirect was followed, or the recording ended first.
        case open
    }

    /// The recorded part of a ``/URLLoading/LoadError``.
    public struct Failure: Sendable, Hashable {
        /// The reason of the error.
        public let reason: LoadError.Reason
        /// The phase in which the load failed.
        public let phase: LoadError.Phase
        /// The party that caused the failure.
        public let party: LoadError.Party
        /// The description of the error; `nil` if it has none.
        public let detail: String?
    }
}

/// An error in a recording's text.
public struct RecordingError: Error, Sendable, CustomStringConvertible {
    /// The line number, from 1.
    public let line: Int
    /// A description of the error.
    public let problem: String

    /// For example `line 12: a piece where an answer should be`.
    public var description: String { "line \(line): \(problem)" }
}

/// Distinguishes bodies without keeping them, by length and 64 bits of FNV-1a.
struct BodySum: Sendable, Hashable {
    private(set) var count: Int64 = 0
    private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        count += Int64(bytes.count)
        for byte in bytes { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01b3 }
    }

    init() {}
    init(count: Int64, digest: UInt64) { (self.count, self.digest) = (count, digest) }
}
