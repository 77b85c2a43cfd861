// What the command line asked for, as a value: parsed in full before anything happens.

import URLLoading

struct Options: Sendable {
    /// Where a body goes.
    enum Destination: Sendable, Hashable {
        case standardOutput
        case file(String)
        /// A file in the current folder, named after the URL.
        case namedAfterURL
    }

    /// A part of what is sent.
    enum Payload: Sendable, Hashable {
        case text(String)
        /// A path; `-` is standard input.
        case file(String)
    }

    enum Trace: Sendable, Hashable {
        case off, heads, everything
    }

    var urls: [String] = []

    // The request.
    var method: Method?
    var fields = Headers()
    var payloads: [Payload] = []
    /// A file to upload as it is.
    var upload: String?
    /// Where an upload that can be resumed is remembered.
    var uploadState: String?
    var formFields: [FormField] = []
    var asksForHead = false
    var userAgent: String?
    /// `nil` for what the destination says.
    var acceptsCompressed: Bool?
    /// What goes to a terminal or a pipe is read at once; a file keeps the bytes as they were sent.
    var decodes: Bool {
        if let acceptsCompressed { return acceptsCompressed }
        if case .standardOutput = destination { return true }
        return false
    }

    // The way.
    var followsRedirects = true
    var maximumRedirects: Int?
    var idleTimeout: Duration?
    var connectTimeout: Duration?
    /// Of a request with `Expect: 100-continue`.
    var expectContinueTimeout: Duration?
    var totalTimeout: Duration?
    var maximumConnections: Int?
    var httpVersions = Configuration.HTTPVersions.automatic

    var ftp = Configuration.FTP()
    var way = WayOptions()

    var login = LoginOptions()

    var memory = MemoryOptions()

    // What was loaded before.
    /// Where responses are kept.
    var cacheDirectory: String?
    var cachePolicy = Request.CachePolicy.useProtocol

    // Further tries.
    var retries = 0
    var retriesRefused = false
    /// `nil`: longer each time.
    var retryDelay: Duration?
    var retryTime: Duration?

    // Security.
    var rootsFile: String?
    /// Issuers in PEM, for the demonstration: it has no file.
    var rootsText: String?
    var minimumTLS: Configuration.TLS.Version?
    var maximumTLS: Configuration.TLS.Version?
    var isInsecure = false
    var trust = TrustOptions()

    // The output.
    var destination = Destination.standardOutput
    var continues = false
    var includesHead = false
    var failsOnStatus = false
    var isSilent = false
    var trace = Trace.off
    var showsSecrets = false
    var printsJSON = false
    var printsEvents = false
    /// Where an HTTP Archive goes.
    var archiveFile: String?

    var sendsBody: Bool { upload != nil || !payloads.isEmpty || !formFields.isEmpty }

    // Instead of loading.
    var wantsHelp = false
    var wantsVersion = false
}

/// The command line cannot be understood. The words are for whoever typed it.
struct UsageError: Error, Hashable {
    let words: String
    init(_ words: String) { self.words = words }
}
