// SPDX-License-Identifier: Apache-2.0

// In this folder: content codings and their limits

import URLLoadingCBrotli

/// Decodes br (RFC 7932) with libbrotlidec.
///
/// The window is at most 16 MiB, the limit of RFC 7932 §9.1: the library supports the larger windows of other formats
/// only on request. Unchecked Sendable: belongs to one `ContentDecoder`, which is not copyable.
final class Brotli: ContentLayer {
    private let toleratesPadding: Bool
    /// Created with the first byte, so that a body that never arrives costs nothing; released at the end.
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
        // The leftover input, or the full output, tells the caller which of the two it is.
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

    /// Ends decoding and frees the window at once, without waiting for padding.
    private func end() {
        isComplete = true
        BrotliDecoderDestroyInstance(decoder)
        decoder = nil
    }
}
