// SPDX-License-Identifier: Apache-2.0

// In this folder: response bodies as lines, parts, events and JSON

// Splits a multipart body into parts, for one reader at a time. Requesting the next part skips the rest of the current
// one.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class PartReader: Sendable {
    private let source: any BodySource
    private let response: Response
    /// Nil while a caller reads.
    private let parser: Lock<PartParser?>

    init(_ source: any BodySource, _ response: Response, _ boundary: MultipartBoundary, isReplacing: Bool) {
        self.source = source
        self.response = response
        let limits = MultipartLimits(source.limits, isReplacing: isReplacing)
        parser = Lock(
            PartParser(isReplacing: isReplacing, reader: MultipartReader(boundary: boundary, limits: limits)))
    }

    /// Returns the lower-case type and subtype without parameters, because many senders write malformed parameters.
    static func essence(_ contentType: String) -> String {
        let type = contentType.prefix { $0 != ";" }
        return String(type.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }).lowercased()
    }

    // MARK: Readers of parts and of their content

    func nextPart() async throws(LoadError) -> ResponsePart? {
        var parser = try enter()
        defer { leave(parser) }
        while let event = try await parser.next(source, response.url) {
            guard case .part(let headers) = event else { continue }
            return ResponsePart(headers: headers, body: ResponseBody(PartSource(self, parser.current)), of: response)
        }
        return nil
    }

    /// Returns the next piece of a part; `nil` at its end.
    func nextChunk(of part: Int) async throws(LoadError) -> Chunk? {
        var parser = try enter()
        defer { leave(parser) }
        guard part == parser.current else { throw LoadError.bodyUnavailable.at(response.url) }
        guard parser.isInside, case .data(let chunk)? = try await parser.next(source, response.url) else { return nil }
        return chunk
    }

    private func enter() throws(LoadError) -> PartParser {
        guard let parser = parser.withLock({ $0.take() }) else { throw LoadError.bodyUnavailable.at(response.url) }
        return parser
    }

    private func leave(_ parser: PartParser) { self.parser.withLock { $0 = parser } }
}

private struct PartParser: Sendable {
    enum Event {
        case part(Headers)
        case data(Chunk)
        case partEnd
    }

    let isReplacing: Bool
    var reader: MultipartReader
    private var input = PartInput()
    /// The number of the current part, from 1.
    private(set) var current = 0
    /// True while the content of the current part has not ended.
    private(set) var isInside = false
    private var hasEnded = false
    private var failure: LoadError?

    init(isReplacing: Bool, reader: MultipartReader) { (self.isReplacing, self.reader) = (isReplacing, reader) }

    mutating func next(_ source: any BodySource, _ url: URL) async throws(LoadError) -> Event? {
        if let failure { throw failure }
        do throws(LoadError) {
            guard !hasEnded else { return nil }
            while true {
                if let event = try step() { return event }
                if hasEnded { return nil }
                guard let chunk = try await source.next() else { return try end() }
                input.add(chunk)
            }
        } catch {
            failure = error.at(url)
            throw error.at(url)
        }
    }

    /// Returns the next event of the bytes received so far; `nil` if more are required.
    private mutating func step() throws(LoadError) -> Event? {
        switch try input.next(&reader) {
        case .part(let headers)?:
            current += 1
            isInside = true
            return .part(headers)
        case .data(let range)?: return .data(input.chunk(range))
        case .partEnd?:
            isInside = false
            return .partEnd
        case .end?:
            // The epilogue is read, so that the load completes and its connection can be reused. A sender of
            // `multipart/x-mixed-replace` may keep the connection open after its last part, so there the end is not
            // awaited.
            hasEnded = isReplacing
            return isReplacing ? nil : try step()
        case nil: return nil
        }
    }

    private mutating func end() throws(LoadError) -> Event? {
        hasEnded = true
        if !isReplacing {
            do throws(WireViolation) { try reader.receiveEnd() } catch { throw LoadError(error, .receiving) }
        }
        defer { isInside = false }
        return isInside ? .partEnd : nil
    }
}

/// The content of one part.
private final class PartSource: BodySource {
    private let reader: PartReader
    private let part: Int
    private let isClaimed = Atomic<Bool>(false)
    private let hasEnded = Atomic<Bool>(false)

    init(_ reader: PartReader, _ part: Int) {
        self.reader = reader
        self.part = part
    }

    func claim() -> Bool { !isClaimed.exchange(true, ordering: .acquiringAndReleasing) }

    func next() async throws(LoadError) -> Chunk? {
        guard !hasEnded.load(ordering: .acquiring) else { return nil }
        let chunk = try await reader.nextChunk(of: part)
        if chunk == nil { hasEnded.store(true, ordering: .releasing) }
        return chunk
    }

    var trailers: Headers { Headers() }
    var limits: Configuration.Limits { reader.limits }
    var url: URL? { reader.url }
}

extension PartReader {
    fileprivate var limits: Configuration.Limits { source.limits }
    fileprivate var url: URL? { source.url }
}

extension MultipartLimits {
    fileprivate init(_ limits: Configuration.Limits, isReplacing: Bool) {
        self.init()
        headSize = limits.partHeadSize
        fieldCount = limits.partFieldCount
        partCount = isReplacing ? .max : limits.partCount
    }
}
