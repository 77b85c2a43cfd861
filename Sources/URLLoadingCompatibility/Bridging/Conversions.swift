// SPDX-License-Identifier: Apache-2.0

// Conversions between values of the classic API and values of the core.

import Foundation
import URLLoading
import URLLoadingWire

extension Request {
    /// - Parameter policy: the session's cache policy, for requests without one of their own.
    static func make(
        _ request: URLRequest, _ policy: URLRequest.CachePolicy = .useProtocolCachePolicy
    ) -> Result<Request, LoadError> {
        request.made(policy) { convert(request, policy) }
    }

    private static func convert(_ request: URLRequest, _ policy: URLRequest.CachePolicy) -> Result<Request, LoadError> {
        guard let url = request.url, url.scheme != nil else {
            let detail = request.url == nil ? "the request has no URL" : "the URL has no scheme"
            return .failure(
                LoadError(.unsupportedScheme, phase: .preparing, party: .local, url: request.url, detail: detail))
        }
        var made = Request(url: url)
        made.contentDecoding = .always
        made.framingFields = .replaced
        if let method = request.httpMethod, method != "GET" { made.method = Method(method) }
        if let fields = request.allHTTPHeaderFields, !fields.isEmpty { made.headers = Headers(fields) }
        if request.httpBodyStream != nil {
            made.setBody(.provided)
        } else if let body = request.httpBody {
            made.setBody(.data(body))
        }
        made.handlesCookies = request.httpShouldHandleCookies
        made.mainDocumentURL = request.mainDocumentURL
        made.allowsCellularAccess = request.allowsCellularAccess ? nil : false
        made.allowsExpensiveNetworkAccess = request.allowsExpensiveNetworkAccess ? nil : false
        made.allowsConstrainedNetworkAccess = request.allowsConstrainedNetworkAccess ? nil : false
        if let timeout = request.ownTimeout { made.idleTimeout = Duration(timeout: timeout) ?? .seconds(Int64.max) }
        if request.networkServiceType != .default { made.trafficClass = TrafficClass(request.networkServiceType) }
        let own = request.cachePolicy == .useProtocolCachePolicy ? policy : request.cachePolicy
        if own != .useProtocolCachePolicy { made.cachePolicy = Request.CachePolicy(own) }
        let attached = request.properties
        if !attached.isEmpty { made.properties[AttachedProperties.self] = AttachedProperties.Value(attached) }
        return .success(made)
    }
}

extension Request {
    /// Sets the body and the default Content-Type: a non-empty POST body without Content-Type is declared as a form, as
    /// URLSession does; other requests get none.
    mutating func setBody(_ body: RequestBody) {
        var body = body
        body.contentType = nil
        self.body = body
        if body.isEmptyData { return }
        // Only a non-empty body gets a Content-Type; the core writes Content-Length or chunked framing.
        if method == .post, !headers.contains(.contentType) {
            headers[.contentType] = "application/x-www-form-urlencoded"
        }
    }
}

extension Request.CachePolicy {
    init(_ policy: URLRequest.CachePolicy) {
        self =
            switch policy {
            case .useProtocolCachePolicy: .useProtocol
            case .reloadIgnoringLocalCacheData: .reload
            case .reloadIgnoringLocalAndRemoteCacheData: .reloadIgnoringCaches
            case .reloadRevalidatingCacheData: .revalidate
            case .returnCacheDataElseLoad: .cacheElseLoad
            case .returnCacheDataDontLoad: .onlyIfCached
            }
    }
}

extension URLRequest {
    /// Creates the classic request of a redirect. If the redirect keeps the body, it keeps the body of `other`.
    init(_ request: Request, like other: URLRequest) {
        self = other
        url = request.url
        httpMethod = request.method.rawValue
        if request.body == nil { (httpBody, httpBodyStream) = (nil, nil) }
        if let attached = request.properties[AttachedProperties.self] { properties = attached.values }
        var fields: [String: String] = [:]
        for name in request.headers.distinctNames { fields[name.description] = request.headers[name] }
        allHTTPHeaderFields = fields.isEmpty ? nil : fields
    }
}

extension URLRequest {
    /// Returns whether the request still has the body of `other`: neither the body nor the method was changed.
    func hasBody(of other: URLRequest) -> Bool {
        httpMethod == other.httpMethod && httpBody == other.httpBody && httpBodyStream === other.httpBodyStream
    }
}

extension URLResponse {
    static func make(_ response: Response, to method: String?) -> URLResponse {
        if let own = response.properties[OwnResponse.self] { return own.response }
        guard let head = response.http else { return URLResponse(loaded: response) }
        return HTTPURLResponse(response, head, toHead: method == "HEAD")
    }
}

extension Configuration {
    init(_ values: URLSessionConfiguration.Values) {
        self = values.isEphemeral ? .ephemeral : .default
        caching.usesMemoryStore = false
        // Apple's cache has what was loaded without these fields, for requests such as `returnCacheDataElseLoad`.
        caching.storesForAnyAge = true
        loadsOnLoop = true
        caching.store = values.cache?.isPlain == true ? values.cache?.core : nil
        if !values.protocolClasses.isEmpty {
            let kinds = values.protocolClasses.compactMap { $0 as? URLProtocol.Type }
            handlers = [ClassHandler { kinds }]
        }
        foreignCache = values.cache.flatMap { $0.isPlain ? nil : SubclassCache($0) }
        timeouts.idle = Duration(timeout: values.requestTimeout)
        timeouts.resource = Duration(timeout: values.resourceTimeout)
        connections.maximumPerHost = max(1, values.connectionsPerHost)
        // URLSession has no limit of idle connections: it keeps those that it may open.
        connections.maximumIdle = max(connections.maximumIdle, connections.maximumPerHost)
        headers = Headers(values.headers ?? [:])
        if let policy = ProxyPolicy(values.proxies) { networks.proxyPolicy = policy }
        (networks.allowsCellular, networks.allowsExpensive) = (values.allowsCellular, values.allowsExpensive)
        networks.allowsConstrained = values.allowsConstrained
        networks.waitsForConnectivity = values.waitsForConnectivity
        networks.trafficClass = TrafficClass(values.serviceType)
        tls.setVersions(from: values.minimumTLS, to: values.maximumTLS)
        // Without a storage the session has a store of its own, in memory: `nil` is the user's store, of which only the
        // background agent makes use.
        authentication.credentialStore = values.credentials?.store ?? (values.isBackground ? nil : CredentialStore())
        cookies.storage = values.cookies.map { .store($0.store) } ?? .none
        cookies.acceptPolicy = values.acceptPolicy?.core
        cookies.fallbackPolicy = .onlyFromMainDocument
        cookies.sendsCookies = values.setsCookies
        if values.isBackground {
            background = Background(identifier: values.identifier ?? "")
            background?.isDiscretionary = values.isDiscretionary
        }
        values.adjust?(&self)
    }
}

extension Configuration.TLS {
    /// Sets the versions of a classic configuration, which has one setting for all hosts.
    fileprivate mutating func setVersions(from lowest: tls_protocol_version_t, to highest: tls_protocol_version_t) {
        minimumVersion = lowest == .TLSv13 ? .tls13 : .tls12
        maximumVersion = highest == .TLSv12 ? .tls12 : .tls13
        let old: [tls_protocol_version_t: Version] = [.TLSv10: .tls10, .TLSv11: .tls11]
        guard old[lowest] != nil || old[highest] != nil, var all = try? UnsafeConcessions("*") else { return }
        (all.minimumVersion, all.maximumVersion) = (old[lowest], old[highest])
        unsafeConcessions = [all]
    }
}

extension TrafficClass {
    init(_ type: URLRequest.NetworkServiceType) {
        self =
            switch type {
            case .default: .default
            case .background: .background
            case .responsiveData: .responsive
            case .avStreaming: .streaming
            case .responsiveAV: .interactive
            case .video: .video
            case .voice: .voice
            // `.voip` marks call control, not audio.
            case .voip, .networkServiceTypeCallSignaling: .signaling
            }
    }
}

extension Duration {
    /// Creates a duration from a classic timeout; `nil` means no limit.
    init?(timeout: TimeInterval) {
        guard timeout > 0, timeout < 1e9 else { return nil }
        self = .nanoseconds(Int64((timeout * 1e9).rounded(.up)))
    }
}

extension TaskPriority {
    /// Creates a task priority; `nil` for the default, which is the priority of the task that resumes the load.
    init?(_ priority: Float) {
        if priority == URLSessionTask.defaultPriority { return nil }
        self = priority < URLSessionTask.defaultPriority ? .utility : .high
    }
}

/// Carries the properties that `URLProtocol` classes attach to a request through the core.
enum AttachedProperties: PropertyKey {
    struct Value: Sendable {
        // Unsafe: the values are arbitrary objects of the program; the library passes them on without reading them.
        nonisolated(unsafe) let values: [String: Any]
        init(_ values: [String: Any]) { self.values = values }
    }
}

extension LoadError {
    /// Returns the error as the program receives it: the error of a `URLProtocol` of the program unchanged, any other
    /// as `URLError`.
    /// - Parameter ticket: the state from which a failed upload can be resumed.
    func classic(_ ticket: UploadTicket? = nil) -> any Error {
        (underlying as? ProtocolFailure)?.error ?? URLError(self, ticket)
    }
}

extension URLError {
    /// Creates a `URLError`: code of `NSURLErrorDomain`, localized description, diagnostic for logs, and the
    /// `LoadError` as underlying error. Resume data is created when it is read from the error. Until then the partial
    /// download is a temporary file that is deleted with the last copy of the error.
    init(_ error: LoadError, _ ticket: UploadTicket? = nil) {
        var information: [String: Any] = [
            NSUnderlyingErrorKey: error, NSLocalizedDescriptionKey: ErrorSentences.sentence(for: error.code),
            NSDebugDescriptionErrorKey: error.description,
        ]
        // The printed URL of an error has no password; the request keeps it.
        if let url = error.url?.withoutUserinfo {
            information[NSURLErrorFailingURLErrorKey] = url
            // NSURLErrorFailingURLStringErrorKey: deprecated, but older programs read it.
            information["NSErrorFailingURLStringKey"] = url.absoluteString
        }
        if let token = error.resumeToken { information[URLSessionDownloadTaskResumeData] = LazyData { token.data } }
        if let ticket { information[NSURLSessionUploadTaskResumeData] = LazyData { ticket.data } }
        self.init(_nsError: NSError(domain: NSURLErrorDomain, code: error.code, userInfo: information))
    }
}
