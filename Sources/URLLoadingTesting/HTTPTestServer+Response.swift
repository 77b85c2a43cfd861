// SPDX-License-Identifier: Apache-2.0

public import URLLoadingWire

extension HTTPTestServer {
    /// The response of a route, as a value that states exactly what is sent.
    ///
    /// ```swift
    /// .ok("text")
    /// .status(.found, headers: [.location: "/elsewhere"])
    /// .ok(.chunks(["one", .pause(.milliseconds(10)), "two"], trailers: ["Checksum": "3"]))
    /// .raw(["HTTP/1.1 200 OK\nno CR", .pause(.seconds(1)), "\n"])
    /// ```
    ///
    /// For HEAD, 204 and 304 only the head is sent, with the framing of the GET response where the protocol permits
    /// that (RFC 9110 §9.3.2, §15.4.5).
    public struct Response: Sendable {
        /// The status of the final response.
        public var status: Status
        /// The fields; those that frame the body are derived from ``body``.
        public var headers: Headers
        /// The body.
        public var body: Body
        /// Interim responses (1xx) sent before the final one, in order.
        public var interim: [Interim] = []
        /// Sent in place of everything above; `nil` for a regular response.
        var script: Script?

        /// An interim response (RFC 9110 §15.2).
        public struct Interim: Sendable {
            /// The status, 100 to 199 except 101: use a ``Script`` to switch protocols.
            public var status: Status
            /// The fields.
            public var headers: Headers
            /// The pause after this response.
            public var pause: Duration

            /// Creates an interim response.
            public init(_ status: Status, headers: Headers = Headers(), pause: Duration = .zero) {
                self.status = status
                self.headers = headers
                self.pause = pause
            }
        }

        /// Creates a response from its parts.
        public init(status: Status, headers: Headers = Headers(), body: Body = .none) {
            self.status = status
            self.headers = headers
            self.body = body
        }

        /// Returns a 200 response with a text.
        public static func ok(_ text: String, headers: Headers = Headers()) -> Response {
            .ok(.bytes(Array(text.utf8)), headers: headers)
        }

        /// Returns a 200 response with a body.
        public static func ok(_ body: Body, headers: Headers = Headers()) -> Response {
            Response(status: .ok, headers: headers, body: body)
        }

        /// Returns a response with a status, without a body by default.
        public static func status(_ status: Status, headers: Headers = Headers(), body: Body = .none) -> Response {
            Response(status: status, headers: headers, body: body)
        }

        /// Returns a redirect to `location`, which is sent unchanged.
        public static func redirect(_ location: String, status: Status = .found) -> Response {
            Response(status: status, headers: [.location: location])
        }

        /// Returns exactly these bytes in place of a response; see ``Script``.
        public static func raw(_ pieces: [Piece], then ending: Script.Ending = .close) -> Response {
            var answer = Response(status: .ok)
            answer.script = Script(pieces, then: ending)
            return answer
        }

        /// Returns this response with interim responses before it.
        public func after(_ interim: Interim...) -> Response {
            var answer = self
            answer.interim += interim
            return answer
        }
    }
}

extension HTTPTestServer.Response {
    /// The body of a response and its framing.
    public enum Body: Sendable {
        /// No content: `Content-Length: 0` where the status allows a body.
        case none
        /// These bytes, with Content-Length.
        case bytes([UInt8])
        /// One chunk for each piece (RFC 9112 §7.1), then the trailers.
        case chunks([Piece], trailers: Headers = Headers())
        /// Ended by closing the connection (RFC 9112 §6.3).
        case untilClose([Piece])
        /// A false Content-Length, followed by `bytes` and the end of the connection.
        case declared(Int64, bytes: [UInt8])
        /// The byte, `count` times, generated while it is sent: bodies of any size take 64 KiB of memory. Chunked with
        /// a `count` of `.max`, the body is endless.
        case repeated(UInt8 = 0x61, count: Int64, chunked: Bool = false)
    }

    /// A part of a body, or a pause between two parts. A literal stands for its UTF-8 bytes.
    public enum Piece: Sendable, ExpressibleByStringInterpolation {
        /// Bytes that are sent unchanged.
        case bytes([UInt8])
        /// A pause; the preceding bytes are sent first.
        case pause(Duration)

        /// Creates a piece from the UTF-8 bytes of a literal.
        public init(stringLiteral text: String) { self = .bytes(Array(text.utf8)) }
    }

    /// Bytes sent unchanged, for malformed messages and other protocols.
    public struct Script: Sendable {
        /// The action after the last piece.
        public enum Ending: Sendable, Hashable {
            /// Closes the connection.
            case close
            /// Resets the connection, as a crash does.
            case reset
            /// Stalls until the client, or the test, ends the connection.
            case stall
            /// Waits for the next request.
            case next
        }
        /// The data to send.
        public var pieces: [Piece]
        /// The action after the last piece.
        public var ending: Ending

        /// Creates a script from its pieces and the action after them.
        public init(_ pieces: [Piece], then ending: Ending = .close) {
            self.pieces = pieces
            self.ending = ending
        }
    }
}
