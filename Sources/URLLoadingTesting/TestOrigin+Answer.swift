public import URLLoadingWire

extension TestOrigin {
    /// What a route answers: a value that says exactly what goes on the wire.
    ///
    /// ```swift
    /// .ok("text")
    /// .status(.found, headers: [.location: "/elsewhere"])
    /// .ok(.chunks(["one", .pause(.milliseconds(10)), "two"], trailers: ["Checksum": "3"]))
    /// .raw(["HTTP/1.1 200 OK\nno CR", .pause(.seconds(1)), "\n"])
    /// ```
    ///
    /// HEAD, 204 and 304 get the head alone, with the framing a GET would have had where the
    /// protocol allows that (RFC 9110 9.3.2, 15.4.5).
    public struct Answer: Sendable {
        /// The status of the final response.
        public var status: Status
        /// Its fields; those that frame the body come from ``body``.
        public var headers: Headers
        /// What follows the head.
        public var body: Body
        /// Interim responses (1xx) sent before it, in order.
        public var interim: [Interim] = []
        /// Sent in place of all of the above.
        var script: Script?

        /// An interim response (RFC 9110 15.2).
        public struct Interim: Sendable {
            /// 100 to 199, but not 101: a switch of protocols is a ``Script``.
            public var status: Status
            /// Its fields.
            public var headers: Headers
            /// How long to wait after it.
            public var pause: Duration

            /// An interim response and what comes with it.
            public init(_ status: Status, headers: Headers = Headers(), pause: Duration = .zero) {
                self.status = status
                self.headers = headers
                self.pause = pause
            }
        }

        /// A response of its parts.
        public init(status: Status, headers: Headers = Headers(), body: Body = .none) {
            self.status = status
            self.headers = headers
            self.body = body
        }

        /// 200 with a text.
        public static func ok(_ text: String, headers: Headers = Headers()) -> Answer {
            .ok(.bytes(Array(text.utf8)), headers: headers)
        }

        /// 200 with a body.
        public static func ok(_ body: Body, headers: Headers = Headers()) -> Answer {
            Answer(status: .ok, headers: headers, body: body)
        }

        /// A status, without a body unless one is given.
        public static func status(_ status: Status, headers: Headers = Headers(), body: Body = .none) -> Answer {
            Answer(status: status, headers: headers, body: body)
        }

        /// A redirect to `location`, taken as it is.
        public static func redirect(_ location: String, status: Status = .found) -> Answer {
            Answer(status: status, headers: [.location: location])
        }

        /// Exactly these bytes in place of a response; see ``Script``.
        public static func raw(_ pieces: [Piece], then ending: Script.Ending = .close) -> Answer {
            var answer = Answer(status: .ok)
            answer.script = Script(pieces, then: ending)
            return answer
        }

        /// The same answer after interim responses.
        public func after(_ interim: Interim...) -> Answer {
            var answer = self
            answer.interim += interim
            return answer
        }
    }
}

extension TestOrigin.Answer {
    /// How a body is made and where it ends.
    public enum Body: Sendable {
        /// No content: `Content-Length: 0` where the status allows a body.
        case none
        /// These bytes, with their length.
        case bytes([UInt8])
        /// One chunk for each piece (RFC 9112 7.1), then the trailer fields.
        case chunks([Piece], trailers: Headers = Headers())
        /// Ended by closing the connection (RFC 9112 6.3).
        case untilClose([Piece])
        /// A false Content-Length: `bytes` follow whatever it says, then the connection is closed.
        case declared(Int64, bytes: [UInt8])
        /// `count` times the byte, made while it is sent: bodies of any size cost 64 KiB of memory.
        /// Chunked, with `.max` it never ends.
        case repeated(UInt8 = 0x61, count: Int64, chunked: Bool = false)
    }

    /// A part of what is sent, or a wait between two parts. A literal is its UTF-8 bytes.
    public enum Piece: Sendable, ExpressibleByStringLiteral {
        /// Sent as they are.
        case bytes([UInt8])
        /// Nothing for so long; what came before is sent first.
        case pause(Duration)

        /// The UTF-8 bytes of a literal.
        public init(stringLiteral text: String) { self = .bytes(Array(text.utf8)) }
    }

    /// Bytes taken as they are: malformed messages, other protocols.
    public struct Script: Sendable {
        /// What happens after the last piece.
        public enum Ending: Sendable, Hashable {
            /// The connection is closed.
            case close
            /// It is reset, as by a crash.
            case reset
            /// It stays as it is until the client, or the test, ends it.
            case stall
            /// It waits for the next request.
            case next
        }
        /// What is sent.
        public var pieces: [Piece]
        /// What follows.
        public var ending: Ending

        /// Pieces and what follows them.
        public init(_ pieces: [Piece], then ending: Ending = .close) {
            self.pieces = pieces
            self.ending = ending
        }
    }
}
