// What was recorded, as a value. How it is written down: `Recording+Text`; how it is read:
// `RecordingReader`.

public import FoundationEssentials
public import URLLoading
public import URLLoadingWire

/// What a session asked for and what it was answered: made by a ``RecordingHandler``, played by a
/// ``ReplayHandler``, kept in a text file that people can read, compare and edit.
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
    /// In the order in which they began. Each request of a chain of redirects is one of its own, and so is the one that
    /// is sent again with another bearer token.
    public var exchanges: [Exchange]

    /// A recording of these exchanges.
    public init(_ exchanges: [Exchange] = []) { self.exchanges = exchanges }

    /// Reads a file.
    /// - Throws: ``RecordingError`` if it is damaged, with the number of the line; a `CocoaError` if it
    ///   cannot be read.
    public init(contentsOf file: URL) throws { try self.init(text: [UInt8](Data(contentsOf: file))) }

    /// Writes a file, or none: what was there is replaced at the end, when everything went well.
    public func write(to file: URL) throws { try Data(description.utf8).write(to: file, options: .atomic) }

    /// One request and what came of it.
    public struct Exchange: Sendable, Hashable {
        public var method: Method
        /// Without userinfo, unless secrets are kept.
        public var url: URL
        /// The fields of the request as the caller set them.
        public var headers: Headers
        /// `nil` if it had none.
        public var body: RequestBytes?
        /// Since the first exchange began.
        public var began: Duration
        /// `nil` if none came.
        public var answer: Answer?
        /// How it ended.
        public var ending: Ending

        /// An exchange that has no answer yet.
        public init(
            _ method: Method, _ url: URL, headers: Headers = Headers(), body: RequestBytes? = nil,
            began: Duration = .zero, answer: Answer? = nil, ending: Ending = .open
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

    /// The body of a request, of which only the beginning may have been kept.
    public struct RequestBytes: Sendable, Hashable {
        /// The bytes that were kept.
        public var bytes: [UInt8]
        /// Tells apart bodies of which not all was kept.
        var whole: BodySum?

        /// A body kept as a whole.
        public init(_ bytes: [UInt8]) { self.bytes = bytes }

        /// A body of which the first bytes were kept.
        init(_ bytes: [UInt8], of whole: BodySum) {
            self.bytes = bytes
            self.whole = whole.count > bytes.count ? whole : nil
        }

        /// In place: a body may come in many small pieces.
        mutating func add(_ more: UnsafeRawBufferPointer, upTo limit: Int, of whole: BodySum) {
            bytes += more.prefix(max(0, limit - bytes.count))
            self.whole = whole.count > bytes.count ? whole : nil
        }

        /// How long all of it was, in bytes.
        public var count: Int64 { sum.count }
        /// Whether bytes are missing at the end.
        public var isCut: Bool { whole != nil }

        var sum: BodySum {
            if let whole { return whole }
            var sum = BodySum()
            bytes.withUnsafeBytes { sum.add($0) }
            return sum
        }
    }

    /// What was answered.
    public struct Answer: Sendable, Hashable {
        /// Status and fields; `nil` where the scheme has none.
        public var http: Head?
        /// Where it came from, if not from the URL asked for.
        public var url: URL?
        /// The media type a handler stated.
        public var mediaType: MediaType?
        /// The number of bytes that was announced; `nil` if none was.
        public var expectedLength: Int64?
        /// Where a handler wanted the load to go on.
        public var redirect: Redirect?
        /// The number of the session's bearer token that this answer refused, counted from 0, if the session then asked
        /// for the next one.
        public var refusedToken: Int?
        /// Since the first exchange began.
        public var at: Duration
        /// The body as it came: decoded, piece by piece, as far as somebody read it.
        public var pieces: [Piece]
        /// How many bytes came in all, if more than were kept.
        public var cutFrom: Int64?
        /// The fields after the body.
        public var trailers: Headers

        /// An answer; without pieces, it has no body.
        public init(_ http: Head?, at: Duration = .zero, expectedLength: Int64? = nil, pieces: [Piece] = []) {
            self.http = http
            self.at = at
            self.expectedLength = expectedLength
            self.pieces = pieces
            trailers = Headers()
        }
    }

    /// Status and fields of an answer.
    public struct Head: Sendable, Hashable {
        public var status: Status
        public var version: HTTPVersion
        public var headers: Headers

        public init(_ status: Status, version: HTTPVersion = .http11, headers: Headers = Headers()) {
            self.status = status
            self.version = version
            self.headers = headers
        }
    }

    /// The request a handler redirected to.
    public struct Redirect: Sendable, Hashable {
        public var method: Method
        public var url: URL
    }

    /// What came of a body at once.
    public struct Piece: Sendable, Hashable {
        /// Never empty.
        public var bytes: [UInt8]
        /// Since the first exchange began.
        public var at: Duration

        public init(_ bytes: [UInt8], at: Duration = .zero) {
            self.bytes = bytes
            self.at = at
        }
    }

    /// How an exchange ended.
    public enum Ending: Sendable, Hashable {
        /// With the end of the answer.
        case complete(at: Duration)
        /// With an error.
        case failed(Failure, at: Duration)
        /// Nobody saw its end: the caller left, a redirect was followed, or the recording ended before.
        case open
    }

    /// What is kept of a ``LoadError``.
    public struct Failure: Sendable, Hashable {
        public let reason: LoadError.Reason
        public let phase: LoadError.Phase
        public let party: LoadError.Party
        public let detail: String?
    }
}

/// What a recording that cannot be read has wrong, and where.
public struct RecordingError: Error, Sendable, CustomStringConvertible {
    /// The number of the line, from 1.
    public let line: Int
    /// What is wrong there.
    public let problem: String

    /// `line 12: a piece where an answer should be`
    public var description: String { "line \(line): \(problem)" }
}

/// Tells bodies apart without keeping them: their length, and 64 bits of FNV-1a.
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
