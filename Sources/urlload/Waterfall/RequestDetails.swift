// SPDX-License-Identifier: Apache-2.0

// The details of a request that a report shows below its row in the waterfall.

import URLLoading

struct RequestDetails: Sendable {
    /// Why the cache answered the request, or did not; `nil` for what is unknown.
    var cache: String?
    /// The certificates of the server, from its own to the root, or as far as they were found; `nil` without TLS.
    var trust: ServerTrust?
    var body: BodyPreview?
}

/// The beginning of a body.
struct BodyPreview: Sendable {
    /// Bytes that are kept of a body.
    static let most = 2048

    private(set) var bytes: [UInt8] = []
    /// All bytes that came.
    private(set) var total: Int64 = 0

    init() {}

    init(_ bytes: some Sequence<UInt8>, total: Int64) {
        self.bytes = Array(bytes.prefix(Self.most))
        self.total = total
    }

    mutating func add(_ piece: UnsafeRawBufferPointer) {
        total += Int64(piece.count)
        bytes += piece.prefix(Self.most - bytes.count)
    }

    var isCut: Bool { total > Int64(bytes.count) }

    /// The beginning as text without secrets; `nil` for a body that is no text.
    var text: String? {
        var rest = bytes[...]
        // A character that was cut is left out: UTF-8 has at most three bytes after the first of one.
        if isCut {
            for _ in 0..<3 where rest.last.map({ $0 & 0xC0 == 0x80 }) ?? false { rest = rest.dropLast() }
            if rest.last.map({ $0 >= 0xC0 }) ?? false { rest = rest.dropLast() }
        }
        guard !rest.contains(0), let text = String(validating: rest, as: UTF8.self) else { return nil }
        return SecretText.hidden(inBody: text)
    }
}
