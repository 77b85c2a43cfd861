// SPDX-License-Identifier: Apache-2.0

// In this folder: test proxies

public import URLLoading

extension TestProxy {
    /// The configuration of a test proxy: protocol, TLS, credentials and fault.
    ///
    /// ```swift
    /// var configuration = TestProxy.Configuration(.http, user: "u", password: "pw")
    /// configuration.fault = .garbage
    /// ```
    public struct Configuration: Sendable {
        /// The protocol of the proxy.
        public enum Kind: Sendable, Hashable {
            /// HTTP/1.1, with absolute URLs and CONNECT.
            case http
            /// SOCKS 4A and 5, as the client chooses.
            case socks
        }
        /// The protocol of the proxy.
        public var kind: Kind
        /// The TLS settings of the connection to the proxy; `nil` for none.
        public var tls: HTTPTestServer.TLS?
        /// The only user that is admitted; `nil` admits all. With SOCKS 4A only the name is checked.
        public var user: String?
        /// The password of ``user``.
        public var password: String
        /// The proxy's fault; `nil` for none.
        public var fault: Fault?
        /// Decides about requests to an HTTP proxy, in place of ``user``. Called for every request, in order on each
        /// connection.
        ///
        /// ```swift
        /// configuration.authorize = { asked in
        ///     asked.headers[.proxyAuthorization] == "Bearer t" ? .allow() : .refuse([.proxyAuthenticate: "Bearer"])
        /// }
        /// ```
        public var authorize: (@Sendable (RecordedRequest) -> Authorization)?

        /// Creates a configuration; by default the proxy admits all users and has no fault.
        public init(
            _ kind: Kind, tls: HTTPTestServer.TLS? = nil, user: String? = nil, password: String = "",
            fault: Fault? = nil
        ) {
            self.kind = kind
            self.tls = tls
            self.user = user
            self.password = password
            self.fault = fault
        }
    }

    /// Moments in the life of a connection.
    public enum Point: Sendable, Hashable, CaseIterable {
        /// The connection was accepted, and nothing was read.
        case accept
        /// The client's first bytes were read; by a proxy with TLS, those behind the handshake. For a SOCKS proxy: its
        /// methods were read.
        case greeting
        /// SOCKS 5: user and password were read.
        case authentication
        /// The request was read, and not answered.
        case request
        /// Half of the reply was sent.
        case answer
    }

    /// A fault of the proxy, on every connection.
    public enum Fault: Sendable, Hashable {
        /// Refuses with this status or SOCKS reply code.
        case refuse(Int)
        /// Closes the connection on which it requested credentials, without announcing that.
        case closeAfterRefusal
        /// Replies with bytes of no known protocol.
        case garbage
        /// Replies with these bytes, whatever the request.
        case answer([UInt8])
        /// Stalls from that moment on.
        case stall(Point)
        /// Closes the connection at that moment.
        case close(Point)
        /// Sends these bytes together with its positive reply to a tunnel, as if they came from the origin.
        case extraBytes([UInt8])
    }

    /// The decision about a request.
    public enum Authorization: Sendable {
        /// Admits the request; these fields are added to the origin's response.
        case allow(Headers = Headers())
        /// Refuses the request with 407 and these fields.
        case refuse(Headers)
    }

    /// One request to the proxy.
    public struct RecordedRequest: Sendable {
        /// `GET` and other methods, `CONNECT`, `SOCKS5` or `SOCKS4A`.
        public let method: String
        /// The target as written: a URL, or host and port.
        public let target: String
        /// The fields of an HTTP request.
        public let headers: Headers
        /// The credentials of a SOCKS request: the user, and the password after a colon.
        public let credentials: String?
        /// The number of the connection, from 1.
        public let connection: Int
        /// The server name that the client requested in TLS.
        public let serverName: String?
    }
}
