// SPDX-License-Identifier: Apache-2.0

/// A message as signatures see it (RFC 9421 §2): the values of its components.
package struct SignatureMessage: Sendable {
    /// A request without its body and its trailers, which are sent after the signature.
    package struct Request: Sendable {
        package let method: String
        package let scheme: String
        /// The value of Host or `:authority`.
        package let authority: String
        /// The request target in origin form.
        package let target: String
        package let headers: Headers

        package init(method: String, scheme: String, authority: String, target: String, headers: Headers) {
            self.method = method
            self.scheme = scheme
            self.authority = authority
            self.target = target
            self.headers = headers
        }
    }

    private enum Own: Sendable {
        case request(Request)
        case response(status: Int, Headers, trailers: Headers)
    }

    private let own: Own
    /// The request that the response answers, for components with `req`; nil if it is not known.
    private let answered: Request?

    package init(_ request: Request) { (own, answered) = (.request(request), nil) }

    /// - Parameter trailers: the trailer fields of the response, as far as they are known.
    package init(status: Int, _ headers: Headers, trailers: Headers = Headers(), answering request: Request?) {
        (own, answered) = (.response(status: status, headers, trailers: trailers), request)
    }

    /// - Parameter parsed: the dictionaries that other components of the same base have parsed, by the names of their
    ///   fields.
    func value(
        of component: SignatureComponentID, _ identifier: String, _ parsed: inout [String: [StructuredField.Entry]]
    ) throws(SignatureBase.Problem) -> String {
        let request: Request?
        if component.has("req") {
            guard case .response = own, answered != nil else { throw .missing(identifier) }
            request = answered
        } else if case .request(let own) = own {
            request = own
        } else {
            request = nil
        }
        guard component.name.hasPrefix("@") else {
            let headers = component.has("tr") ? trailers(of: request) : request?.headers ?? ownHeaders
            return try Self.field(component, in: headers, identifier, &parsed)
        }
        if component.name == "@status", request == nil, case .response(let status, _, _) = own {
            guard component.parameters.isEmpty else { throw .unsupported(identifier) }
            return "\(status)"
        }
        guard let request else { throw .missing(identifier) }
        return try request.derived(component, identifier)
    }

    private var ownHeaders: Headers {
        switch own {
        case .request(let request): request.headers
        case .response(_, let headers, _): headers
        }
    }

    private func trailers(of request: Request?) -> Headers {
        if request == nil, case .response(_, _, let trailers) = own { trailers } else { Headers() }
    }

    // MARK: Fields

    /// The fields with the type of a dictionary, whose strict form is known (§2.1.1).
    private static let dictionaries: Set<String> = [
        "content-digest", "repr-digest", "want-content-digest", "want-repr-digest", "signature", "signature-input",
        "accept-signature", "priority", "upload-limit", "cdn-cache-control",
    ]

    private static func field(
        _ component: SignatureComponentID, in headers: Headers, _ identifier: String,
        _ parsed: inout [String: [StructuredField.Entry]]
    ) throws(SignatureBase.Problem) -> String {
        guard component.hasOnly(flags: ["sf", "bs", "tr"], strings: ["key"]) else { throw .unsupported(identifier) }
        let name = FieldName(component.name)
        let key = component.string("key")
        if component.has("bs") {
            guard key == nil, !component.has("sf") else { throw .unsupported(identifier) }
            let lines = headers.byteValues(of: name)
            guard !lines.isEmpty else { throw .missing(identifier) }
            return lines.map { StructuredField.text($0) }.joined(separator: ", ")
        }
        let lines = headers.values(of: name)
        guard !lines.isEmpty else { throw .missing(identifier) }
        let text = lines.joined(separator: ", ")
        guard key != nil || component.has("sf") else { return text }
        guard dictionaries.contains(component.name) else { throw .unsupported(identifier) }
        // A field of the request, and a trailer, may have the name of another field.
        let place = ["req", "tr"].filter(component.has).joined() + " \(component.name)"
        guard let entries = parsed[place] ?? StructuredField.dictionary(text) else { throw .unwritable(identifier) }
        parsed[place] = entries
        let strict: String?
        if let key {
            guard let entry = entries.first(where: { $0.key == key }) else { throw .missing(identifier) }
            strict = StructuredField.text(entry.member)
        } else {
            strict = StructuredField.text(entries)
        }
        guard let strict else { throw .unwritable(identifier) }
        return strict
    }
}

extension SignatureMessage.Request {
    /// Returns the value of a derived component of a request (§2.2).
    fileprivate func derived(
        _ component: SignatureComponentID, _ identifier: String
    ) throws(SignatureBase.Problem) -> String {
        if component.name == "@query-param" {
            guard component.hasOnly(strings: ["name"]), let name = component.string("name") else {
                throw .unsupported(identifier)
            }
            return try parameter(name, identifier)
        }
        guard component.hasOnly() else { throw .unsupported(identifier) }
        switch component.name {
        case "@method": return method
        case "@scheme": return scheme
        case "@authority": return normalAuthority
        case "@target-uri": return "\(scheme)://\(normalAuthority)\(target)"
        case "@request-target": return target
        case "@path":
            let path = target.prefix { $0 != "?" }
            return path.isEmpty ? "/" : String(path)
        case "@query": return "?\(query ?? "")"
        case "@status": throw .missing(identifier)
        default: throw .unsupported(identifier)
        }
    }

    private var query: Substring? { target.firstIndex(of: "?").map { target[target.index(after: $0)...] } }

    /// §2.2.3: in lower case, without the default port.
    private var normalAuthority: String {
        let lowered = authority.lowercasedASCII
        guard let port = Origin.defaultPort(of: scheme), lowered.hasSuffix(":\(port)") else { return lowered }
        return String(lowered.dropLast("\(port)".count + 1))
    }

    /// §2.2.8: a parameter that occurs once, decoded as a form and encoded again.
    private func parameter(_ name: String, _ identifier: String) throws(SignatureBase.Problem) -> String {
        var found: [String] = []
        for pair in (query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard Self.reencoded(parts[0]) == name else { continue }
            found.append(Self.reencoded(parts.count > 1 ? parts[1] : ""))
        }
        guard let value = found.first else { throw .missing(identifier) }
        guard found.count == 1 else { throw .repeated(identifier) }
        return value
    }

    private static func reencoded(_ text: Substring) -> String {
        FormCoding.encoded(FormCoding.decoded(text)).replacing("+", with: "%20")
    }
}

extension Headers {
    /// Returns the values of `name` as they were sent, one for each field.
    fileprivate func byteValues(of name: FieldName) -> [[UInt8]] {
        entries.indices.filter { has(name, at: $0) }.map { index in withField(at: index) { Array($1) } }
    }
}
