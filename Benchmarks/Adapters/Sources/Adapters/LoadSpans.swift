// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Tracing
import URLLoading

/// Makes a span of swift-distributed-tracing around each load, and sends its context with every request.
final class LoadSpans: LoadObserver {
    private let spans = Mutex<[UInt64: any Span]>([:])

    func willSend(_ request: inout Request, of load: LoadIdentity) {
        // Called in the load's task, where the caller's tracer and the span around the call are task-local values.
        let span = spans.withLock { $0[load.id] } ?? begin(load)
        InstrumentationSystem.instrument.inject(span.context, into: &request, using: FieldInjector())
    }

    private func begin(_ load: LoadIdentity) -> any Span {
        var attributes = HTTPConventions.attributes(of: load.request)
        let method = attributes["http.request.method"] ?? "_OTHER"
        attributes["url.full"] = load.request.redactedURL
        let span = InstrumentationSystem.tracer.startSpan(method == "_OTHER" ? "HTTP" : method, ofKind: .client)
        span.set(attributes)
        spans.withLock { $0[load.id] = span }
        return span
    }

    func observe(_ event: LoadEvent, of load: LoadIdentity) {
        guard let span = spans.withLock({ $0[load.id] }) else { return }
        switch event {
        case .redirected(let redirect):
            let status = "\(redirect.response.status.code)"
            span.add("redirect", ["url.full": redirect.request.redactedURL, "http.response.status_code": status])
        case .retrying(let retry): span.add("retry", ["http.request.resend_count": "\(retry.attempt - 1)"])
        case .challenged(let challenge): span.add("challenge", ["server.address": challenge.protectionSpace.host])
        case .metrics(let metrics):
            let sent = metrics.transactions.filter { $0.fetchType == .network }
            if let last = metrics.transactions.last { span.set(HTTPConventions.attributes(of: last)) }
            if sent.count > 1 { span.set(["http.request.resend_count": "\(sent.count - 1)"]) }
            span.set(["network.peer.address": sent.last?.remoteAddress])
        case .completed(let error):
            spans.withLock { $0[load.id] = nil }
            if let error {
                span.set(["error.type": error.reason.name])
                span.recordError(error)
            }
            if span.attributes["error.type"] != nil { span.setStatus(SpanStatus(code: .error)) }
            span.end()
        default: break
        }
    }
}

private struct FieldInjector: Injector {
    /// A field that the caller has set stays as it is.
    func inject(_ value: String, forKey key: String, into request: inout Request) {
        if !request.headers.contains(FieldName(key)) { request.headers[FieldName(key)] = value }
    }
}

extension Span {
    fileprivate func set(_ attributes: [String: String?]) {
        updateAttributes { for (name, value) in attributes { $0[name] = Self.attribute(name, value) } }
    }

    fileprivate func add(_ event: String, _ attributes: [String: String?]) {
        let values = attributes.compactMap { name, value in Self.attribute(name, value).map { (name, $0) } }
        addEvent(SpanEvent(name: event, attributes: SpanAttributes(Dictionary(uniqueKeysWithValues: values))))
    }

    private static func attribute(_ name: String, _ value: String?) -> SpanAttribute? {
        value.map { text in isNumber(name) ? Int64(text).map { .int64($0) } ?? .string(text) : .string(text) }
    }

    private static func isNumber(_ name: String) -> Bool {
        ["server.port", "http.response.status_code", "http.request.resend_count"].contains(name)
    }
}
