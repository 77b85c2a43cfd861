import URLLoadingWire

/// What responses are looked up by (RFC 9111 §2): the URL in normal form, without user and fragment. What else tells
/// variants apart is in ``StoredResponse/varying``, a Host field of the caller's among it: which server answered says
/// the URL alone, so that no server speaks for the host that it was only called by.
struct CacheKey: Hashable, Sendable {
    let text: String

    init(text: String) { self.text = text }

    init(_ target: Target) { self.init(target.origin.scheme, target.hostField, target.originForm) }

    init(_ scheme: String, _ authority: [UInt8], _ path: [UInt8]) {
        text = String(unsafeUninitializedCapacity: scheme.utf8.count + 3 + authority.count + path.count) { room in
            var count = 0
            for byte in scheme.utf8 { (room[count], count) = (byte, count + 1) }
            for byte in "://".utf8 { (room[count], count) = (byte, count + 1) }
            for byte in authority { (room[count], count) = (byte, count + 1) }
            for byte in path { (room[count], count) = (byte, count + 1) }
            return count
        }
    }

    /// `nil` unless it goes to http or https: nothing else is stored.
    init?(_ request: Request) {
        guard case .success(let destination) = request.destination else { return nil }
        self.init(destination.target)
    }
}
