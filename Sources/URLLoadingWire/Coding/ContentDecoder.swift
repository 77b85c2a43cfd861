// SPDX-License-Identifier: Apache-2.0

// Contains the order of the codings and the limits that apply to all of them. Each coding is a `ContentLayer`; a new
// one is a class and a case in `layer(named:)`.

/// Removes the content codings of a body, piece by piece (RFC 9110 §8.4).
///
/// ```swift
/// guard var decoder = try ContentDecoder(contentEncoding: "gzip") else { … as it is … }
/// let step = try decoder.decode(input, into: output)   // until nothing is consumed and produced
/// try decoder.finish()                                  // at the end of the body
/// ```
///
/// The decoder does not know where the body comes from. It holds 16 KiB for each layer but one, and the windows of the
/// layers: 32 KiB for gzip and deflate, up to 16 MiB for br, up to 8 MiB for zstd.
package struct ContentDecoder: ~Copyable {
    private let layers: [any ContentLayer]
    private var links: [LayerLink]
    private let limits: ContentDecodingLimits
    /// Bytes consumed so far.
    package private(set) var consumedTotal: Int64 = 0
    private var producedByLayer: [Int64]

    /// Creates a decoder for the value of Content-Encoding; `nil` if there is no coding to remove: none, `identity`, or
    /// one that is not supported. Throws `tooManyCodings`.
    package init?(
        contentEncoding: String, limits: ContentDecodingLimits = ContentDecodingLimits()
    ) throws(WireViolation) {
        let names = Self.names(in: contentEncoding)
        guard names.count <= limits.layers else { throw .remote(.tooManyCodings, "RFC 9110 8.4") }
        var layers: [any ContentLayer] = []
        // Codings are listed in the order in which they were applied, so the last one is removed first.
        for name in names.reversed() where name != "identity" {
            // Only the outermost coding may be followed by padding; the content of an inner one ends exactly.
            guard let layer = Self.layer(named: name, toleratesPadding: layers.isEmpty) else { return nil }
            layers.append(layer)
        }
        guard !layers.isEmpty else { return nil }
        self.layers = layers
        self.limits = limits
        producedByLayer = layers.map { _ in 0 }
        links = layers.dropFirst().map { _ in LayerLink() }
    }

    /// Returns whether a Content-Encoding field names codings and all of them are supported.
    package static func decodes(_ contentEncoding: String) -> Bool {
        let codings = names(in: contentEncoding).filter { $0 != "identity" }
        return !codings.isEmpty && codings.allSatisfy { known.contains($0) }
    }

    /// The names for which `layer` creates a decoder.
    private static let known: Set<String> = ["gzip", "x-gzip", "deflate", "br", "zstd"]

    private static func names(in value: String) -> [String] {
        let bytes = Array(value.utf8)
        var names: [String] = []
        bytes.withUnsafeBytes { bytes in
            forEachListElement(of: bytes) { names.append(bytes.text($0).lowercasedASCII) }
        }
        return names
    }

    private static func layer(named name: String, toleratesPadding: Bool) -> (any ContentLayer)? {
        switch name {
        // RFC 9110 §8.4.1.3: x-gzip equals gzip.
        case "gzip", "x-gzip": Inflate(.gzip, toleratesPadding: toleratesPadding)
        case "deflate": Inflate(.deflate, toleratesPadding: toleratesPadding)
        case "br": Brotli(toleratesPadding: toleratesPadding)
        case "zstd": Zstandard()
        default: nil
        }
    }

    /// Decodes from `input` into `output` until one of them is used up.
    ///
    /// Call it again with the rest of the input, and with empty input as long as it fills `output`. Throws
    /// `contentDecodingFailed` or `contentDecodingLimit`.
    package mutating func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(WireViolation) -> (consumed: Int, produced: Int) {
        var step = (consumed: 0, produced: 0)
        while step.produced < output.count {
            let part = try run(
                layers.count - 1, UnsafeRawBufferPointer(rebasing: input[step.consumed...]),
                UnsafeMutableRawBufferPointer(rebasing: output[step.produced...]))
            if part == (0, 0) { break }
            step = (step.consumed + part.consumed, step.produced + part.produced)
        }
        return step
    }

    /// Checks, once the whole body was decoded, that every coding has reached its end; otherwise throws
    /// `truncatedContent`. A body without a single byte is valid, empty content for any coding.
    package mutating func finish() throws(WireViolation) {
        guard consumedTotal > 0 else { return }
        guard layers.allSatisfy(\.isComplete), links.allSatisfy(\.isEmpty) else {
            throw .remote(.truncatedContent, "RFC 9110 8.4")
        }
    }

    /// Applies the limits to each layer's output: a layer that turns much input into little output would otherwise hide
    /// the expansion before it.
    private mutating func account(_ index: Int, _ produced: Int) throws(WireViolation) {
        producedByLayer[index] += Int64(produced)
        let total = producedByLayer[index]
        guard total <= limits.outputSize else { throw .remote(.contentDecodingLimit, "RFC 9110 8.4") }
        guard total > limits.ratioThreshold else { return }
        guard total / Int64(max(1, limits.ratio)) <= consumedTotal else {
            throw .remote(.contentDecodingLimit, "RFC 9110 8.4")
        }
    }

    /// Runs one layer. Layer 0 reads the input, every other layer the output of the one before it.
    private mutating func run(
        _ index: Int, _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(WireViolation) -> (consumed: Int, produced: Int) {
        guard index > 0 else {
            let step = try layers[0].decode(input, into: output)
            consumedTotal += Int64(step.consumed)
            try account(0, step.produced)
            return step
        }
        var consumed = 0
        while true {
            if links[index - 1].isEmpty {
                let rest = UnsafeRawBufferPointer(rebasing: input[consumed...])
                let filled = try run(index - 1, rest, links[index - 1].storage.buffer)
                consumed += filled.consumed
                links[index - 1].range = 0..<filled.produced
            }
            let link = links[index - 1]
            let pending = UnsafeRawBufferPointer(rebasing: link.storage.buffer[link.range])
            let step = try layers[index].decode(pending, into: output)
            links[index - 1].range = link.range.lowerBound + step.consumed..<link.range.upperBound
            try account(index, step.produced)
            // Progress inside the chain counts; otherwise the caller would take the body for finished.
            guard consumed == 0, step.produced == 0, step.consumed > 0 else { return (consumed, step.produced) }
        }
    }
}

/// One content coding. Belongs to one ``ContentDecoder``, which is not copyable, so it is never used concurrently.
protocol ContentLayer: AnyObject {
    /// Whether the coded stream has reached its end, or a point at which it may end.
    var isComplete: Bool { get }
    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(WireViolation) -> (consumed: Int, produced: Int)
}

extension ContentLayer {
    /// Skips bytes after the end of the coded content if that is tolerated; otherwise throws.
    func skipPadding(_ input: UnsafeRawBufferPointer, tolerated: Bool) throws(WireViolation) -> Int {
        guard input.isEmpty || tolerated else { throw .remote(.contentDecodingFailed, "RFC 9110 8.4") }
        return input.count
    }
}

/// The output of one layer that the next layer has not consumed yet.
private struct LayerLink {
    let storage = LayerStorage()
    var range = 0..<0
    var isEmpty: Bool { range.isEmpty }
}

/// A buffer of 16 KiB at a fixed address.
private final class LayerStorage {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 * 1024, alignment: 16)
    deinit { buffer.deallocate() }
}
