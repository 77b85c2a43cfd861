import URLLoadingWire

extension CacheKey {
    /// Scheme, host and port in normal form, then path and query as they are sent: two spellings of one path are two
    /// keys, which costs a fetch and never serves the wrong answer (RFC 9111 §2, RFC 9110 §4.2.3).
    init(_ destination: Destination) {
        let target = destination.target
        let scheme = target.origin.scheme, host = target.hostField, path = target.originForm
        text = String(unsafeUninitializedCapacity: scheme.utf8.count + 3 + host.count + path.count) { room in
            var count = 0
            for byte in scheme.utf8 { room[count] = byte; count += 1 }
            for byte in "://".utf8 { room[count] = byte; count += 1 }
            for byte in host { room[count] = byte; count += 1 }
            for byte in path { room[count] = byte; count += 1 }
            return count
        }
    }

    /// `nil` for what is neither http nor https, or no URL that could be loaded.
    init?(_ request: Request) {
        guard case .success(let destination) = request.destination else { return nil }
        self.init(destination)
    }
}
