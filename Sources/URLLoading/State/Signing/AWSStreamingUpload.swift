// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// An upload to S3 whose body is signed chunk by chunk while it is sent (`STREAMING-AWS4-HMAC-SHA256-PAYLOAD`), for a
/// body that cannot be read twice.
///
/// ```swift
/// let upload = signer.streaming(Request(url: url, method: .put), length: size) { frames.map(\.bytes) }
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
    /// Returns an upload that is signed while it is sent.
    /// - Parameters:
    ///   - request: the request; its body is replaced.
    ///   - length: the exact number of bytes of the sequence, at least 0, at most 2^62.
    ///   - chunkSize: the bytes that a signature covers, 8 KiB (S3's minimum) to 1 GiB; 64 KiB by default. One chunk is
    ///     in memory.
    ///   - make: creates the sequence, anew for each sending.
    public func streaming<S: AsyncSequence & Sendable>(
        _ request: Request, length: Int64, chunkSize: Int = 64 << 10, _ make: @escaping @Sendable () -> S
    ) -> AWSStreamingUpload where S.Element: ContiguousBytes {
        let chunkSize = min(max(8 << 10, chunkSize), 1 << 30)
        // The encoded length is no more than twice this one.
        let length = min(max(0, length), 1 << 62)
        let last = Lock(AWSChunkChain?.none)
        var request = request
        let coding = request.headers[.contentEncoding].map { "aws-chunked,\($0)" } ?? "aws-chunked"
        request.headers[.contentEncoding] = coding
        request.headers[FieldName(names.field("Content-SHA256"))] = AWSChunkChain.payload(names)
        request.headers[FieldName(names.field("Decoded-Content-Length"))] = "\(length)"
        request.body = .stream(length: AWSChunkChain.encodedLength(length, chunkSize: chunkSize)) {
            AWSSignedChunks(base: make(), size: chunkSize) {
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

/// The signatures of chunks, each of which covers the one before it.
struct AWSChunkChain: Sendable {
    let algorithm: String
    let time: String
    let scope: String
    let key: [UInt8]
    /// The signature of the request, then that of the last chunk.
    private(set) var previous: String

    init(algorithm: String, time: String, scope: String, key: [UInt8], seed: String) {
        self.algorithm = algorithm
        self.time = time
        self.scope = scope
        self.key = key
        previous = seed
    }

    static func payload(_ names: AWSSigner.Names) -> String { "STREAMING-\(names.algorithm)-PAYLOAD" }

    /// Returns a chunk as sent; an empty one is the last.
    mutating func encode(_ chunk: [UInt8]) throws(LoadError) -> [UInt8] {
        guard let none = DigestHash.sha256.hex([]), let hash = DigestHash.sha256.hex(chunk) else { throw unavailable }
        let text = ["\(algorithm)-PAYLOAD", time, scope, previous, none, hash].joined(separator: "\n")
        guard let code = MessageKey.hmac(key, Array(text.utf8)) else { throw unavailable }
        previous = DigestHash.hexDigits(of: code)
        return Array("\(String(chunk.count, radix: 16));chunk-signature=\(previous)\r\n".utf8) + chunk
            + Array("\r\n".utf8)
    }

    private var unavailable: LoadError { .cannotSign("HMAC-SHA256 is not available") }

    /// The length of a body as sent, of which all chunks but the last have the same size.
    static func encodedLength(_ length: Int64, chunkSize: Int) -> Int64 {
        func whole(_ size: Int64) -> Int64 { Int64(String(size, radix: 16).utf8.count) + 17 + 64 + 2 + size + 2 }
        let (chunks, rest) = length.quotientAndRemainder(dividingBy: Int64(chunkSize))
        return chunks * whole(Int64(chunkSize)) + (rest > 0 ? whole(rest) : 0) + whole(0)
    }
}

/// A sequence in chunks with signatures.
private struct AWSSignedChunks<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Base.Element: ContiguousBytes {
    let base: Base
    let size: Int
    /// Returns the chain that the signature of the request has begun.
    let chain: @Sendable () -> AWSChunkChain?

    func makeAsyncIterator() -> Iterator { Iterator(base: AnyChunkIterator(base), size: size, begin: chain) }

    struct Iterator: AsyncIteratorProtocol {
        let base: AnyChunkIterator
        let size: Int
        let begin: @Sendable () -> AWSChunkChain?
        private var chain: AWSChunkChain?
        private var buffer: [UInt8] = []
        /// The bytes of the buffer that chunks have taken. Removed before the next piece is added, not with each chunk,
        /// because a piece may have many chunks.
        private var taken = 0
        private var hasEnded = false
        private var isDone = false

        init(base: AnyChunkIterator, size: Int, begin: @escaping @Sendable () -> AWSChunkChain?) {
            self.base = base
            self.size = size
            self.begin = begin
        }

        mutating func next() async throws -> [UInt8]? {
            guard !isDone else { return nil }
            while buffer.count - taken < size, !hasEnded {
                guard let piece = try await base.next() else {
                    hasEnded = true
                    break
                }
                buffer.removeFirst(taken)
                taken = 0
                piece.withBytes { buffer += $0 }
            }
            guard var current = chain ?? begin() else {
                throw LoadError.cannotSign("the upload is sent without its decision")
            }
            let chunk = Array(buffer[taken...].prefix(size))
            taken += chunk.count
            isDone = chunk.isEmpty
            defer { chain = current }
            return try current.encode(chunk)
        }
    }
}
