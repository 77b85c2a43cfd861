import URLLoadingCBrotli

/// br (RFC 7932) by libbrotlidec.
///
/// It looks back at most 16 MiB, which is what RFC 7932 9.1 can say: the large windows of other formats
/// are off in the library unless asked for. Unchecked Sendable: it belongs to one `ContentDecoder`, which
/// is not copyable.
final class Brotli: ContentLayer, @unchecked Sendable {
    private let toleratesPadding: Bool
    /// Made for the first byte, so that content which never comes costs nothing; gone at the end.
    private var decoder: OpaquePointer?
    private(set) var isComplete = false

    init(toleratesPadding: Bool = true) {
        self.toleratesPadding = toleratesPadding
    }

    deinit {
        BrotliDecoderDestroyInstance(decoder)
    }

    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(WireViolation) -> (consumed: Int, produced: Int) {
        if isComplete { return (try skipPadding(input, tolerated: toleratesPadding), 0) }
        guard let decoder = try decoder(for: input) else { return (0, 0) }
        var inputLeft = input.count
        var outputLeft = output.count
        var next = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        var room = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let result = BrotliDecoderDecompressStream(decoder, &inputLeft, &next, &outputLeft, &room, nil)
        switch result {
        case BROTLI_DECODER_RESULT_SUCCESS: end()
        // Both are asked for by what is left over: input, or a full output.
        case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT, BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT: break
        default: throw .remote(.contentDecodingFailed, "RFC 7932")
        }
        return (input.count - inputLeft, output.count - outputLeft)
    }

    private func decoder(for input: UnsafeRawBufferPointer) throws(WireViolation) -> OpaquePointer? {
        if let decoder { return decoder }
        guard !input.isEmpty else { return nil }
        decoder = BrotliDecoderCreateInstance(nil, nil, nil)
        guard let decoder else { throw .remote(.contentDecodingFailed, "RFC 7932") }
        return decoder
    }

    /// Everything is out: the window need not wait for the padding.
    private func end() {
        isComplete = true
        BrotliDecoderDestroyInstance(decoder)
        decoder = nil
    }
}
