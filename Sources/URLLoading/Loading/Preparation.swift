// From what the caller asked for to what goes on the wire.

import FoundationEssentials
import URLLoadingWire

/// A request with nothing left to decide.
struct PreparedRequest: Sendable {
    let request: Request
    let destination: Destination
    /// The caller's fields and the defaults it did not set.
    let headers: Headers
    /// The response's content coding was our idea, so it is ours to undo.
    let decodesContent: Bool

    /// - Parameter isForeign: a redirect has led to another origin than the one the caller named.
    init(_ request: Request, _ defaults: DefaultFields, isForeign: Bool) throws(LoadError) {
        switch request.destination {
        case .success(let destination): self.destination = destination
        case .failure(let violation): throw LoadError(violation, .preparing)
        }
        self.request = request
        let own = request.headers
        decodesContent = defaults.offersCoding && (own.isEmpty || !own.choosesCoding)
        headers = defaults.completing(own, isForeign: isForeign)
    }

    var framing: HTTP1BodyFraming {
        guard let body = request.body else { return .none }
        return body.length.map { .length($0) } ?? .chunked
    }
}

/// The fields every request gets unless it sets them itself.
final class DefaultFields: Sendable {
    private let fields: Headers
    /// The same for origins that a redirect led to: session-wide credentials are not theirs either.
    private let foreignFields: Headers
    let offersCoding: Bool

    init(_ configuration: Configuration) {
        var fields = configuration.headers
        func add(_ name: FieldName, _ value: String?) {
            if let value, !fields.contains(name) { fields.append(name, value) }
        }
        offersCoding = configuration.acceptEncoding != nil && !fields.contains(.acceptEncoding)
        add(.accept, "*/*")
        add(.acceptEncoding, configuration.acceptEncoding)
        add(.userAgent, configuration.userAgent)
        self.fields = fields
        // Nor is it told where the caller came from.
        for name in FieldName.personal + [.referer] { fields.remove(name) }
        foreignFields = fields
    }

    func completing(_ own: Headers, isForeign: Bool) -> Headers {
        // The common case shares one value with every other request.
        let fields = isForeign ? foreignFields : fields
        guard !own.isEmpty else { return fields }
        var complete = own
        for field in fields where !own.contains(field.name) {
            if field.name == .acceptEncoding, own.choosesCoding { continue }
            complete.append(field.name, field.value)
        }
        return complete
    }
}

extension FieldName {
    /// What proves to one server who we are, and its name: never for another.
    static let personal: [FieldName] = [.authorization, .cookie, .proxyAuthorization, .host]
}

extension Headers {
    /// Whether the coding of the answer is no longer ours to choose. A range of a coded
    /// representation could not be decoded (RFC 9110 §14.2).
    fileprivate var choosesCoding: Bool { contains(.acceptEncoding) || contains(.range) }
}
