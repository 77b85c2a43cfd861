// SPDX-License-Identifier: Apache-2.0

// Malformed messages: stream errors of type H3_MESSAGE_ERROR (RFC 9114 §4.1.2), and frames out of order.

#if HTTP3

extension HTTP3Fault {
    /// Fields that are forbidden in every message (§4.2, §4.3).
    public static let fields: [HTTP3Fault] = HTTP2Fields.malformedHeads.map {
        message($0, malformed, [.headers($1), .data(answer)])
    }

    /// Messages with a wrong structure (§4.1).
    public static let messages: [HTTP3Fault] = [
        message("101", malformed, [.headers([":status": "101", "x": "y"])]),
        message(
            "a length of more than there is", malformed,
            [.headers([":status": "200", "content-length": "3"]), .data(answer)]),
        message(
            "a length of less than there is", malformed,
            [.headers([":status": "200", "content-length": "1"]), .data(answer)]),
        message("a length and no body", malformed, [.headers([":status": "200", "content-length": "2"])]),
        message("an interim response that ends the stream", incomplete, [.headers([":status": "103"])]),
        message("a stream that ends without a response", incomplete, []),
        message("only interim responses, then DATA", unexpected, [.headers([":status": "103"]), .data(answer)]),
        message("DATA before HEADERS", unexpected, [.data(answer)]),
        message("trailers with :status", malformed, [.headers(status), .data(answer), .headers(status)]),
        message(
            "trailers with an upper-case name", malformed, [.headers(status), .data(answer), .headers(["Sum": "1"])]),
        message("DATA after trailers", unexpected, [.headers(status), .headers(["sum": "1"]), .data(answer)]),
        message(
            "HEADERS after trailers", unexpected, [.headers(status), .headers(["sum": "1"]), .headers(["sum": "1"])]),
    ]

    private static let malformed = Outcome.streamFails([.messageError])
    private static let incomplete = Outcome.streamFails()
    static let unexpected = Outcome.connectionFails([.frameUnexpected])
}

#endif
