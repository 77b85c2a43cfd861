// Streams of a session.

package import URLLoadingIO
package import URLLoadingWire

extension Session {
    /// Makes a stream that connects when it is resumed. Synchronous, from any thread.
    ///
    /// ```swift
    /// let task = session.streamTask(host: "mail.example.org", port: 993, secure: true)
    /// task.resume()
    /// let (greeting, _) = try await task.read()
    /// ```
    /// - Parameters:
    ///   - host: a name or an address; an IPv6 address with or without its brackets.
    ///   - port: 1 to 65535.
    ///   - secure: whether TLS is spoken from the beginning; the certificate must name the host. Later it
    ///     begins with ``StreamTask/startSecureConnection()``.
    /// - Returns: a suspended stream. If the session was invalidated it is one that has failed with
    ///   ``LoadError/Reason/sessionInvalidated``; with ``LoadError/Reason/badURL`` if host or port are none.
    public nonisolated func streamTask(host: String, port: Int, secure: Bool = false) -> StreamTask {
        StreamTask(StreamDriver(core, Origin(streamTo: host, port: port), isSecure: secure), self)
    }

    /// For the classic shape, which holds its session.
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
    /// Nothing else than an IPv6 address has colons; its zone is not encoded outside of URLs (RFC 4007 §11).
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

extension StreamTask {
    /// A stream over a connection that was used for something else. Suspended until ``resume()``.
    /// - Parameters:
    ///   - transport: belongs to the stream from now on, which closes it.
    ///   - received: what came over it and was not for the former user: read first.
    ///   - isSecure: whether it is a TLS connection.
    ///   - origin: who is there; a certificate must name its host.
    ///   - session: if it was invalidated, the transport is closed.
    package convenience init(
        adopting transport: any Transport, buffered received: Chunk?, isSecure: Bool, origin: Origin, session: Session
    ) {
        self.init(
            StreamDriver(session.core, origin, isSecure: isSecure, adopting: transport, buffered: received), session)
    }
}
