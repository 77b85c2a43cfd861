// From what the caller asked for to what goes on the wire.

import FoundationEssentials
import URLLoadingWire

/// A request with nothing left to decide.
struct PreparedRequest: Sendable {
    let method: Method
    let target: Target
    let headers: Headers
    let body: RequestBody?
    /// The response's content coding was our idea, so it is ours to undo.
    let decodesContent: Bool
    let route: Route

    init(_ request: Request, _ defaults: DefaultFields) throws(LoadError) {
        switch request.target {
        case .success(let target): self.target = target
        case .failure(let violation): throw LoadError(violation, .preparing)
        }
        method = request.method
        body = request.body
        route = Route(origin: target.origin)
        decodesContent = defaults.offersCoding && (request.headers.isEmpty || !request.headers.contains(.acceptEncoding))
        headers = defaults.completing(request.headers)
    }

    var framing: HTTP1BodyFraming {
        guard let body else {
            return .none
        }
        return body.length.map { .length($0) } ?? .chunked
    }
}

/// The fields every request gets unless it sets them itself.
struct DefaultFields: Sendable {
    private let fields: Headers
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
    }

    func completing(_ own: Headers) -> Headers {
        // The common case shares one value with every other request.
        guard !own.isEmpty else { return fields }
        var complete = own
        for field in fields where !own.contains(field.name) { complete.append(field.name, field.value) }
        return complete
    }
}
