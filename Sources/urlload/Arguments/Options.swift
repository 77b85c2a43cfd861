// SPDX-License-Identifier: Apache-2.0

// The parsed command line as a value. Parsing ends before the first load begins.

import FoundationEssentials
import URLLoading

struct Options: Sendable {
    /// The destination of a body.
    enum Destination: Sendable, Hashable {
        case standardOutput
        case file(String)
        /// A file in the current folder, named after the URL.
        case namedAfterURL
        /// Of every URL: the body is counted and dropped.
        case nothing
    }

    /// A part of the request's body.
    struct Payload: Sendable, Hashable {
        enum Content: Sendable, Hashable {
            case text(String)
            /// The bytes of a file. A path; `-` is standard input.
            case file(String)
            /// The bytes of a file without line breaks and NUL bytes: `-d @FILE`.
            case lines(String)
            /// The bytes of a file, percent-encoded, after `prefix`: `--data-urlencode NAME@FILE`.
            case encoded(String, prefix: String)
        }
        var content: Content
        /// True if `&` separates this part from the one before; false for `--json`.
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

    /// The treatment of a partial file.
    enum Resuming: Sendable, Hashable {
        case never
        /// `-C`: resumes if the server can validate that the rest belongs to the part (If-Range).
        case ifChecked
        /// `-C -`: resumes also without a validator.
        case always
        /// `-C OFFSET`: resumes at this offset, without validation.
        case from(Int64)
    }

    enum Trace: Sendable, Hashable {
        case off, heads, everything
    }

    /// Options that apply to all groups of a command line (`--next`), wherever they stand.
    struct Shared: Sendable {
        var grammar = Grammar.curl
        var isSilent = false
        var showsErrors = false
        var showsMeter = true
        var trace = Trace.off
        /// The file of the transcript; `nil` for standard error.
        var traceFile: String?
        /// The file of messages; `nil` for standard error.
        var errorFile: String?
        var isParallel = false
        var maximumParallel: Int?
        /// The minimum time between the starts of two loads.
        var interval: Duration?
        var failsEarly = false
    }

    /// The URLs as given, before `~`, braces and brackets are expanded.
    var urls: [String] = []
    /// The destination of the URL with the same index in ``urls``.
    var outputs: [Destination] = []
    var uploads: [String] = []
    var shared = Shared()

    // The request.
    var method: Method?
    var fields = Headers()
    /// Default fields that are not sent: `-H 'Name:'`.
    var removedFields: [FieldName] = []
    var payloads: [Payload] = []
    var data = DataOptions()
    var items = ItemOptions()
    /// The file that this load uploads unchanged.
    var upload: String?
    /// The file that stores the state of a resumable upload.
    var uploadState: String?
    var formFields: [FormField] = []
    var asksForHead = false
    var userAgent: String?
    /// Whether compressed responses are requested; `nil` for the default of the destination.
    var acceptsCompressed: Bool?
    /// True if content codings are removed: for a terminal or a pipe; a file keeps the bytes as they were sent.
    var decodes: Bool {
        if let acceptsCompressed { return acceptsCompressed }
        if case .standardOutput = destination { return true }
        return false
    }

    // Connection and redirects.
    var expandsPatterns = true
    /// Whether dot segments in paths are sent as they are.
    var keepsPath = false
    var followsRedirects = true
    /// Schemes that URLs may have.
    var schemes = OptionValue.allSchemes
    /// Schemes that redirects may lead to, as far as ``schemes`` contains them.
    var redirectSchemes = OptionValue.allSchemes
    var maximumRedirects: Int?
    var idleTimeout: Duration?
    var connectTimeout: Duration?
    /// The time limit for a 100 (Continue).
    var expectContinueTimeout: Duration?
    var totalTimeout: Duration?
    var maximumConnections: Int?
    /// Bytes a second.
    var rateLimit: Int64?
    /// The size in bytes beyond which a body is refused.
    var maximumSize: Int64?
    var httpVersions = Configuration.HTTPVersions.automatic
    /// True if requests are of HTTP/1.0.
    var speaksHTTP10 = false
    /// The redirects after which a POST stays one, with its body: 301, 302, 303.
    var keepsPost: Set<Int> = []
    var strictness = Configuration.Strictness.tolerant

    var ftp = Configuration.FTP()
    var connection = ConnectionOptions()

    var login = LoginOptions()

    var memory = MemoryOptions()

    // The cache.
    /// The folder of stored responses.
    var cacheDirectory: String?
    var cachePolicy = Request.CachePolicy.useProtocol

    // Retries.
    var retries = 0
    var retriesRefused = false
    var retriesEverything = false
    /// The delay between attempts; `nil` for exponential backoff.
    var retryDelay: Duration?
    var retryTime: Duration?

    // Security.
    var rootsFile: String?
    /// Trusted certificates in PEM; the demonstration has no file.
    var rootsText: String?
    var minimumTLS: Configuration.TLS.Version?
    var maximumTLS: Configuration.TLS.Version?
    var isInsecure = false
    var trust = TrustOptions()

    // The output.
    /// The destination of this load.
    var destination = Destination.standardOutput
    /// The file that this load shares with others; `nil` for one of its own.
    var joined: JoinedFile?
    var saving = SavingOptions()
    var resuming = Resuming.never
    var includesHead = false
    /// True if the body is not written.
    var dropsBody = false
    /// The file for the heads of all responses; `-` is standard output.
    var headFile: String?
    var failsOnStatus = false
    var failsWithBody = false
    var showsSecrets = false
    var printsSummary = false
    var printsEvents = false
    /// The format that `-w` writes after each load.
    var writeOut: String?
    /// `nil` for the default of the destination.
    var pretty: Pretty?
    /// The file of the HTTP Archive.
    var archiveFile: String?
    var drawsWaterfall = false
    /// The HTML page with the waterfall of all requests.
    var reportFile: String?
    var measures: Bool { printsSummary || writeOut != nil || drawsWaterfall || reportFile != nil }

    // State of the parser.
    /// The long names of the options that were given, without those that were undone by `--no-NAME`.
    var given: [String] = []
    var startsNext = false
    var configFile: String?

    // Texts to print in place of loading.
    var wantsHelp = false
    /// The category or option after `--help`; empty for none.
    var helpTopic = ""
    var wantsVersion = false
    var generated: String?

    var sendsBody: Bool {
        upload != nil || !uploads.isEmpty || !formFields.isEmpty || !data.sendsDataAsQuery && !payloads.isEmpty
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

/// Options of `-d` and its companions, beside the data.
struct DataOptions: Sendable {
    /// `-G`: the data becomes the query.
    var sendsDataAsQuery = false
    /// `--json`: Content-Type and Accept are application/json.
    var isJSON = false
    /// The data of `--url-query`, encoded.
    var query: [Options.Payload] = []
    var range: String?
    var referer: String?
    /// True if each redirect sends the URL that it came from as Referer (`;auto`).
    var refererFollows = false
    /// The condition of `-z`.
    var condition: TimeCondition?
    var tagToCompare: String?
    var tagToSave: String?
}

/// Options for the names and attributes of files.
struct SavingOptions: Sendable {
    enum Collision: Sendable, Hashable {
        case replace
        /// The new file is named `FILE.1`.
        case number
        case skip
    }
    /// Every URL without a file of its own is saved under its own name (`--remote-name-all`).
    var namesAll = false
    var folder: String?
    var makesFolders = false
    /// The name is taken from Content-Disposition, if the response has it (`-J`).
    var takesServersName = false
    var collision = Collision.replace
    /// The file gets the time of Last-Modified (`-R`).
    var setsTime = false
    var inputLists: [String] = []
    /// All bodies go to the one file of `-o`, one after the other (wget's `-O`).
    var joinsAll = false
    /// Overrides a grammar whose default is to set the time.
    var keepsOwnTime = false
    /// The name is taken from the URL that redirects lead to (wget's `--trust-server-names`).
    var takesLastURL = false
    /// True if the name of a file is known only with its response.
    var namesFromResponse: Bool { takesServersName || takesLastURL }
    /// The folders that a name taken from the URL includes (wget's `-x`).
    var folders: URLFolders?
    /// A name taken from the URL includes its query.
    var namesWithQuery = false

    /// Returns the name of the file for a URL: with its folders, or its last component alone.
    func name(for url: URL) -> String {
        (folders?.path(for: url) ?? "") + FileName.make(for: url, hasQuery: namesWithQuery)
    }
    /// An existing file is replaced only by a newer version (wget's `-N`).
    var comparesTime = false
}
