// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// An upload to S3 whose body is signed chunk by chunk while it is sent (`STREAMING-AWS4-HMAC-SHA256-PAYLOAD`), for a
/// body that cannot be read twice.
///
/// ```swift
/// let put = Request(url: url, method: .put)
/// let upload = signer.streaming(put, length: size, checksum: .crc32) { frames.map(\.bytes) }
/// let (_, response) = try await session.data(for: upload.request, decisions: upload.decisions)
/// ```
/// One load at a time uses it: the chunks continue the signature of the request that was signed last.
public struct AWSStreamingUpload: Sendable {
    /// The request with its body and the fields that describe it.
    public let request: Request
    /// The decision that signs it.
    public let decision: Decision<SigningRequest, RequestSignature>

    /// Decisions with this one alone.
    public var decisions: Decisions {
        var decisions = Decisions()
        decisions.sign = decision
        return decisions
    }
}

extension AWSSigner {
    /// Returns an upload that is signed while it is sent. With ``payload`` `.unsigned` its chunks are not signed
    /// (`STREAMING-UNSIGNED-PAYLOAD-TRAILER`), and a checksum follows them: use that with https only.
    /// - Parameters:
    ///   - request: the request; its body is replaced.
    ///   - length: the exact number of bytes of the sequence, at least 0, at most 2^62.
    ///   - chunkSize: the bytes that a signature covers, 8 KiB (S3's minimum) to 1 GiB; 64 KiB by default. One chunk is
    ///     in memory.
    ///   - checksum: computed while the body is sent, and sent behind it as a signed trailer field
    ///     (`x-amz-checksum-…`). With `nil`, the default, there is none, or ``Checksum/crc32`` if nothing is signed.
    ///   - make: creates the sequence, anew for each sending.
    public func streaming<S: AsyncSequence & Sendable>(
        _ request: Request, length: Int64, chunkSize: Int = 64 << 10, checksum: Checksum? = nil,
        _ make: @escaping @Sendable () -> S
    ) -> AWSStreamingUpload where S.Element: ContiguousBytes {
        // The encoded length is no more than twice this one.
        let length = min(max(0, length), 1 << 62)
        let form = AWSChunkForm(self, chunkSize: chunkSize, checksum)
        let last = Lock(AWSChunkChain?.none)
        var request = request
        let coding = request.headers[.contentEncoding].map { "aws-chunked,\($0)" } ?? "aws-chunked"
        request.headers[.contentEncoding] = coding
        request.headers[FieldName(names.field("Content-SHA256"))] = form.payload
        request.headers[FieldName(names.field("Decoded-Content-Length"))] = "\(length)"
        if let field = form.trailer { request.headers[FieldName(names.field("Trailer"))] = field.name }
        request.body = .stream(length: form.encodedLength(length)) {
            AWSChunks(base: make(), form: form) {
                // Once: what is sent without a new signature must not continue an old one.
                last.withLock { chain in
                    defer { chain = nil }
                    return chain
                }
            }
        }
        return AWSStreamingUpload(
            request: request,
            decision: Decision { request in
                let signed = try await self.signed(request)
                last.withLock { $0 = signed.chain }
                return signed.signature
            })
    }
}

/// How a body is divided into chunks, and what is written around them (`aws-chunked`).
struct AWSChunkForm: Sendable {
    let size: Int
    let isSigned: Bool
    /// The field behind the last chunk; nil without one.
    let trailer: AWSRunningChecksum.Field?
    let algorithm: String
    let prefix: String

    init(_ signer: AWSSigner, chunkSize: Int, _ checksum: AWSSigner.Checksum?) {
        size = min(max(8 << 10, chunkSize), 1 << 30)
        isSigned = signer.payload == .signed
        // A body that is not signed has a checksum at least.
        trailer = (checksum ?? (isSigned ? nil : .crc32)).map { AWSRunningChecksum.Field($0, signer.names) }
        (algorithm, prefix) = (signer.names.algorithm, signer.names.prefix)
    }

    /// The word in place of the hash of the body.
    var payload: String {
        "STREAMING-\(isSigned ? algorithm : "UNSIGNED")-PAYLOAD" + (trailer == nil ? "" : "-TRAILER")
    }

    /// The length of a body as sent, of which all chunks but the last have the same size.
    func encodedLength(_ length: Int64) -> Int64 {
        let signature = isSigned ? ";chunk-signature=".utf8.count + 64 : 0
        func head(_ size: Int64) -> Int64 { Int64(String(size, radix: 16).utf8.count + signature + 2) }
        func whole(_ size: Int64) -> Int64 { head(size) + size + 2 }
        let (chunks, rest) = length.quotientAndRemainder(dividingBy: Int64(size))
        var end = head(0) + 2
        if let trailer {
            end += Int64(trailer.length + (isSigned ? Self.signatureName(prefix).utf8.count + 1 + 64 + 2 : 0))
        }
        return chunks * whole(Int64(size)) + (rest > 0 ? whole(rest) : 0) + end
    }

    static func signatureName(_ prefix: String) -> String { "x-\(prefix)-trailer-signature" }
}

/// The signatures of chunks, each of which covers the one before it.
struct AWSChunkChain: Sendable {
    let algorithm: String
    let time: String
    let scope: String
    let key: [UInt8]
    /// The signature of the request, then that of the last chunk.
    private(set) var previous: String

    /// Returns the signature of a chunk; that of an empty one is the last.
    mutating func sign(_ chunk: [UInt8]) throws(LoadError) -> String {
        guard let none = DigestHash.sha256.hex([]) else { throw unavailable }
        return try sign("PAYLOAD", [none], chunk)
    }

    /// Returns the signature of the trailer field, after that of the last chunk.
    mutating func sign(trailer name: String, _ value: String) throws(LoadError) -> String {
        try sign("TRAILER", [], Array("\(name):\(value)\n".utf8))
    }

    private mutating func sign(_ kind: String, _ more: [String], _ bytes: [UInt8]) throws(LoadError) -> String {
        guard let hash = DigestHash.sha256.hex(bytes) else { throw unavailable }
        let text = (["\(algorithm)-\(kind)", time, scope, previous] + more + [hash]).joined(separator: "\n")
        guard let code = MessageKey.hmac(key, Array(text.utf8)) else { throw unavailable }
        previous = DigestHash.hexDigits(of: code)
        return previous
    }

    private var unavailable: LoadError { .cannotSign("HMAC-SHA256 is not available") }
}

/// The chunks of one body, as they are sent. Used by one task.
final class AWSChunkWriter {
    private let form: AWSChunkForm
    private var chain: AWSChunkChain?
    private let checksum: AWSRunningChecksum?

    /// - Parameter chain: the chain that the signature of the request has begun; nil if chunks are not signed.
    init(_ form: AWSChunkForm, _ chain: AWSChunkChain?) {
        (self.form, self.chain) = (form, chain)
        checksum = form.trailer.map { AWSRunningChecksum($0) }
    }

    /// Returns a chunk as sent; an empty one is the last, behind which the trailer stands.
    func encode(_ chunk: [UInt8]) throws(LoadError) -> [UInt8] {
        var head = String(chunk.count, radix: 16)
        if let signature = try chain?.sign(chunk) { head += ";chunk-signature=\(signature)" }
        checksum?.update(chunk)
        guard chunk.isEmpty, let checksum else { return Array("\(head)\r\n".utf8) + chunk + Array("\r\n".utf8) }
        guard let value = checksum.finish() else { throw .cannotSign("SHA-256 is not available") }
        var lines = [head, "\(checksum.field.name):\(value)"]
        if let signature = try chain?.sign(trailer: checksum.field.name, value) {
            lines.append("\(AWSChunkForm.signatureName(form.prefix)):\(signature)")
        }
        return Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
    }
}

/// A sequence in chunks.
private struct AWSChunks<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Base.Element: ContiguousBytes {
    let base: Base
    let form: AWSChunkForm
    /// Returns the chain that the signature of the request has begun.
    let chain: @Sendable () -> AWSChunkChain?

    func makeAsyncIterator() -> Iterator { Iterator(base: AnyChunkIterator(base), form: form, begin: chain) }

    struct Iterator: AsyncIteratorProtocol {
        let base: AnyChunkIterator
        let form: AWSChunkForm
        let begin: @Sendable () -> AWSChunkChain?
        private var writer: AWSChunkWriter?
        private var buffer: [UInt8] = []
        /// The bytes of the buffer that chunks have taken. Removed before the next piece is added, not with each chunk,
        /// because a piece may have many chunks.
        private var taken = 0
        private var hasEnded = false
        private var isDone = false

        init(base: AnyChunkIterator, form: AWSChunkForm, begin: @escaping @Sendable () -> AWSChunkChain?) {
            self.base = base
            self.form = form
            self.begin = begin
        }

        mutating func next() async throws -> [UInt8]? {
            guard !isDone else { return nil }
            while buffer.count - taken < form.size, !hasEnded {
                guard let piece = try await base.next() else {
                    hasEnded = true
                    break
                }
                buffer.removeFirst(taken)
                taken = 0
                piece.withBytes { buffer += $0 }
            }
            let chunk = Array(buffer[taken...].prefix(form.size))
            taken += chunk.count
            isDone = chunk.isEmpty
            return try begun().encode(chunk)
        }

        private mutating func begun() throws(LoadError) -> AWSChunkWriter {
            if let writer { return writer }
            let chain = form.isSigned ? begin() : nil
            guard chain != nil || !form.isSigned else {
                throw .cannotSign("the upload is sent without its decision")
            }
            let made = AWSChunkWriter(form, chain)
            writer = made
            return made
        }
    }
}
