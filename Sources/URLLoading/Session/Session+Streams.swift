// SPDX-License-Identifier: Apache-2.0

// Streams of a session.

import URLLoadingWire

extension Session {
    /// Creates a stream that connects when it is resumed. Synchronous; may be called from any thread.
    ///
    /// ```swift
    /// let task = session.streamTask(host: "mail.example.org", port: 993, secure: true)
    /// task.resume()
    /// let (greeting, _) = try await task.read()
    /// ```
    /// - Parameters:
    ///   - host: a name or an address; an IPv6 address with or without its brackets.
    ///   - port: 1 to 65535.
    ///   - secure: whether TLS is used from the beginning; the certificate must name the host. A later start of TLS is
    ///     ``StreamTask/startSecureConnection()``.
    /// - Returns: a suspended stream. It has already failed with ``LoadError/Reason/sessionInvalidated`` if the session
    ///   was invalidated, or with ``LoadError/Reason/badURL`` if host or port are invalid.
    public nonisolated func streamTask(host: String, port: Int, secure: Bool = false) -> StreamTask {
        StreamTask(StreamDriver(core, Origin(streamTo: host, port: port), isSecure: secure), self)
    }

    /// Creates a stream for the classic API, which holds its session.
    package nonisolated func streamTask(holdingSessionTo host: String, port: Int) -> StreamTask {
        StreamTask(StreamDriver(core, Origin(streamTo: host, port: port), isSecure: false, holdsSession: true), self)
    }
}

extension Origin {
    fileprivate init?(streamTo text: String, port: Int) {
        guard let port = UInt16(exactly: port), port > 0, let host = Origin.Host(loosely: text),
            let origin = try? Origin(scheme: "tcp", host: host, port: port)
        else { return nil }
        self = origin
    }
}

extension Origin.Host {
    /// Only IPv6 addresses contain colons; their zone is not percent-encoded outside of URLs (RFC 4007 §11).
    fileprivate init?(loosely text: String) {
        var text = text
        if text.contains(":"), !text.hasPrefix("[") {
            let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
            text = "[" + parts.joined(separator: "%25") + "]"
        }
        guard let host = try? Origin.Host(text) else { return nil }
        self = host
    }
}
