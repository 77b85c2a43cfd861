// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO
public import URLLoadingWire

extension LoadMetrics {
    /// One request of a load and its response.
    ///
    /// Stages that did not happen are `nil`: there is no look-up for an IP address or a reused connection, and no
    /// ``responseEnd`` for a body that was not read to its end.
    public struct Transaction: Sendable {
        let record: TransactionRecord
        let origin: Moment.Origin

        /// The request, after redirects, handlers and observers.
        public var request: Request { record.request }
        /// The fields as they were sent: those of the request, the session's, and those the library writes, without
        /// those of a signature (``Decisions/sign``). For ``FetchType/local``, those of the request.
        public var requestHeaders: Headers { record.sentHeaders }
        /// The response, without its body; `nil` if there was none.
        public var response: Response? { record.response }
        /// The error that ended this transaction; for the last transaction, the error of the load.
        public var error: LoadError? { record.error }

        /// The source of a response.
        public enum FetchType: String, Sendable, Hashable {
            /// A server answered.
            case network
            /// This machine answered: `file` and `data` URLs, and responses of custom handlers.
            case local
            /// A stored response (``Configuration/Caching/store``). If it was revalidated, the validation is a
            /// transaction of its own before this one.
            case cache
        }
        /// The source of the response.
        public var fetchType: FetchType { record.fetchType }

        /// The rules of HTTP that the response breaks and that were tolerated: ``HTTPHead/violations``.
        public var violations: [WireViolation] { response?.http?.violations ?? [] }

        // MARK: The connection

        /// The protocol by its ALPN name, `http/1.1` or `http/1.0`; `ftp`, with TLS or without; `nil` if there was no
        /// connection.
        public var protocolName: String? { record.protocolName }
        var sentVersion: HTTPVersion? { record.sentVersion }
        /// A number for the connection, unique in this process; `nil` if there was none.
        public var connectionID: Int? { record.facts?.identifier }
        /// True if the connection was made before this transaction: it has carried another request, or waited for one.
        public var isReusedConnection: Bool { record.isReused }
        /// True if the connection leads to a proxy, even as a tunnel to the origin: the addresses below, and the time
        /// of the look-up, are then the proxy's.
        public var isProxyConnection: Bool { record.usesProxy }
        /// The local address of the connection: `192.0.2.7`, `2001:db8::7`.
        public var localAddress: String? { record.facts?.local?.host }
        /// The local port.
        public var localPort: Int? { record.facts?.local?.portNumber }
        /// The remote address: the server's or the proxy's.
        public var remoteAddress: String? { record.facts?.remote?.host }
        /// The remote port.
        public var remotePort: Int? { record.facts?.remote?.portNumber }
        /// The version of TLS; `nil` without.
        public var tlsVersion: Configuration.TLS.Version? { record.facts?.tlsVersion }
        /// The ``Configuration/TLS/UnsafeConcessions`` that the connection has used; empty if TLS was as safe as the
        /// session otherwise demands. A resumed session counts as the one that it resumes.
        public var tlsConcessions: Set<Configuration.TLS.UnsafeConcessions.Kind> {
            guard let facts = record.facts else { return [] }
            return Set(record.lacksCloseNotify ? facts.concessions.union(.missingCloseNotify) : facts.concessions)
        }
        /// The cipher suite by its registered name, such as `TLS_AES_128_GCM_SHA256`; `nil` without TLS.
        public var cipherSuite: String? { record.facts?.cipherSuite }
        /// The number that suite is registered with (RFC 8446 §B.4), such as 0x1301.
        public var cipherSuiteNumber: UInt16? { record.facts?.cipherSuiteNumber }
        /// The group of the key exchange by its registered name (RFC 8446 §4.2.7), such as `x25519` or
        /// `X25519MLKEM768`. `nil` without TLS, for a key exchange without a group, and for groups that OpenSSL before
        /// 3.2 cannot name. A resumed session of TLS 1.2 names that of the session it resumes.
        public var keyExchangeGroup: String? { record.facts?.keyExchangeGroup }
        /// Whether the key exchange also withstands an attacker who records it and has a quantum computer later: its
        /// group contains ML-KEM (FIPS 203). `nil` if the group is not known.
        ///
        /// ```swift
        /// if transaction.isPostQuantum == false { print("a classical key exchange") }
        /// ```
        public var isPostQuantum: Bool? { keyExchangeGroup.map { $0.uppercased().contains("MLKEM") } }
        /// The algorithm with which the server signed the handshake, as in RFC 8446 §4.2.3 without the curve or the
        /// kind of certificate: `rsa_pss_sha256`, `ecdsa_sha384`, `ed25519`. `nil` without TLS, and for a resumed
        /// session.
        public var signatureAlgorithm: String? { record.facts?.signatureAlgorithm }

        // MARK: Bytes, before TLS

        /// Bytes of the request's head that were sent.
        public var requestHeadBytes: Int64 { record.traffic.sentHead }
        /// Bytes of the request's body that were sent, with their framing.
        public var requestBodyBytes: Int64 { record.traffic.sentBody }
        /// Bytes of the request's body that were sent, without framing.
        public var requestContentBytes: Int64 { record.traffic.content }
        /// Bytes of the response's head, and of the interim (1xx) responses before it.
        public var responseHeadBytes: Int64 { record.traffic.receivedHead }
        /// Bytes of the response's body that were received and parsed, with their framing and content coding.
        public var responseBodyBytes: Int64 {
            record.fetchType == .local ? record.decoded : record.traffic.receivedBody
        }
        /// Bytes of the response's body, decoded.
        public var responseContentBytes: Int64 { record.decoded }
    }
}

extension LoadMetrics.Transaction {
    // MARK: Time, in the order of events

    /// The start of the transaction. It may wait for a connection first.
    public var fetchStart: LoadMetrics.Moment { .init(origin, at: record[.fetchStart]) }
    /// The start of the look-up of the host's addresses.
    public var lookupStart: LoadMetrics.Moment? { moment(.lookupStart) }
    /// The end of the look-up.
    public var lookupEnd: LoadMetrics.Moment? { moment(.lookupEnd) }
    /// The start of the first connection attempt.
    public var connectStart: LoadMetrics.Moment? { moment(.connectStart) }
    /// The start of the TLS handshake.
    public var secureStart: LoadMetrics.Moment? { moment(.secureStart) }
    /// The successful end of the TLS handshake.
    public var secureEnd: LoadMetrics.Moment? { moment(.secureEnd) }
    /// The moment the connection was ready, TLS included.
    public var connectEnd: LoadMetrics.Moment? { moment(.connectEnd) }
    /// The moment the first byte of the request was sent.
    public var requestStart: LoadMetrics.Moment? { moment(.requestStart) }
    /// The moment the last byte of the request was sent. Later than ``responseStart`` if the server answered early.
    public var requestEnd: LoadMetrics.Moment? { moment(.requestEnd) }
    /// The moment the first byte of the final response arrived; interim (1xx) responses do not count.
    public var responseStart: LoadMetrics.Moment? { moment(.responseStart) }
    /// The moment the end of the response's body arrived.
    public var responseEnd: LoadMetrics.Moment? { moment(.responseEnd) }
    /// The end of the transaction, successful or not.
    public var end: LoadMetrics.Moment { .init(origin, at: record[.end]) }

    /// The duration from ``fetchStart`` to ``end``.
    public var duration: Duration { end - fetchStart }

    private func moment(_ stage: TransactionRecord.Stage) -> LoadMetrics.Moment? {
        record.has(stage) ? LoadMetrics.Moment(origin, at: record[stage]) : nil
    }
}

extension LoadMetrics.Transaction: CustomStringConvertible {
    /// The transaction on one line: `200 in 14.0 ms reused`, `connectionRefused in 0.3 ms`,
    /// `200 in 14.0 ms, tolerated bareLineFeed`, `200 in 14.0 ms, conceded version`.
    public var description: String {
        let outcome =
            error?.reason.name ?? response?.http.map { "\($0.status.code)" }
            ?? (response == nil ? "nothing" : fetchType.rawValue)
        return "\(outcome) in \(duration.inMilliseconds) ms" + (isReusedConnection ? " reused" : "")
            + violations.map { ", tolerated \($0.code.rawValue)" }.joined()
            + tlsConcessions.map(\.rawValue).sorted().map { ", conceded \($0)" }.joined()
    }
}

extension SocketAddress {
    fileprivate var portNumber: Int? { family == .unix ? nil : Int(port) }
}
