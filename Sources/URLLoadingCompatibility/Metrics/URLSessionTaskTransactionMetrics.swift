// SPDX-License-Identifier: Apache-2.0

public import Foundation
import URLLoading
import URLLoadingWire

/// The metrics of one request and its response. A date is `nil` if its phase did not occur: a reused connection has no
/// name resolution and no connect phase.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    private let transaction: LoadMetrics.Transaction
    /// The request that was sent.
    public let request: URLRequest
    /// The response; `nil` if none was received.
    public let response: URLResponse?

    private let path: LazyNetworkPath

    init(_ transaction: LoadMetrics.Transaction, _ original: URLRequest, _ path: LazyNetworkPath) {
        self.transaction = transaction
        self.path = path
        request = URLRequest(transaction.request, like: original)
        response = transaction.response.map { URLResponse.make($0, to: transaction.request.method.rawValue) }
    }

    // MARK: Time

    /// The moment at which the transaction began.
    public var fetchStartDate: Date? { transaction.fetchStart.date }
    /// The beginning of the look-up of the host name; `nil` if there was none.
    public var domainLookupStartDate: Date? { transaction.lookupStart?.date }
    /// The end of the look-up of the host name; `nil` if there was none.
    public var domainLookupEndDate: Date? { transaction.lookupEnd?.date }
    /// The beginning of the connection attempt; `nil` on a reused connection.
    public var connectStartDate: Date? { transaction.connectStart?.date }
    /// The beginning of the TLS handshake; `nil` if there was none.
    public var secureConnectionStartDate: Date? { transaction.secureStart?.date }
    /// The end of the TLS handshake; `nil` if there was none.
    public var secureConnectionEndDate: Date? { transaction.secureEnd?.date }
    /// The moment at which the connection was ready, TLS included; `nil` on a reused connection.
    public var connectEndDate: Date? { transaction.connectEnd?.date }
    /// The moment at which the first byte of the request was sent.
    public var requestStartDate: Date? { transaction.requestStart?.date }
    /// The moment at which the last byte of the request was sent.
    public var requestEndDate: Date? { transaction.requestEnd?.date }
    /// The moment at which the first byte of the response was received.
    public var responseStartDate: Date? { transaction.responseStart?.date }
    /// The moment at which the last byte of the response was received.
    public var responseEndDate: Date? { transaction.responseEnd?.date }

    // MARK: Bytes, before TLS

    /// The size of the request's head as it was sent, in bytes.
    public var countOfRequestHeaderBytesSent: Int64 { transaction.requestHeadBytes }
    /// The size of the request's body as it was sent, with its framing, in bytes.
    public var countOfRequestBodyBytesSent: Int64 { transaction.requestBodyBytes }
    /// The size of the request's body as the program provided it, in bytes.
    public var countOfRequestBodyBytesBeforeEncoding: Int64 { transaction.requestContentBytes }
    /// The size of the response's head as it was received, in bytes.
    public var countOfResponseHeaderBytesReceived: Int64 { transaction.responseHeadBytes }
    /// The size of the response's body as it was received, with framing and content coding, in bytes.
    public var countOfResponseBodyBytesReceived: Int64 { transaction.responseBodyBytes }
    /// The size of the response's decoded body, in bytes.
    public var countOfResponseBodyBytesAfterDecoding: Int64 { transaction.responseContentBytes }

    // MARK: The connection

    /// The protocol: `http/1.1` or `h2`; `nil` for a response from another source than the network.
    public var networkProtocolName: String? { transaction.protocolName }
    /// The address of the server or the proxy; `nil` without a connection.
    public var remoteAddress: String? { transaction.remoteAddress }
    /// The port of the server or the proxy; `nil` without a connection.
    public var remotePort: String? { transaction.remotePort.map { "\($0)" } }
    /// The address of this machine; `nil` without a connection.
    public var localAddress: String? { transaction.localAddress }
    /// The port of this machine; `nil` without a connection.
    public var localPort: String? { transaction.localPort.map { "\($0)" } }
    /// Whether the connection led to a proxy.
    public var isProxyConnection: Bool { transaction.isProxyConnection }
    /// Whether the connection had served another request before.
    public var isReusedConnection: Bool { transaction.isReusedConnection }
    /// Whether the network path was a mobile, metered (expensive) or constrained network, when the first of these
    /// properties was read.
    public var isCellular: Bool { path.value.usesCellular }
    /// Whether the connection used a network that charges by volume.
    public var isExpensive: Bool { path.value.isExpensive }
    /// Whether the connection was made while the user wanted little traffic.
    public var isConstrained: Bool { path.value.isConstrained }
    /// Always false: connections use a single path.
    public var isMultipath: Bool { false }

    /// The negotiated cipher suite; `nil` without TLS, and for suites without a case in the enumeration.
    public var negotiatedTLSCipherSuite: tls_ciphersuite_t? {
        transaction.cipherSuiteNumber.flatMap { tls_ciphersuite_t(rawValue: $0) }
    }

    /// The version of TLS; `nil` without TLS.
    public var negotiatedTLSProtocolVersion: tls_protocol_version_t? {
        switch transaction.tlsVersion {
        case .tls10?: .TLSv10
        case .tls11?: .TLSv11
        case .tls12?: .TLSv12
        case .tls13?: .TLSv13
        case nil: nil
        }
    }

    /// The source of the response.
    public var resourceFetchType: URLSessionTaskMetrics.ResourceFetchType {
        switch transaction.fetchType {
        case .network: .networkLoad
        case .local: .unknown
        case .cache: .localCache
        }
    }

    /// Always `.unknown`: the system's resolver does not report the protocol.
    public var domainResolutionProtocol: URLSessionTaskMetrics.DomainResolutionProtocol { .unknown }
}

/// TLS versions, with their numbers on the wire.
public enum tls_protocol_version_t: UInt16, Sendable {
    /// TLS 1.0 (RFC 2246), which is not safe.
    case TLSv10 = 0x0301
    /// TLS 1.1 (RFC 4346), which is not safe.
    case TLSv11 = 0x0302
    /// TLS 1.2.
    case TLSv12 = 0x0303
    /// TLS 1.3.
    case TLSv13 = 0x0304
    /// DTLS 1.0, which is never used.
    case DTLSv10 = 0xFEFF
    /// DTLS 1.2, which is never used.
    case DTLSv12 = 0xFEFD
}

/// TLS cipher suites, with their numbers in IANA's registry.
public enum tls_ciphersuite_t: UInt16, Sendable {
    case RSA_WITH_3DES_EDE_CBC_SHA = 0x000A
    case RSA_WITH_AES_128_CBC_SHA = 0x002F
    case RSA_WITH_AES_256_CBC_SHA = 0x0035
    case RSA_WITH_AES_128_CBC_SHA256 = 0x003C
    case RSA_WITH_AES_256_CBC_SHA256 = 0x003D
    case RSA_WITH_AES_128_GCM_SHA256 = 0x009C
    case RSA_WITH_AES_256_GCM_SHA384 = 0x009D
    case AES_128_GCM_SHA256 = 0x1301
    case AES_256_GCM_SHA384 = 0x1302
    case CHACHA20_POLY1305_SHA256 = 0x1303
    case ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA = 0xC008
    case ECDHE_ECDSA_WITH_AES_128_CBC_SHA = 0xC009
    case ECDHE_ECDSA_WITH_AES_256_CBC_SHA = 0xC00A
    case ECDHE_RSA_WITH_3DES_EDE_CBC_SHA = 0xC012
    case ECDHE_RSA_WITH_AES_128_CBC_SHA = 0xC013
    case ECDHE_RSA_WITH_AES_256_CBC_SHA = 0xC014
    case ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 = 0xC023
    case ECDHE_ECDSA_WITH_AES_256_CBC_SHA384 = 0xC024
    case ECDHE_RSA_WITH_AES_128_CBC_SHA256 = 0xC027
    case ECDHE_RSA_WITH_AES_256_CBC_SHA384 = 0xC028
    case ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 = 0xC02B
    case ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 = 0xC02C
    case ECDHE_RSA_WITH_AES_128_GCM_SHA256 = 0xC02F
    case ECDHE_RSA_WITH_AES_256_GCM_SHA384 = 0xC030
    case ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA8
    case ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA9
}
