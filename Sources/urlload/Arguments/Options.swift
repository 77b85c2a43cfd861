// SPDX-License-Identifier: Apache-2.0

// The parsed command line as a value. Parsing ends before the first load begins.

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
            case bytes([UInt8])
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

        /// The path of the file that the bytes come from; `-` is standard input.
        var path: String? {
            switch content {
            case .text, .bytes: nil
            case .file(let path), .lines(let path), .encoded(let path, _): path
            }
        }

        var readsStandardInput: Bool { path == "-" }
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

    // The groups have the names of those of `Configuration`, where it has them.
    var request = RequestOptions()
    var data = DataOptions()
    var items = ItemOptions()
    var timeouts = TimeoutOptions()
    var connections = ConnectionOptions()
    var networks = NetworkOptions()
    var redirects = RedirectOptions()
    var retries = RetryOptions()
    var caching = CachingOptions()
    var limits = LimitOptions()
    var strictness = Configuration.Strictness.tolerant
    var login = LoginOptions()
    var memory = MemoryOptions()
    var tls = TLSOptions()
    var ftp = Configuration.FTP()
    var output = OutputOptions()
    var saving = SavingOptions()

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
        request.upload != nil || !uploads.isEmpty || !request.formFields.isEmpty
            || !data.sendsDataAsQuery && !request.payloads.isEmpty
    }
    /// True if content codings are removed: for a terminal or a pipe; a file keeps the bytes as they were sent.
    var decodes: Bool {
        if let acceptsCompressed = request.acceptsCompressed { return acceptsCompressed }
        if case .standardOutput = output.destination { return true }
        return false
    }
    var isSilent: Bool {
        get { shared.isSilent }
        set { shared.isSilent = newValue }
    }
    var trace: Trace {
        get { shared.trace }
        set { shared.trace = newValue }
    }
}
