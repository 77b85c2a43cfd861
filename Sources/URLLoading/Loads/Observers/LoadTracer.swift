// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO
import URLLoadingWire

/// The position of a span in a distributed trace (W3C Trace Context, §3.2).
public struct TraceContext: Sendable, Hashable, CustomStringConvertible {
    /// The identifier of the whole trace; not 0.
    public let traceID: UInt128
    /// The identifier of this span; not 0.
    public let spanID: UInt64
    /// True if the trace is recorded, as decided at its beginning.
    public let isSampled: Bool

    /// The context of the current task: its loads become children of it. A server sets it from the `traceparent` of the
    /// request it handles.
    @TaskLocal public static var current: TraceContext?

    /// Creates a context from its parts; ``init(traceparent:)`` parses one.
    public init(traceID: UInt128, spanID: UInt64, isSampled: Bool) {
        self.traceID = traceID
        self.spanID = spanID
        self.isSampled = isSampled
    }

    /// Parses a `traceparent` field; `nil` if it is malformed (§3.2.2). Versions after 00 are parsed as 00 (§4).
    public init?(traceparent: String) {
        let parts = traceparent.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 4, traceparent.utf8.allSatisfy(Self.isLegal), parts[0].utf8.count == 2, parts[0] != "ff",
            parts[0] != "00" || parts.count == 4,
            parts[1].utf8.count == 32, let trace = UInt128(parts[1], radix: 16), trace != 0,
            parts[2].utf8.count == 16, let span = UInt64(parts[2], radix: 16), span != 0,
            parts[3].utf8.count == 2, let flags = UInt8(parts[3], radix: 16)
        else { return nil }
        self.init(traceID: trace, spanID: span, isSampled: flags & 1 == 1)
    }

    private static func isLegal(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "-"): true
        default: false
        }
    }

    /// The value of a `traceparent` field: `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`.
    public var traceparent: String { "00-\(traceID.hex(32))-\(spanID.hex(16))-\(isSampled ? "01" : "00")" }

    public var description: String { traceparent }
}

/// An observer that makes each load a span of a trace: it sends `traceparent` with every request, and reports the
/// duration and the result at the end.
///
/// ```swift
/// configuration.observers = [LoadTracer { span in exporter.add(span) }]
/// try await TraceContext.$current.withValue(context) { try await session.data(from: url) }
/// ```
/// A `traceparent` field in the caller's request is not changed.
public final class LoadTracer: LoadObserver {
    /// A load as a span of a trace.
    public struct Span: Sendable {
        /// The identifiers of the span.
        public let context: TraceContext
        /// The parent span; `nil` if the span began the trace.
        public let parent: TraceContext?
        /// The load, with its request.
        public let load: LoadIdentity
        /// The moment at which the load ended.
        public let ended: ContinuousClock.Instant
        /// The status of the final response; `nil` without one.
        public let status: Status?
        /// The error of the load; `nil` if it succeeded.
        public let error: LoadError?
    }
    private struct Open: Sendable {
        let context: TraceContext
        let parent: TraceContext?
        var status: Status?
    }
    private let open = Lock<[UInt64: Open]>([:])
    private let isSampled: @Sendable (LoadIdentity) -> Bool
    private let finish: @Sendable (Span) -> Void

    /// Creates a tracer that passes its spans to a closure.
    /// - Parameters:
    ///   - isSampled: decides whether a trace that begins with a load is recorded; all are by default. With a parent,
    ///     the parent's flag applies.
    ///   - finish: receives a span when its load has ended. Must not block.
    public init(
        isSampled: @escaping @Sendable (LoadIdentity) -> Bool = { _ in true },
        _ finish: @escaping @Sendable (Span) -> Void
    ) {
        self.isSampled = isSampled
        self.finish = finish
    }

    public func willSend(_ request: inout Request, of load: LoadIdentity) {
        guard !load.request.headers.contains("traceparent") else { return }
        request.headers["traceparent"] = span(of: load).context.traceparent
    }

    public func observe(_ event: LoadEvent, of load: LoadIdentity) {
        switch event {
        case .responded(let response): open.withLock { $0[load.id]?.status = response.http?.status }
        case .completed(let error):
            guard let span = open.withLock({ $0.removeValue(forKey: load.id) }) else { return }
            finish(
                Span(
                    context: span.context, parent: span.parent, load: load, ended: .now, status: span.status,
                    error: error))
        case .canonicalized, .bodySent, .informational, .challenged, .redirected, .retrying, .retryRefused,
            .waitingForConnectivity,
            .stored, .notStored, .becameDownload,
            .becameStream, .resumed, .received, .metrics:
            break
        }
    }

    /// Returns the span of a load, opened with its first request.
    private func span(of load: LoadIdentity) -> Open {
        if let span = open.withLock({ $0[load.id] }) { return span }
        let parent = TraceContext.current
        let context = TraceContext(
            traceID: parent?.traceID ?? .random(in: 1 ... .max), spanID: .random(in: 1 ... .max),
            isSampled: parent?.isSampled ?? isSampled(load))
        let span = Open(context: context, parent: parent)
        open.withLock { $0[load.id] = span }
        return span
    }
}

extension FixedWidthInteger {
    fileprivate func hex(_ digits: Int) -> String {
        let text = String(self, radix: 16)
        return String(repeating: "0", count: Swift.max(0, digits - text.count)) + text
    }
}
