// SPDX-License-Identifier: Apache-2.0

// Decodes content codings piece by piece: from chunks of the connection to chunks of its own output buffer.

import URLLoadingWire

final class BodyDecoding {
    private var decoder: ContentDecoder
    private var input: Chunk?
    private var consumed = 0
    private var output: ChunkStorage?

    private static let outputSize = 64 * 1024

    private init(_ decoder: consuming ContentDecoder) { self.decoder = decoder }

    /// Returns `nil` if the body has no content coding, or an unsupported one. Not an initializer, because that would
    /// allocate the object before it returns `nil`.
    static func make(_ headers: Headers, _ limits: Configuration.Limits) throws(LoadError) -> BodyDecoding? {
        guard let coding = headers[.contentEncoding] else { return nil }
        do throws(WireViolation) {
            guard let decoder = try ContentDecoder(contentEncoding: coding, limits: ContentDecodingLimits(limits))
            else { return nil }
            return BodyDecoding(decoder)
        } catch {
            throw LoadError(error, .decoding)
        }
    }

    func feed(_ chunk: Chunk) {
        input = chunk
        consumed = 0
    }

    /// Returns the next decoded piece; `nil` if more input is required.
    func next() throws(LoadError) -> Chunk? {
        while let input {
            if !isKnownUniquelyReferenced(&output) { output = nil }
            let storage = output ?? ChunkStorage(capacity: Self.outputSize)
            output = storage
            let produced: Int
            do throws(WireViolation) {
                let rest = UnsafeRawBufferPointer(rebasing: input.storage.bytes(input.range)[consumed...])
                let step = try decoder.decode(rest, into: storage.room(from: 0))
                consumed += step.consumed
                produced = step.produced
            } catch {
                throw LoadError(error, .decoding)
            }
            if consumed == input.count, produced < storage.capacity { self.input = nil }
            if produced > 0 { return Chunk(storage: storage, range: 0..<produced) }
        }
        return nil
    }

    /// Checks that the coded content is complete at the end of the input.
    func finish() throws(LoadError) {
        do throws(WireViolation) { try decoder.finish() } catch { throw LoadError(error, .decoding) }
    }
}

extension ContentDecodingLimits {
    fileprivate init(_ limits: Configuration.Limits) {
        self.init()
        ratio = limits.decompressionRatio
        outputSize = limits.decompressedSize
    }
}
