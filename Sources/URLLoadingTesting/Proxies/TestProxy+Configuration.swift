public import URLLoading

extension TestProxy {
    /// How a proxy is set up.
    ///
    /// ```swift
    /// var configuration = TestProxy.Configuration(.http, user: "u", password: "pw")
    /// configuration.fault = .garbage
    /// ```
    public struct Configuration: Sendable {
        /// What it speaks.
        public enum Kind: Sendable, Hashable {
            /// HTTP/1.1: whole URLs and CONNECT.
            case http
            /// SOCKS 4A and 5, as the client begins.
            case socks
        }
        public var kind: Kind
        /// TLS to the proxy; `nil` for none.
        public var tls: TestOrigin.TLS?
        /// Who is let through; everybody if it is `nil`. Of SOCKS 4A the name alone is looked at.
        public var user: String?
        public var password: String
        /// How it misbehaves; `nil` for not at all.
        public var fault: Fault?
        /// Of HTTP: who is let through, in place of ``user``. It hears every request, in order on each connection.
        ///
        /// ```swift
        /// configuration.judge = { asked in
        ///     asked.headers[.proxyAuthorization] == "Bearer t" ? .letThrough() : .refuse([.proxyAuthenticate: "Bearer"])
        /// }
        /// ```
        public var judge: (@Sendable (Asked) -> Verdict)?

        public init(
            _ kind: Kind, tls: TestOrigin.TLS? = nil, user: String? = nil, password: String = "", fault: Fault? = nil
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
        /// It was accepted, and nothing read.
        case accept
        /// The client's first bytes were read: of TLS nothing was said. Of a SOCKS proxy: the methods were read.
        case greeting
        /// SOCKS 5: user and password were read.
        case authentication
        /// What is wanted is known, and was not answered.
        case request
        /// Half of the answer was sent.
        case answer
    }

    /// What it does wrong, on every connection.
    public enum Fault: Sendable, Hashable {
        /// Refuses with this status, or this number of SOCKS.
        case refuse(Int)
        /// Closes the connection on which it wanted credentials, without having said so.
        case closeAfterRefusal
        /// Answers with bytes that are of no protocol.
        case garbage
        /// Answers with these bytes, whatever was asked.
        case answer([UInt8])
        /// Says nothing any more from that moment on.
        case stall(Point)
        /// Closes at that moment.
        case close(Point)
        /// Sends these bytes with its yes to a tunnel, as if they were the origin's.
        case extraBytes([UInt8])
    }

    /// What it thinks of who asks.
    public enum Verdict: Sendable {
        /// With these fields in its answer, besides those of the origin.
        case letThrough(Headers = Headers())
        /// With 407 and these fields.
        case refuse(Headers)
    }

    /// One request to it.
    public struct Asked: Sendable {
        /// `GET`, `CONNECT`, `SOCKS5`, `SOCKS4A`.
        public let method: String
        /// As it was written: a URL, or host and port.
        public let target: String
        /// Of HTTP.
        public let headers: Headers
        /// Of SOCKS: the user, and the password after a colon.
        public let credentials: String?
        /// Which connection, from 1.
        public let connection: Int
        /// The name that the client asked for in TLS.
        public let serverName: String?
    }
}
