// From options to what the library takes.

import FoundationEssentials
import URLLoading

extension Configuration {
    init(_ options: Options, _ screen: Screen, _ archiver: HTTPArchiver? = nil) {
        self = .ephemeral
        if let limit = options.idleTimeout { idleTimeout = limit }
        if let limit = options.totalTimeout { resourceTimeout = limit }
        if let count = options.maximumConnections { maximumConnectionsPerHost = count }
        if let count = options.maximumRedirects { maximumRedirects = count }
        if let agent = options.userAgent { userAgent = agent.isEmpty ? nil : agent } else { userAgent = "urlload/0.1" }
        if !options.acceptsCompressed { acceptEncoding = nil }
        if let text = options.rootsText { tls.roots = .pem(text) }
        if let path = options.rootsFile { tls.roots = .file(path) }
        if let version = options.minimumTLS { tls.minimumVersion = version }
        if let version = options.maximumTLS { tls.maximumVersion = version }
        tls.minimumVersion = min(tls.minimumVersion, tls.maximumVersion)
        tls.unsafelySkipsVerification = options.isInsecure
        if options.trace != .off { wireTap = { screen.show($0) } }
        if let archiver { observers.append(archiver) }
        if options.printsJSON { observers.append(Watch.Observer()) }
    }
}

extension Request {
    init(_ options: Options, _ url: URL) throws(OutputError) {
        let body = try UploadBody.make(options.payloads)
        self.init(
            url: url, method: options.method ?? (options.asksForHead ? .head : body == nil ? .get : .post),
            headers: options.fields, body: body)
        if body != nil, !headers.contains(.contentType) {
            headers[.contentType] = "application/x-www-form-urlencoded"
        }
    }
}
