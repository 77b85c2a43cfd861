// Content codings undone, piece by piece: what comes in is a chunk of the connection, what goes out a
// chunk of a buffer of its own.

import URLLoadingWire

final class BodyDecoding {
    private var decoder: ContentDecoder
    private var input: Chunk?
    private var consumed = 0
    private var output: ChunkStorage?

    private static let outputSize = 64 * 1024

    /// `nil` if there is nothing to undo, or nothing that can be undone.
    init?(_ headers: Headers, _ limits: Configuration.Limits) throws(LoadError) {
        guard let coding = headers[.contentEncoding] else { return nil }
        do throws(WireViolation) {
            guard let decoder = try ContentDecoder(contentEncoding: coding, limits: ContentDecodingLimits(limits))
            else { return nil }
            self.decoder = decoder
        } catch {
            throw LoadError(error, .decoding)
        }
    }

    /// True if the last input is used up.
    var wantsInput: Bool { input == nil }

    func feed(_ chunk: Chunk) {
        input = chunk
        consumed = 0
    }

    /// The next decoded piece; `nil` if more input is wanted.
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

    /// The input has ended: was that its end?
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
