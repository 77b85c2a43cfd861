import URLLoadingIO
public import URLLoadingWire

extension LoadMetrics {
    /// One request and what came of it.
    ///
    /// What has not happened is `nil`: there is no look-up for an address or a connection that was kept, no
    /// ``responseEnd`` for a body that was not read to its end.
    public struct Transaction: Sendable {
        let record: TransactionRecord
        let origin: Moment.Origin

        /// What was asked for, after redirects, handlers and observers.
        public var request: Request { record.request }
        /// The fields as they were sent: those of the request, the session's, and those the library writes. For
        /// ``FetchType/local``, those of the request.
        public var requestHeaders: Headers { record.sentHeaders }
        /// What was answered, before its body; `nil` if nothing was.
        public var response: Response? { record.response }
        /// Why it failed, or why the load it was the last of did.
        public var error: LoadError? { record.error }

        /// Where an answer comes from.
        public enum FetchType: String, Sendable, Hashable {
            /// A server.
            case network
            /// This process or its machine: `file` and `data` URLs, and answers of handlers.
            case local
            /// A stored response (``Configuration/cache``). If its server was asked whether it still holds, that is a
            /// transaction of its own before it.
            case cache
        }
        /// Where the answer came from.
        public var fetchType: FetchType { record.fetchType }

        // MARK: The connection

        /// The protocol by its ALPN name, `http/1.1` or `http/1.0`; `ftp`, with TLS or without; `nil` if there was no connection.
        public var protocolName: String? { record.protocolName }
        /// A number for the connection, unique in this process; `nil` if there was none.
        public var connectionID: Int? { record.facts?.identifier }
        /// Whether the connection had carried another request before.
        public var isReusedConnection: Bool { record.isReused }
        /// Whether it led to a proxy, be it through a tunnel to the origin: addresses below are then the proxy's, and
        /// so is the time to look up a name.
        public var isProxyConnection: Bool { record.usesProxy }
        /// Our end of the connection: `192.0.2.7`, `2001:db8::7`.
        public var localAddress: String? { record.facts?.local?.host }
        /// Our port.
        public var localPort: Int? { record.facts?.local?.portNumber }
        /// The server's end.
        public var remoteAddress: String? { record.facts?.remote?.host }
        /// The server's port.
        public var remotePort: Int? { record.facts?.remote?.portNumber }
        /// The version of TLS; `nil` without.
        public var tlsVersion: Configuration.TLS.Version? { record.facts?.tlsVersion }
        /// The cipher suite by its registered name, such as `TLS_AES_128_GCM_SHA256`; `nil` without TLS.
        public var cipherSuite: String? { record.facts?.cipherSuite }
        /// The number that suite is registered with (RFC 8446 §B.4), such as 0x1301.
        public var cipherSuiteNumber: UInt16? { record.facts?.cipherSuiteNumber }

        // MARK: Bytes, before TLS

        /// Bytes of the request's head that were sent.
        public var requestHeadBytes: Int64 { record.traffic.sentHead }
        /// Bytes of the request's body that were sent, with their framing.
        public var requestBodyBytes: Int64 { record.traffic.sentBody }
        /// The same without the framing, as the caller gave them.
        public var requestContentBytes: Int64 { record.traffic.content }
        /// Bytes of the response's head, and of informational ones before it.
        public var responseHeadBytes: Int64 { record.traffic.receivedHead }
        /// Bytes of the response's body that were received and looked at, with their framing and coding.
        public var responseBodyBytes: Int64 {
            record.fetchType == .local ? record.decoded : record.traffic.receivedBody
        }
        /// Bytes of the response's body, decoded.
        public var responseContentBytes: Int64 { record.decoded }
    }
}

extension LoadMetrics.Transaction {
    // MARK: Time, in the order of events

    /// When it was begun: from here it may have waited for a connection.
    public var fetchStart: LoadMetrics.Moment { .init(origin, at: record[.fetchStart]) }
    /// When the host's addresses were asked for.
    public var lookupStart: LoadMetrics.Moment? { moment(.lookupStart) }
    /// When they were known.
    public var lookupEnd: LoadMetrics.Moment? { moment(.lookupEnd) }
    /// When the first address was tried.
    public var connectStart: LoadMetrics.Moment? { moment(.connectStart) }
    /// When the TLS handshake began.
    public var secureStart: LoadMetrics.Moment? { moment(.secureStart) }
    /// When it had ended well.
    public var secureEnd: LoadMetrics.Moment? { moment(.secureEnd) }
    /// When the connection was ready, its TLS included.
    public var connectEnd: LoadMetrics.Moment? { moment(.connectEnd) }
    /// When the request began to be sent.
    public var requestStart: LoadMetrics.Moment? { moment(.requestStart) }
    /// When all of it had gone out. After ``responseStart`` if the server answered while it read.
    public var requestEnd: LoadMetrics.Moment? { moment(.requestEnd) }
    /// When the first byte of the response was there; of informational ones, none counts.
    public var responseStart: LoadMetrics.Moment? { moment(.responseStart) }
    /// When the end of its body was there.
    public var responseEnd: LoadMetrics.Moment? { moment(.responseEnd) }
    /// When the transaction was over, in whichever way.
    public var end: LoadMetrics.Moment { .init(origin, at: record[.end]) }

    /// From ``fetchStart`` to ``end``.
    public var duration: Duration { end - fetchStart }

    private func moment(_ stage: TransactionRecord.Stage) -> LoadMetrics.Moment? {
        record.has(stage) ? LoadMetrics.Moment(origin, at: record[stage]) : nil
    }
}

extension LoadMetrics.Transaction: CustomStringConvertible {
    /// `200 in 14.0 ms reused`, `connectionRefused in 0.3 ms`.
    public var description: String {
        let outcome =
            error?.reason.name ?? response?.http.map { "\($0.status.code)" }
            ?? (response == nil ? "nothing" : fetchType.rawValue)
        return "\(outcome) in \(duration.inMilliseconds) ms" + (isReusedConnection ? " reused" : "")
    }
}

extension SocketAddress {
    fileprivate var portNumber: Int? { family == .unix ? nil : Int(port) }
}
