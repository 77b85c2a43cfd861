// From options to what the library takes.

import FoundationEssentials
import URLLoading

extension Configuration {
    init(_ options: Options, _ screen: Screen, _ archiver: HTTPArchiver? = nil) {
        self = .ephemeral
        if let limit = options.idleTimeout { idleTimeout = limit }
        connectTimeout = options.connectTimeout
        if let limit = options.expectContinueTimeout { expectContinueTimeout = limit }
        if let limit = options.totalTimeout { resourceTimeout = limit }
        if let count = options.maximumConnections { maximumConnectionsPerHost = count }
        httpVersions = options.httpVersions
        ftp = options.ftp
        if let count = options.maximumRedirects { maximumRedirects = count }
        if let agent = options.userAgent { userAgent = agent.isEmpty ? nil : agent } else { userAgent = "urlload/0.1" }
        if !options.decodes { acceptEncoding = nil }
        if let text = options.rootsText { tls.trustRoots = .pem(text) }
        if let path = options.rootsFile { tls.trustRoots = .file(path) }
        if let version = options.minimumTLS { tls.minimumVersion = version }
        if let version = options.maximumTLS { tls.maximumVersion = version }
        tls.minimumVersion = min(tls.minimumVersion, tls.maximumVersion)
        tls.unsafelySkipsVerification = options.isInsecure
        // What cannot be was refused when the command line was read.
        if let policy = try? options.way.policy() { proxyPolicy = policy }
        addressOverrides = AddressOverrides(options.way.overrides)
        networkInterface = options.way.interface
        authentication = options.login.settings(options.urls.compactMap { AddressText.url($0) })
        cachesInMemory = false
        cache = options.cacheDirectory.map { ResponseCache(directory: URL(filePath: $0, directoryHint: .isDirectory)) }
        cachePolicy = options.cachePolicy
        if cache != nil, options.trace != .off { cacheTap = { screen.note("cache: \($0)") } }
        retryPolicy = RetryPolicy(options)
        if retryPolicy != nil { observers = [RetryNotes(screen: screen)] }
        if options.trace != .off { wireTap = { screen.show($0) } }
        if let archiver { observers.append(archiver) }
        if screen.showsProgress, options.sendsBody { observers.append(Watch.Uploads()) }
        if options.printsJSON { observers.append(Watch.Observer()) }
    }
}

extension Request {
    init(_ options: Options, _ url: URL) throws {
        let form = try UploadForm.make(options.formFields)
        let upload = try options.upload.map { (path) throws(OutputError) in try UploadBody.upload(path) }
        let body = try form ?? upload?.body ?? UploadBody.make(options.payloads)
        self.init(
            url: url,
            method: options.method
                ?? (options.asksForHead ? .head : options.upload != nil ? .put : body == nil ? .get : .post),
            headers: options.fields, body: body)
        contentDecoding = options.acceptsCompressed == true ? .always : options.decodes ? .ifOffered : .never
        if form == nil, body != nil, options.upload == nil, !headers.contains(.contentType) {
            headers[.contentType] = "application/x-www-form-urlencoded"
        }
        // A refusal, a challenge or a redirect shall come before what can be sent only once.
        if upload?.isPiped == true, !headers.contains("Expect") { headers["Expect"] = "100-continue" }
        if options.printsEvents {
            // Events have no limits but the request's own.
            idleTimeout = options.idleTimeout
            resourceTimeout = options.totalTimeout
        }
    }
}
