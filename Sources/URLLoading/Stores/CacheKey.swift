import URLLoadingWire

/// What responses are looked up by (RFC 9111 §2): the URL in normal form, without user and fragment. What else tells
/// variants apart is in ``StoredResponse/varying``.
struct CacheKey: Hashable, Sendable {
    let text: String

    init(text: String) { self.text = text }

    init(_ target: Target) {
        text = target.origin.description + String(decoding: target.originForm, as: UTF8.self)
    }

    /// `nil` unless it goes to http or https: nothing else is stored.
    init?(_ request: Request) {
        guard case .success(let destination) = request.destination else { return nil }
        self.init(destination.target)
    }
}
