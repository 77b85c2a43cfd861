// SPDX-License-Identifier: Apache-2.0

// The facts of one transaction, noted while it runs. Used by the owner of its exchange, one task at a time; handed to
// the emitter at its end, and never changed after the load's end.

import URLLoadingIO
import URLLoadingWire

final class TransactionRecord: @unchecked Sendable {
    // Unchecked: written by the task of its exchange, and read after the exchange has ended.
    enum Stage: Int, CaseIterable {
        case fetchStart, lookupStart, lookupEnd, connectStart, secureStart, secureEnd, connectEnd
        case requestStart, requestEnd, responseStart, responseEnd, end
    }
    /// The moments in nanoseconds of the monotonic clock; 0 for stages that were not reached.
    private var moments = InlineArray<12, Int64>(repeating: 0)

    let request: Request
    let fetchType: LoadMetrics.Transaction.FetchType
    fileprivate let fields: RequestFields?
    fileprivate let framing: HTTP1BodyFraming
    var response: Response?
    var error: LoadError?
    private(set) var facts: ConnectionFacts?
    private(set) var isReused = false
    private(set) var usesProxy = false
    var traffic = HTTP1Traffic()
    /// The response ended with its connection, which lacks a close_notify, and that was conceded.
    var lacksCloseNotify = false
    /// The number of decoded body bytes.
    var decoded: Int64 = 0

    init(_ request: PreparedRequest) {
        self.request = request.request
        fetchType = .network
        fields = request.fields
        framing = request.framing
        mark(.fetchStart)
    }

    /// Creates the record of a transaction without a connection, of one of FTP, which has no header fields, or of a
    /// stream, whose protocol is unknown.
    init(
        _ request: Request, _ fetchType: LoadMetrics.Transaction.FetchType = .network, isFTP: Bool = false,
        isStream: Bool = false
    ) {
        (self.request, self.fetchType, self.isFTP, self.isStream) = (request, fetchType, isFTP, isStream)
        (fields, framing) = (nil, .none)
        mark(.fetchStart)
    }
    private var isFTP = false
    private var isStream = false

    func connected(_ transport: any Transport, throughProxy: Bool) {
        mark(.connectEnd)
        (facts, usesProxy) = (ConnectionFacts(transport, ConnectionIdentifier.make()), throughProxy)
    }

    func end(sent: Int64, received: Int64) {
        mark(.end)
        (traffic.sent, traffic.content, traffic.receivedBody, decoded) = (sent, sent, received, received)
    }

    // MARK: Moments

    /// Notes the moment of a stage; a repetition replaces the earlier moment.
    func mark(_ stage: Stage) { moments[stage.rawValue] = Poller.now() }
    func mark(_ stage: Stage, at moment: Int64) { moments[stage.rawValue] = moment }
    func clear(_ stage: Stage) { moments[stage.rawValue] = 0 }
    func has(_ stage: Stage) -> Bool { moments[stage.rawValue] != 0 }
    subscript(_ stage: Stage) -> Int64 { moments[stage.rawValue] }

    // MARK: The connection

    func lease(_ facts: ConnectionFacts, _ route: Route, isReused: Bool, _ version: HTTPVersion? = nil) {
        (self.facts, self.isReused, sentVersion) = (facts, isReused, version)
        usesProxy = !route.proxyChain.isDirect
    }
    /// The version that the request states; nil for ftp, and without a connection.
    private(set) var sentVersion: HTTPVersion?
    /// Whether the fields are sent as HTTP/2 and HTTP/3 do.
    private var isBinary: Bool { sentVersion == .http2 || sentVersion == .http3 }

    var protocolName: String? {
        guard facts != nil, !isStream else { return nil }
        if isBinary { return sentVersion == .http3 ? "h3" : "h2" }
        if isFTP { return "ftp" }
        return response?.http?.version == .http10 ? "http/1.0" : "http/1.1"
    }

    /// The fields as HTTP/1.1 sends them; see `HTTP1Writer`.
    var sentHeaders: Headers {
        guard !isBinary else { return sentHTTP2Headers }
        guard let given, case .success(let destination) = request.destination else { return request.headers }
        var sent = Headers()
        sent.append(.host, given[.host] ?? String(decoding: destination.target.hostField, as: UTF8.self))
        for field in given where ![.host, .contentLength, .transferEncoding].contains(field.name) {
            sent.append(field.name, field.value)
        }
        switch framing {
        case .length(let length): sent.append(.contentLength, "\(length)")
        case .chunked: sent.append(.transferEncoding, "chunked")
        case .none where request.method.anticipatesContent: sent.append(.contentLength, "0")
        case .none, .untilClose: break
        }
        return sent
    }
}

extension TransactionRecord {
    /// The fields that were given to the connection; `nil` for a transaction without any.
    private var given: Headers? {
        switch fields {
        case .defaults(let prepared)?: prepared.headers
        case .own(let headers)?: headers
        case nil: nil
        }
    }

    /// The fields as HTTP/2 sends them: without Host, and without the fields about the connection.
    fileprivate var sentHTTP2Headers: Headers {
        guard let given else { return request.headers }
        var sent = Headers()
        for field in given where !Self.ofHTTP1.contains(field.name) {
            sent.append(FieldName(field.name.description.lowercased()), field.value)
        }
        switch framing {
        case .length(let length): sent.append("content-length", "\(length)")
        case .none where request.method.anticipatesContent: sent.append("content-length", "0")
        case .none, .chunked, .untilClose: break
        }
        return sent
    }

    private static let ofHTTP1: Set<FieldName> = [
        .host, .contentLength, .transferEncoding, .connection, .upgrade, "Keep-Alive", "Proxy-Connection",
    ]
}

/// The bytes of one exchange, before TLS.
struct HTTP1Traffic: Sendable {
    /// The whole size of the request's head.
    var headSize = 0
    /// The number of bytes of head and body that were sent.
    var sent: Int64 = 0
    /// The number of bytes of the body that were sent, without framing.
    var content: Int64 = 0
    var receivedHead: Int64 = 0
    var receivedBody: Int64 = 0

    var sentHead: Int64 { min(sent, Int64(headSize)) }
    var sentBody: Int64 { sent - sentHead }

    mutating func consume(_ count: Int, isInBody: Bool) {
        if isInBody { receivedBody += Int64(count) } else { receivedHead += Int64(count) }
    }
}
