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
    struct Payload: Sendable, Hashable {
        enum Content: Sendable, Hashable {
            case text(String)
            /// A path; `-` is standard input.
            case file(String)
            /// The same without its line breaks and NUL bytes: `-d @FILE`.
            case lines(String)
            /// The same, percent-encoded, behind `prefix`: `--data-urlencode NAME@FILE`.
            case encoded(String, prefix: String)
        }
        var content: Content
        /// Whether `&` stands between this part and the one before; not for `--json`.
        var isField = true

        static func text(_ text: String) -> Self { Self(content: .text(text)) }
        static func file(_ path: String) -> Self { Self(content: .file(path)) }
        static func lines(_ path: String) -> Self { Self(content: .lines(path)) }

        var readsStandardInput: Bool {
            switch content {
            case .text: false
            case .file(let path), .lines(let path), .encoded(let path, _): path == "-"
            }
        }
    }

    /// How a load goes on with what is there of a file.
    enum Resuming: Sendable, Hashable {
        case never
        /// `-C`: where the server can say that the rest belongs to it.
        case ifChecked
        /// `-C -`: also where it cannot.
        case always
        /// `-C OFFSET`: from there, unchecked.
        case from(Int64)
    }

    enum Trace: Sendable, Hashable {
        case off, heads, everything
    }

    /// What holds for all groups of a command line (`--next`), wherever it stands.
    struct Shared: Sendable {
        var isSilent = false
        var showsErrors = false
        var showsMeter = true
        var trace = Trace.off
        /// Where the transcript goes; `nil` for standard error.
        var traceFile: String?
        /// Where messages go; `nil` for standard error.
        var errorFile: String?
        var isParallel = false
        var maximumParallel: Int?
        /// The least time from the start of one load to that of the next.
        var interval: Duration?
        var failsEarly = false
    }

    /// Before `~`, braces and brackets are replaced.
    var urls: [String] = []
    /// Of the URL at the same place in ``urls``.
    var outputs: [Destination] = []
    var uploads: [String] = []
    var shared = Shared()

    // The request.
    var method: Method?
    var fields = Headers()
    /// Fields that are not sent, though they usually are: `-H 'Name:'`.
    var removedFields: [FieldName] = []
    var payloads: [Payload] = []
    var data = DataOptions()
    var items = ItemOptions()
    /// A file to upload as it is, with this load.
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
    var expandsPatterns = true
    var followsRedirects = true
    /// What URLs may be loaded with.
    var schemes = OptionValue.allSchemes
    /// What redirects may lead to, if that is among ``schemes``.
    var redirectSchemes = OptionValue.allSchemes
    var maximumRedirects: Int?
    var idleTimeout: Duration?
    var connectTimeout: Duration?
    /// Of a request with `Expect: 100-continue`.
    var expectContinueTimeout: Duration?
    var totalTimeout: Duration?
    var maximumConnections: Int?
    /// Bytes a second.
    var rateLimit: Int64?
    var httpVersions = Configuration.HTTPVersions.automatic

    var ftp = Configuration.FTP()
    var way = WayOptions()

    var login = LoginOptions()

    var memory = MemoryOptions()

    // The cache.
    /// Where responses are kept.
    var cacheDirectory: String?
    var cachePolicy = Request.CachePolicy.useProtocol

    // Retries.
    var retries = 0
    var retriesRefused = false
    var retriesEverything = false
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
    /// Of this load.
    var destination = Destination.standardOutput
    /// The file that this load shares with others; `nil` for one of its own.
    var joined: JoinedFile?
    var saving = SavingOptions()
    var resuming = Resuming.never
    var includesHead = false
    /// The body is not written.
    var dropsBody = false
    /// A file for the heads of all responses; `-` is standard output.
    var headFile: String?
    var failsOnStatus = false
    var failsWithBody = false
    var showsSecrets = false
    var printsSummary = false
    var printsEvents = false
    /// What `-w` writes after each load.
    var writeOut: String?
    /// `nil`: what suits the destination.
    var pretty: Pretty?
    /// Where an HTTP Archive goes.
    var archiveFile: String?
    var drawsWaterfall = false
    /// Where a page of what each request waited for goes.
    var reportFile: String?
    var measures: Bool { printsSummary || writeOut != nil || drawsWaterfall || reportFile != nil }

    // For the parser.
    var startsNext = false
    var configFile: String?

    // Instead of loading.
    var wantsHelp = false
    var wantsVersion = false
    var generated: String?

    var sendsBody: Bool {
        upload != nil || !uploads.isEmpty || !formFields.isEmpty || !data.goesToQuery && !payloads.isEmpty
    }
    var continues: Bool { resuming != .never }
    var isSilent: Bool {
        get { shared.isSilent }
        set { shared.isSilent = newValue }
    }
    var trace: Trace {
        get { shared.trace }
        set { shared.trace = newValue }
    }
}

/// What `-d` and its companions mean besides their text.
struct DataOptions: Sendable {
    /// `-G`.
    var goesToQuery = false
    /// `--json`: the types of what is sent and wanted.
    var isJSON = false
    /// What `--url-query` adds, encoded.
    var query: [Options.Payload] = []
    var range: String?
    var referer: String?
    /// `-z`.
    var condition: TimeCondition?
    var tagToCompare: String?
    var tagToSave: String?
}

/// How files are named and made.
struct SavingOptions: Sendable {
    enum Collision: Sendable, Hashable {
        case replace
        /// `FILE.1`.
        case number
        case skip
    }
    /// All URLs without a file of their own get one (`--remote-name-all`).
    var namesAll = false
    var folder: String?
    var makesFolders = false
    /// The name comes from Content-Disposition, if there is one.
    var takesServersName = false
    var collision = Collision.replace
    /// The file gets the time of Last-Modified.
    var setsTime = false
    var inputLists: [String] = []
    /// All URLs go to the one file of `-o`, one behind the other (wget's `-O`).
    var joinsAll = false
    /// No grammar's default sets the time.
    var keepsOwnTime = false
    /// A name taken from the URL has its query.
    var namesWithQuery = false
    /// A file that is there is replaced only by a newer one (wget's `-N`).
    var comparesTime = false
}
