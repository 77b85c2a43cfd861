// SPDX-License-Identifier: Apache-2.0

// Each violation in words. Errors of loads and messages of urlload use them.

extension WireViolation {
    /// The rule that was broken as a sentence, where, and the section that states it: `a line ends with a line feed
    /// alone, at byte 3 of the head (RFC 9112 2.2)`.
    package var explanation: String {
        var words = Self.sentences[code.rawValue] ?? code.rawValue
        if let offset {
            switch code {
            case .headTooLarge, .trailersTooLarge: words += " of \(offset) bytes"
            default: words += ", at byte \(offset) of \(place)"
            }
        }
        return section.isEmpty ? words : "\(words) (\(section))"
    }

    /// What the offset counts from.
    private var place: String {
        if isInBody { return "the body" }
        return switch code {
        case .invalidURL, .invalidHost, .ambiguousAddress, .invalidPort, .ambiguousAuthority, .unsupportedScheme:
            "the URL"
        case .notSOCKS, .malformedSOCKSReply, .prematureEnd: "the reply"
        default: "the head"
        }
    }

    /// A sentence for each code, by its name. It suits both parties: most rules bind requests and responses.
    static let sentences: [String: String] = [
        // The head of a message.
        "notHTTP": "the first bytes are not those of an HTTP response",
        "malformedStatusLine": "the status line is not a version, a status of three digits and a phrase",
        "malformedRequestLine": "the request line is not a method, a target and a version",
        "unsupportedVersion": "the version of HTTP is not 1.x",
        "bareLineFeed": "a line ends with a line feed alone",
        "obsoleteFolding": "a line begins with white space, and there is no field that it may continue",
        "whitespaceBeforeColon": "there is white space between a field name and its colon",
        "malformedFieldName": "a field name is empty, or has a character that names must not have",
        "malformedFieldValue": "a field value has a character that it must not have",
        "malformedMethod": "the method is empty, or has a character that methods must not have",
        "malformedTarget": "the request target has a character that must not be sent",
        "headTooLarge": "the head is larger than the limit",
        "tooManyFields": "there are more fields than the limit",
        "missingHost": "the request has no Host field",
        "duplicateHost": "there is more than one Host field",
        "malformedHost": "the Host field is not a host with an optional port",
        "forbiddenField": "a field is set that only the library writes, or that this message must not have",
        // Framing.
        "conflictingContentLength": "the lengths of Content-Length differ, or the length is not that of the body",
        "malformedContentLength": "the Content-Length is not a decimal number below 2^63",
        "transferEncodingWithContentLength":
            "there are both Transfer-Encoding and Content-Length, so that the body has two ends",
        "unsupportedTransferEncoding": "the Transfer-Encoding is another than chunked",
        "transferEncodingInOldVersion": "a message of HTTP/1.0 has a Transfer-Encoding",
        "malformedChunkSize": "a chunk does not begin with a valid size in hexadecimal digits",
        "chunkSizeOverflow": "the size of a chunk is not below 2^63, or has more than 16 digits",
        "chunkExtensionsTooLarge": "the extensions of chunks are larger than the limit",
        "malformedChunkEnd": "no line end follows the data of a chunk",
        "trailersTooLarge": "the trailers are larger than the limit",
        "tooManyInformational": "there are more interim responses (1xx) than the limit",
        "prematureEnd": "the connection ended before the message was complete",
        "unexpectedResponse": "the bytes belong to no request",
        "unexpectedUpgrade": "the server switches to another protocol (101), for which it was not asked",
        "bodyLengthMismatch": "the body has more or fewer bytes than announced",
        "illegalState": "the connection is in a state that does not allow this step",
        // HTTP/2.
        "notHTTP2": "the first frame is not SETTINGS, so that this is another protocol than HTTP/2",
        "http2Violation": "a rule of HTTP/2 is broken",
        "http2FlowControl": "a flow-control window of HTTP/2 is exceeded, or grows beyond its range",
        "http2MalformedMessage": "the fields of a message of HTTP/2, their order or its length are not valid",
        "http2Flood": "there are more frames of HTTP/2 without effect than the limit",
        "http2NoStream": "no further stream of HTTP/2 can begin on this connection",
        // QUIC and HTTP/3.
        "quicViolation": "a rule of QUIC is broken",
        "quicFlood": "there are more packets of QUIC without effect than the limit",
        "http3Violation": "a rule of HTTP/3 is broken",
        "http3MalformedMessage": "the fields of a message of HTTP/3, their order or its length are not valid",
        "http3Compression": "the compression of the fields of HTTP/3 is broken",
        "http3Flood": "there are more frames of HTTP/3 without effect than the limit",
        "http3NoStream": "no further stream of HTTP/3 can begin on this connection",
        // URLs.
        "invalidURL": "the text is not a valid URL",
        "invalidHost": "the host is neither a name nor an address",
        "ambiguousAddress":
            "the host ends in a number, but an IPv4 address has four decimal numbers, as in 127.0.0.1 for 127.1",
        "invalidPort": "the port is not a number up to 65535",
        "ambiguousAuthority": "other programs may read another host in this URL",
        "unsupportedScheme": "the scheme is not supported",
        // Content codings.
        "contentDecodingFailed": "the compressed content is damaged, or of another coding than stated",
        "contentDecodingLimit": "the decompressed content is larger than the limit",
        "truncatedContent": "the compressed content ends too early",
        "tooManyCodings": "there are more content codings than the limit",
        // FTP, SOCKS.
        "malformedFTPReply": "the reply is not one of FTP",
        "ftpReplyTooLarge": "the reply of the FTP server is larger than the limit",
        "invalidFTPArgument": "a path, user, password or account has a line break or NUL, which FTP cannot carry",
        "notSOCKS": "the reply is not one of this version of SOCKS",
        "malformedSOCKSReply": "the reply of the SOCKS proxy is not valid",
        "invalidCredential": "the user or the password is one that SOCKS cannot carry",
        // WebSocket.
        "malformedFrame": "a WebSocket frame is not valid",
        "messageTooLarge": "a WebSocket message is larger than the limit",
        "invalidText": "the text of a WebSocket message is not valid UTF-8",
        "webSocketFlood": "there are more WebSocket frames without content than the limit",
        "malformedWebSocketHandshake": "the response to the WebSocket handshake does not match the request",
        // Bodies in parts, events.
        "malformedBoundary": "the media type has no valid boundary of the parts",
        "multipartPreambleTooLarge": "the text before the first part is larger than the limit",
        "multipartEpilogueTooLarge": "the text after the last part is larger than the limit",
        "tooManyParts": "there are more parts than the limit",
        "truncatedMultipart": "the body ends before its last part does",
        "eventLineTooLong": "a line of the event stream is longer than the limit",
        "eventTooLarge": "an event is larger than the limit",
        // The background agent.
        "malformedAgentFrame": "a frame of the background agent's protocol is not valid",
        "agentFrameTooLarge": "a frame of the background agent's protocol is larger than the limit",
        "malformedAgentMessage": "a message of the background agent's protocol is not valid",
        "wrongDescriptorCount": "a frame of the background agent's protocol comes with another number of descriptors",
        "noCommonAgentVersion": "the program and the background agent have no version of their protocol in common",
    ]
}
