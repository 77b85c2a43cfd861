// SPDX-License-Identifier: Apache-2.0

extension Headers {
    /// The length that all Content-Length fields state, as a message on the wire is read: `5, 5` states 5 (RFC 9110
    /// §8.6). `nil` without such a field, for different lengths, and for anything that is not a number of bytes.
    package var contentLength: Int64? { try? HTTP1Framing.contentLength(self, .remote) }
}
