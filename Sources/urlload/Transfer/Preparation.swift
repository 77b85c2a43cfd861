// SPDX-License-Identifier: Apache-2.0

// Converts options to the library's configuration and requests.

import FoundationEssentials
import URLLoading
import URLLoadingIO
import URLLoadingWire

extension Configuration {
    init(_ options: Options, _ screen: Screen, _ archiver: HTTPArchiver? = nil, _ packetLog: PacketLog? = nil) {
        self = .ephemeral
        if let limit = options.timeouts.idle { timeouts.idle = limit }
        timeouts.connect = options.timeouts.connect
        if let limit = options.timeouts.expectContinue { timeouts.expectContinue = limit }
        if let limit = options.timeouts.resource { timeouts.resource = limit }
        if let ranges = options.connections.parallelRanges {
            connections.maximumPerHost = max(connections.maximumPerHost, ranges.count)
        }
        if let count = options.connections.maximumPerHost { connections.maximumPerHost = count }
        // `-Z` needs a connection for each load: a load that waited for another's would not be parallel.
        if options.shared.isParallel, options.connections.maximumPerHost == nil {
            connections.maximumPerHost = max(connections.maximumPerHost, options.shared.maximumParallel ?? 50)
        }
        connections.httpVersions = options.connections.httpVersions
        connections.sendsEarlyData = options.connections.sendsEarlyData
        if options.connections.speaksHTTP10 { requestVersion = .http10 }
        sockets = options.networks.sockets
        strictness = options.strictness
        ftp = options.ftp
        if let count = options.redirects.maximum { redirects.maximum = count }
        if let agent = options.request.userAgent {
            userAgent = agent.isEmpty ? nil : agent
        } else {
            userAgent = "urlload/\(Help.versionNumber)"
        }
        if options.request.removedFields.contains(.userAgent) { userAgent = nil }
        if options.request.removedFields.contains(.accept) { accept = nil }
        if !options.decodes || options.request.removedFields.contains("Accept-Encoding") { acceptEncoding = nil }
        options.tls.apply(to: &tls)
        // An invalid policy was refused when the command line was parsed.
        if let policy = try? options.networks.policy() { networks.proxyPolicy = policy }
        networks.addressOverrides = AddressOverrides(options.networks.overrides)
        networks.interface = options.networks.interface
        if let family = options.networks.family { networks.addressPolicy = .only(family) }
        authentication = options.login.settings(options.urls.compactMap { AddressText.url($0) })
        caching.usesMemoryStore = false
        caching.store = options.caching.directory.map {
            ResponseCache(directory: URL(filePath: $0, directoryHint: .isDirectory))
        }
        caching.policy = options.caching.policy
        // Each retry was asked for by its number.
        (retries.policy, retries.budget) = (RetryPolicy(options), nil)
        if options.items.isOffline { disconnect() }
        observe(options, screen, archiver, packetLog)
    }

    /// Lets every connection fail before it is attempted (`--offline`).
    private mutating func disconnect() {
        networks.proxyPolicy = .none
        dial = { (_, _) throws(IOFailure) in throw IOFailure(.closedByPeer, .connect) }
    }

    private mutating func observe(
        _ options: Options, _ screen: Screen, _ archiver: HTTPArchiver?, _ packetLog: PacketLog?
    ) {
        if caching.store != nil, options.trace != .off || options.output.reportFile != nil {
            let isTraced = options.trace != .off
            cacheTap = { decision in
                Watch.current?.note(cache: decision)
                if isTraced { screen.note("cache: \(decision)") }
            }
        }
        if retries.policy != nil { observers = [RetryNotes(screen: screen)] }
        if options.trace != .off { wireTap = { screen.show($0) } }
        if let packetLog {
            let shown = wireTap
            wireTap = { event in
                if case .log(let record, let connection) = event {
                    packetLog.add(record, of: connection)
                } else {
                    shown?(event)
                }
            }
        }
        if let archiver { observers.append(archiver) }
        if screen.showsProgress, options.sendsBody { observers.append(Watch.Uploads()) }
        if options.output.headFile != nil || options.output.includesHead || options.request.asksForHead
            || options.items.prints != nil
        {
            observers.append(Watch.Heads())
        }
        if options.output.measures { observers.append(Watch.Observer()) }
    }
}

extension AddressPolicy {
    /// A policy that allows addresses of one family only (`-4`, `-6`).
    static func only(_ family: NetworkOptions.Family) -> AddressPolicy {
        AddressPolicy { $0.host.contains(":") == (family == .ipv6) }
    }
}

extension Request {
    init(_ options: Options, _ url: URL) throws {
        let form = try UploadForm.make(options.request.formFields)
        let upload = try options.request.upload.map { (path) throws(OutputError) in try UploadBody.upload(path) }
        if upload?.isPiped == true, options.connections.speaksHTTP10 {
            throw OutputError(.upload, "HTTP/1.0 sends no body of unknown length, such as that of a pipe")
        }
        let data = options.data.sendsDataAsQuery ? nil : try UploadBody.make(options.request.payloads)
        var body = form ?? upload?.body ?? data
        // As in curl, `-T` sends no Content-Type: a URL signed for an upload does not include one.
        if form == nil, options.request.upload != nil || options.request.removedFields.contains(.contentType) {
            body?.contentType = nil
        }
        self.init(
            url: try QueryText.extended(url, options),
            method: options.request.method
                ?? (options.request.asksForHead
                    ? .head : options.request.upload != nil ? .put : body == nil ? .get : .post),
            headers: options.request.fields, body: body)
        contentDecoding = options.request.acceptsCompressed == true ? .always : options.decodes ? .ifOffered : .never
        expectedDigest = options.request.expectedDigest
        try addFields(options, sendsForm: form == nil && data != nil)
        // A refusal, a challenge or a redirect must arrive before a body that can be sent only once.
        if upload?.isPiped == true, !headers.contains("Expect"), !options.request.removedFields.contains("Expect") {
            headers["Expect"] = "100-continue"
        }
        if options.request.upload != nil { try appendFileName(options) }
        if options.request.removedFields.contains(.cookie) { handlesCookies = false }
        if options.output.printsEvents {
            // An event stream has no time limits beside those of the request.
            idleTimeout = options.timeouts.idle
            resourceTimeout = options.timeouts.resource
        }
    }

    private mutating func addFields(_ options: Options, sendsForm: Bool) throws {
        func add(_ name: FieldName, _ value: String?) {
            guard let value, !headers.contains(name), !options.request.removedFields.contains(name) else { return }
            headers[name] = value
        }
        if sendsForm {
            add(.contentType, options.data.isJSON ? "application/json" : "application/x-www-form-urlencoded")
        }
        guard url.scheme?.lowercased().hasPrefix("http") == true else {
            return
        }
        if options.data.isJSON { add(.accept, "application/json") }
        add(.referer, options.data.referer.flatMap { $0.isEmpty ? nil : $0 })
        add(.range, options.data.range.map { "bytes=\($0)" })
        if let condition = options.data.condition {
            add(condition.isBefore ? "If-Unmodified-Since" : "If-Modified-Since", condition.date?.description)
        }
        if let path = options.data.tagToCompare, let tag = try TagFile.read(path) { add("If-None-Match", tag) }
        if options.login.methods == [.basic], let user = options.login.user {
            add(.authorization, "Basic " + Data("\(user):\(options.login.password ?? "")".utf8).base64EncodedString())
        }
    }

    /// Completes the URL of a folder with the name of the file, as in `-T FILE https://host/folder/`. For ftp, see
    /// ``FTPUpload``.
    private mutating func appendFileName(_ options: Options) throws {
        guard let path = options.request.upload, path != "-", url.scheme?.lowercased().hasPrefix("http") == true,
            url.query() == nil, url.path(percentEncoded: true).isEmpty || url.path(percentEncoded: true).hasSuffix("/")
        else { return }
        url = url.appending(path: URL(filePath: path).lastPathComponent)
    }
}

/// The query of `-G` and `--url-query`.
enum QueryText {
    static func extended(_ url: URL, _ options: Options) throws -> URL {
        var parts = options.data.query
        if options.data.sendsDataAsQuery { parts = options.request.payloads + parts }
        guard !parts.isEmpty else { return url }
        let text = String(decoding: try UploadBody.bytes(parts), as: UTF8.self)
        let whole = url.absoluteString
        let base = whole.prefix { $0 != "#" }
        let mark =
            !base.contains("?")
            ? (base.hasSuffix("/") || url.path().isEmpty == false ? "?" : "/?")
            : base.hasSuffix("?") || base.hasSuffix("&") ? "" : "&"
        guard let extended = URL(string: base + mark + text + whole.dropFirst(base.count)) else {
            throw LoadError(
                .badURL, phase: .preparing, party: .local,
                detail: "the URL is not valid with the query that is added to it")
        }
        return extended
    }
}

/// The file of `--etag-save` and `--etag-compare`: the entity tag on one line.
enum TagFile {
    /// Returns `nil` for a missing or an empty file.
    static func read(_ path: String) throws(OutputError) -> String? {
        guard FileCheck.exists(path) else { return nil }
        let text = String(decoding: try InputFile.all(path), as: UTF8.self).prefix { !$0.isNewline }
        return text.isEmpty ? nil : String(text)
    }

    static func write(_ tag: String?, to path: String) throws(OutputError) {
        guard let tag else { return }
        let file = try AtomicFile(path: path)
        try file.write(tag + "\n")
        try file.commit()
    }
}
