// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingIO
public import URLLoadingWire

/// Signs requests with AWS Signature Version 4, for AWS and for compatible services.
///
/// ```swift
/// let signer = AWSSigner(credentials: try await .find(), region: "eu-central-1", service: "s3")
/// var decisions = Decisions()
/// decisions.sign = signer.decision
/// ```
/// The fields Authorization, X-Amz-Date and, for S3, X-Amz-Content-SHA256 are added to each request; with temporary
/// credentials X-Amz-Security-Token, too. Signed are the host and all fields but those that proxies change or that say
/// nothing about the request: Accept, Accept-Encoding, Accept-Language, Cache-Control, Content-Length, Cookie, Expect,
/// Pragma, Priority, Referer, User-Agent, X-Amzn-Trace-Id and Authorization, beside which no signature can stand.
public struct AWSSigner: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What is signed of the body.
    public enum Payload: Sendable, Hashable {
        /// Its SHA-256. The body is read before it is sent; a sequence cannot be.
        case signed
        /// Nothing: it is `UNSIGNED-PAYLOAD`, for services that accept that. Use it with https only.
        case unsigned
    }

    /// Where the signature stands.
    public enum Placement: Sendable, Hashable {
        /// In fields.
        case headers
        /// In the query, as in a presigned URL, valid for this time: a second to seven days.
        case query(expires: Duration)
    }

    /// What is signed of the body.
    public var payload = Payload.signed
    /// Where the signature stands.
    public var placement = Placement.headers
    /// Whether the SHA-256 of a body that can be read twice is stated in X-Amz-Checksum-SHA256 as well, which S3
    /// compares with what it has received and keeps with the object; false by default. Only in ``Placement/headers``.
    public var statesChecksum = false

    /// The region, such as `eu-central-1`.
    public let region: String
    /// The service, such as `s3`.
    public let service: String

    private let credentials: @Sendable () async throws -> AWSCredentials
    private let origins: SignerOrigins
    package var names = Names()

    /// The names of a provider in algorithm, fields and scope.
    package struct Names: Sendable, Hashable {
        /// `aws` in `AWS4-HMAC-SHA256` and `aws4_request`.
        package var vendor = "aws"
        /// `amz` in `X-Amz-Date`.
        package var prefix = "amz"

        package init() {}
        package init(vendor: String, prefix: String) {
            (self.vendor, self.prefix) = (vendor.lowercased(), prefix.lowercased())
        }

        var algorithm: String { "\(vendor.uppercased())4-HMAC-SHA256" }
        var terminator: String { "\(vendor)4_request" }
        func field(_ name: String) -> String { "X-\(prefix.prefix(1).uppercased())\(prefix.dropFirst())-\(name)" }
    }

    /// Creates a signer.
    /// - Parameters:
    ///   - credentials: called for each signature. It may keep temporary credentials until they expire. All of them
    ///     must be of one account: the cache knows a signer by its ``decision``, and would serve what one account
    ///     received to the next. Make another signer, and another decision, for another account.
    ///   - region: the region, such as `eu-central-1`.
    ///   - service: the service, such as `s3`.
    ///   - origins: the only origins whose requests are signed, as in `https://bucket.s3.amazonaws.com`. After
    ///     redirects they are signed if all origins of the load are listed, from the caller's on. `nil`, the default,
    ///     signs all requests but those after a redirect to another origin.
    /// - Throws: ``LoadError/Reason/badURL`` for an origin that is not http or https.
    public init(
        region: String, service: String, origins: [String]? = nil,
        credentials: @escaping @Sendable () async throws -> AWSCredentials
    ) throws(LoadError) {
        self.region = region
        self.service = service
        self.credentials = credentials
        self.origins = if let origins { try SignerOrigins(origins) } else { .ofCaller }
    }

    /// Creates a signer of all requests but those to another origin after a redirect.
    public init(credentials: AWSCredentials, region: String, service: String) {
        self.region = region
        self.service = service
        self.credentials = { credentials }
        origins = .ofCaller
    }

    /// The decision that signs with this value. Each call makes a decision of its own, and the cache keeps responses
    /// for one decision: take it once for each account, for its session or its loads, and another for another account.
    public var decision: Decision<SigningRequest, RequestSignature> {
        Decision { request in try await self.signature(of: request) }
    }

    /// Returns the signature of a request; an empty one for a request to an origin that is not signed for.
    /// - Throws: ``LoadError/Reason/cannotSign``; the errors of ``SigningRequest/bodyDigest(_:)`` and of the closure
    ///   with credentials.
    public func signature(of request: SigningRequest) async throws -> RequestSignature {
        try await signed(request).signature
    }

    /// Returns the signature of a request, and the chain that the chunks of its body may continue.
    func signed(_ request: SigningRequest) async throws -> (signature: RequestSignature, chain: AWSChunkChain?) {
        guard origins.contains(request) else { return (.none, nil) }
        let (given, payloadField) = (request.headers, FieldName(names.field("Content-SHA256")))
        // A service refuses a request with two signatures, such as that of a presigned URL beside another.
        guard !request.target.contains(names.field("Signature") + "=") else {
            throw LoadError.cannotSign("the URL has a signature already")
        }
        let checksumField = FieldName(names.field("Checksum-SHA256"))
        let addsChecksum =
            statesChecksum && placement == .headers && request.body.isRepeatable && !given.contains(checksumField)
        let word = given[payloadField] ?? (isUnsigned ? "UNSIGNED-PAYLOAD" : nil)
        let digest = addsChecksum || word == nil ? try await request.bodyDigest(.sha256).bytes : []
        let payload = word ?? DigestHash.hexDigits(of: digest)
        let credentials = try await credentials()
        // A security token that the caller has set is signed with the other fields.
        let own = [names.field("Date")] + (credentials.sessionToken == nil ? [] : [names.field("Security-Token")])
        for name in own where given.contains(FieldName(name)) {
            throw LoadError.cannotSign("the request has the field \(name) already")
        }
        let signing = Signing(
            names: names, credentials: credentials, region: region, service: service, date: request.date)
        var fields = [(name: "host", value: request.authority)]
        for field in given where !Self.unsigned.contains(field.name) { fields.append(("\(field.name)", field.value)) }
        let canonical = Canonical(
            method: request.method.rawValue, target: request.target, fields: fields, payload: payload,
            rule: isStorage ? .asSent : .normalized)
        switch placement {
        case .headers:
            let statesPayload = (isStorage || isUnsigned) && !given.contains(payloadField)
            var more = Headers()
            if addsChecksum { more.append(checksumField, Base64.encode(digest)) }
            return try signing.headers(canonical, statesPayload: statesPayload, more)
        case .query(let expires): return (try signing.query(canonical, expires: expires), nil)
        }
    }

    /// Returns a URL with a signature in its query, for a request that has no other fields than Host.
    ///
    /// ```swift
    /// let link = try await signer.presigned(url, expires: .seconds(3600))
    /// ```
    /// - Parameters:
    ///   - url: an absolute URL of http or https.
    ///   - method: the method of the request.
    ///   - expires: how long the URL can be used: a second to seven days.
    ///   - date: the time from which it can be used.
    /// - Throws: ``LoadError/Reason/badURL``, ``LoadError/Reason/cannotSign``; the errors of the closure with
    ///   credentials.
    public func presigned(
        _ url: URL, method: Method = .get, expires: Duration, at date: Date = .now
    ) async throws -> URL {
        let target: Target
        do throws(WireViolation) { target = try Target(url.absoluteString) } catch {
            throw LoadError(error, .preparing)
        }
        var signer = self
        signer.placement = .query(expires: expires)
        let line = SigningRequest.Line(
            method: method, url: url, authority: String(decoding: target.hostField, as: UTF8.self),
            target: String(decoding: target.originForm, as: UTF8.self))
        let signature = try await signer.signature(of: SigningRequest(line, headers: Headers(), date: date))
        // Origins that are not signed for have an empty signature, which would be a URL without one.
        guard !signature.isEmpty else { throw LoadError.cannotSign("the signer is not for \(target.origin)") }
        guard let signed = URL(string: QueryItems.append(signature.queryItems, to: url.absoluteString)) else {
            throw LoadError(.badURL, phase: .preparing, party: .local)
        }
        return signed
    }

    private static let unsigned: Set<FieldName> = [
        .accept, .acceptEncoding, .acceptLanguage, .authorization, .cacheControl, .contentLength, .cookie, .expect,
        .pragma, "Priority", .referer, .userAgent, "X-Amzn-Trace-Id",
    ]

    /// Whether the service has S3's rules for paths and payloads.
    private var isStorage: Bool {
        ["s3", "s3express", "s3-object-lambda", "s3-outposts"].contains(service.lowercased())
    }

    private var isUnsigned: Bool {
        if case .query = placement, isStorage { return true }
        return payload == .unsigned
    }

    /// `signer for s3 in eu-central-1`.
    public var description: String { "signer for \(service) in \(region)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["region": region, "service": service]) }
}

/// What a canonical request is made of.
private struct Canonical {
    let method: String
    let target: String
    var fields: [(name: String, value: String)]
    let payload: String
    let rule: AWSCanonicalRequest.PathRule

    func text(_ target: String) -> String {
        AWSCanonicalRequest.text(method: method, target: target, fields: fields, payload: payload, rule: rule)
    }
}

/// One use of credentials: at one time, in one scope.
private struct Signing {
    let names: AWSSigner.Names
    let credentials: AWSCredentials
    let region: String
    let service: String
    let time: String

    init(names: AWSSigner.Names, credentials: AWSCredentials, region: String, service: String, date: Date) {
        self.names = names
        self.credentials = credentials
        self.region = region
        self.service = service
        let style = Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted, timeZone: .gmt)
        // Whole seconds, because the style rounds.
        time = Date(timeIntervalSince1970: Double(date.wholeSeconds)).formatted(style)
    }

    private var day: String { String(time.prefix(8)) }
    private var scope: String { "\(day)/\(region)/\(service)/\(names.terminator)" }

    func headers(
        _ canonical: Canonical, statesPayload: Bool, _ more: Headers
    ) throws(LoadError) -> (signature: RequestSignature, chain: AWSChunkChain?) {
        var added = more
        added.append(FieldName(names.field("Date")), time)
        if statesPayload { added.append(FieldName(names.field("Content-SHA256")), canonical.payload) }
        if let token = credentials.sessionToken { added.append(FieldName(names.field("Security-Token")), token) }
        var canonical = canonical
        for field in added { canonical.fields.append(("\(field.name)", field.value)) }
        let key = try key
        let signature = try signature(of: canonical.text(canonical.target), key)
        added.append(
            .authorization,
            "\(names.algorithm) Credential=\(credentials.accessKey)/\(scope), "
                + "SignedHeaders=\(AWSCanonicalRequest.names(canonical.fields)), Signature=\(signature)")
        let chain = AWSChunkChain(
            algorithm: names.algorithm, time: time, scope: scope, key: key, previous: signature)
        return (RequestSignature(headers: added), chain)
    }

    func query(_ canonical: Canonical, expires: Duration) throws(LoadError) -> RequestSignature {
        guard expires >= .seconds(1), expires < .seconds(7 * 24 * 3600 + 1) else {
            throw .cannotSign("a signature in the query is valid for a second to seven days")
        }
        var items = [
            URLQueryItem(name: names.field("Algorithm"), value: names.algorithm),
            URLQueryItem(name: names.field("Credential"), value: "\(credentials.accessKey)/\(scope)"),
            URLQueryItem(name: names.field("Date"), value: time),
            URLQueryItem(name: names.field("Expires"), value: "\(expires.components.seconds)"),
            URLQueryItem(
                name: names.field("SignedHeaders"), value: AWSCanonicalRequest.names(canonical.fields)),
        ]
        if let token = credentials.sessionToken {
            items.append(URLQueryItem(name: names.field("Security-Token"), value: token))
        }
        let signature = try signature(of: canonical.text(QueryItems.append(items, to: canonical.target)), key)
        items.append(URLQueryItem(name: names.field("Signature"), value: signature))
        return RequestSignature(queryItems: items)
    }

    /// The key of one day, region and service.
    private var key: [UInt8] {
        get throws(LoadError) {
            var key = Array("\(names.vendor.uppercased())4\(credentials.secretKey)".utf8)
            for part in [day, region, service, names.terminator] { key = try Self.code(key, part) }
            return key
        }
    }

    private func signature(of canonical: String, _ key: [UInt8]) throws(LoadError) -> String {
        guard let hash = DigestHash.sha256.hex(Array(canonical.utf8)) else { throw Self.unavailable }
        let text = [names.algorithm, time, scope, hash].joined(separator: "\n")
        return DigestHash.hexDigits(of: try Self.code(key, text))
    }

    private static func code(_ key: [UInt8], _ text: String) throws(LoadError) -> [UInt8] {
        guard let code = MessageKey.hmac(key, Array(text.utf8)) else { throw unavailable }
        return code
    }

    private static var unavailable: LoadError { .cannotSign("HMAC-SHA256 is not available") }
}
