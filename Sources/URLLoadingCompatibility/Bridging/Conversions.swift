// Between the values of the classic shape and those of the core.

import Foundation
import URLLoading
import URLLoadingWire

extension Request {
    /// - Parameter policy: of the session, for requests that have none of their own.
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
    /// A POST that does not say what it sends sends a form, as this shape always did; others, and empty bodies, say nothing.
    mutating func setBody(_ body: RequestBody) {
        var body = body
        body.contentType = nil
        self.body = body
        if body.isEmptyData { return }
        // The stream is chunked, or as long as this says: either is the core's to write.
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
    /// What a redirect makes of a request. A body, where there still is one, is the same.
    init(_ request: Request, like other: URLRequest) {
        self = other
        url = request.url
        httpMethod = request.method.rawValue
        if request.body == nil { (httpBody, httpBodyStream) = (nil, nil) }
        if let attached = request.properties[AttachedProperties.self] { properties = attached.values }
        var fields: [String: String] = [:]
        for field in request.headers { fields[field.name.description] = request.headers[field.name] }
        allHTTPHeaderFields = fields.isEmpty ? nil : fields
    }
}

extension URLRequest {
    /// Nobody has put another body into its place, or a method that has none.
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
        cachesInMemory = false
        cache = values.cache?.isPlain == true ? values.cache?.core : nil
        if !values.protocolClasses.isEmpty {
            let kinds = values.protocolClasses.compactMap { $0 as? URLProtocol.Type }
            handlers = [ClassHandler { kinds }]
        }
        foreignCache = values.cache.flatMap { $0.isPlain ? nil : AskedCache($0) }
        idleTimeout = Duration(timeout: values.requestTimeout)
        resourceTimeout = Duration(timeout: values.resourceTimeout)
        maximumConnectionsPerHost = max(1, values.connectionsPerHost)
        let fields = (values.headers ?? [:]).map { ("\($0.key.base)", "\($0.value)") }
        headers = Headers(Dictionary(fields) { first, _ in first })
        if let policy = ProxyPolicy(values.proxies) { proxyPolicy = policy }
        (allowsCellularAccess, allowsExpensiveNetworkAccess) = (values.allowsCellular, values.allowsExpensive)
        allowsConstrainedNetworkAccess = values.allowsConstrained
        waitsForConnectivity = values.waitsForConnectivity
        trafficClass = TrafficClass(values.serviceType)
        tls.minimumVersion = values.minimumTLS == .TLSv13 ? .tls13 : .tls12
        tls.maximumVersion = values.maximumTLS == .TLSv12 ? .tls12 : .tls13
        authentication.credentialStore = values.credentials?.store
        cookies.storage = values.cookies.map { .store($0.store) } ?? .none
        cookies.acceptPolicy = values.acceptPolicy?.core
        cookies.fallbackPolicy = .onlyFromMainDocument
        cookies.sendsCookies = values.setsCookies
        values.adjust?(&self)
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
            // VoIP's control, not its sound.
            case .voip, .networkServiceTypeCallSignaling: .signaling
            }
    }
}

extension Duration {
    /// `nil` for no limit.
    init?(timeout: TimeInterval) {
        guard timeout > 0, timeout < 1e9 else { return nil }
        self = .nanoseconds(Int64((timeout * 1e9).rounded(.up)))
    }
}

extension TaskPriority {
    /// `nil` for the priority of the task that resumes the load.
    init?(_ priority: Float) {
        if priority == URLSessionTask.defaultPriority { return nil }
        self = priority < URLSessionTask.defaultPriority ? .utility : .high
    }
}

/// What protocols have attached to a request, on its way through the core.
enum AttachedProperties: PropertyKey {
    // Unchecked: the values are any that the program has attached; the library passes them on and reads none.
    struct Value: @unchecked Sendable {
        let values: [String: Any]
        init(_ values: [String: Any]) { self.values = values }
    }
}

extension LoadError {
    /// As the program hears it: what a protocol of its own failed with, as that is.
    /// - Parameter ticket: with what an upload goes on.
    func classic(_ ticket: UploadTicket? = nil) -> any Error {
        (underlying as? ProtocolFailure)?.error ?? URLError(self, ticket)
    }
}

extension URLError {
    /// The number of the reason in `NSURLErrorDomain`, a sentence for people, the diagnostic for logs, and the `LoadError`
    /// beneath it. Resume data is made when it is read from the error, and no file is kept before: a partial download goes
    /// with the last copy of its error.
    init(_ error: LoadError, _ ticket: UploadTicket? = nil) {
        var information: [String: Any] = [
            NSUnderlyingErrorKey: error, NSLocalizedDescriptionKey: ErrorSentences.sentence(for: error.code),
            NSDebugDescriptionErrorKey: error.description,
        ]
        // What is printed of an error has no password; the request has it still.
        if let url = error.url?.withoutUserinfo {
            information[NSURLErrorFailingURLErrorKey] = url
            // NSURLErrorFailingURLStringErrorKey: deprecated, and read by old programs.
            information["NSErrorFailingURLStringKey"] = url.absoluteString
        }
        if let token = error.resumeToken { information[URLSessionDownloadTaskResumeData] = LazyData { token.data } }
        if let ticket { information[NSURLSessionUploadTaskResumeData] = LazyData { ticket.data } }
        self.init(_nsError: NSError(domain: NSURLErrorDomain, code: error.code, userInfo: information))
    }
}
