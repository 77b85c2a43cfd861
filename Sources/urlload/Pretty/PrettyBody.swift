// SPDX-License-Identifier: Apache-2.0

import URLLoading

/// A body for standard output that is collected and then written formatted. Used by one task only.
final class PrettyBody {
    private enum Kind { case json, xml, html, other }

    /// The maximum size, in bytes; a larger body is written unchanged as it arrives.
    private static let most = 8 << 20

    private let pretty: Pretty
    private let headColors: Bool
    private let kind: Kind
    private var held: [UInt8] = []
    private var passes: Bool

    /// - Parameter pretty: `nil` for the default: field names are highlighted on a terminal.
    /// - Returns: `nil` if the body is written unchanged.
    init?(_ pretty: Pretty?, _ response: Response, isTerminal: Bool) {
        headColors = pretty?.hasColors ?? (isTerminal && !Pretty.forbidsColors)
        self.pretty = pretty ?? Pretty(hasColors: false, isFormatted: false)
        kind = Self.kind(response.mediaType)
        passes = kind == .other || !self.pretty.hasColors && !self.pretty.isFormatted
        if passes, !headColors { return nil }
    }

    private static func kind(_ type: MediaType?) -> Kind {
        guard let type else { return .other }
        let subtype = type.subtype.lowercased()
        if subtype == "json" || subtype.hasSuffix("+json") { return .json }
        if subtype == "html" { return .html }
        return subtype == "xml" || subtype.hasSuffix("+xml") ? .xml : .other
    }

    func write(head: HTTPHead) throws(OutputError) {
        let text = HeadText.make(head)
        try FileDescriptor.standardOutput.write(headColors ? HeadText.painted(text) : text)
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(OutputError) {
        guard !passes else { return try FileDescriptor.standardOutput.write(bytes) }
        held += bytes
        guard held.count > Self.most else { return }
        passes = true
        try flush(held)
    }

    func commit() throws(OutputError) {
        guard !passes else { return }
        passes = true
        let text: String? =
            switch kind {
            case .json: JSONPrinter.make(held, pretty)
            case .xml: MarkupPrinter.make(held, pretty, indents: pretty.isFormatted)
            case .html: MarkupPrinter.make(held, pretty, indents: false)
            case .other: nil
            }
        try flush(text.map { Array($0.utf8) } ?? held)
    }

    private func flush(_ bytes: [UInt8]) throws(OutputError) {
        held = []
        var failure: OutputError?
        bytes.withUnsafeBytes { buffer in
            do throws(OutputError) { try FileDescriptor.standardOutput.write(buffer) } catch { failure = error }
        }
        if let failure { throw failure }
    }
}
