// SPDX-License-Identifier: Apache-2.0

/// The options of httpie's grammar that apply to its items.
struct ItemOptions: Sendable {
    enum Kind: Sendable { case json, form, multipart }
    var kind = Kind.json
    /// What is written of requests and responses; `nil` in the grammars without `--print`, and before the defaults are
    /// known: head and body on a terminal, the body elsewhere.
    var prints: PrintedParts?
    /// True if responses before the last one are written as well.
    var includesAll = false
    /// How often `-v` is given.
    var verbosity = 0
    /// True if the request is written and not sent.
    var isOffline = false
    var downloads = false
    var ignoresInput = false
    /// Nothing goes to standard output.
    var isQuiet = false
    var login: String?
    var loginKind = "basic"
    /// The name of a session, or the path of its file.
    var session: String?
}
