// SPDX-License-Identifier: Apache-2.0

/// The options of httpie's grammar that apply to its items.
struct ItemOptions: Sendable {
    enum Kind: Sendable { case json, form, multipart }
    enum Shown: Sendable { case heads, body, both }
    var kind = Kind.json
    /// `nil` for the default: head and body on a terminal, the body elsewhere.
    var shows: Shown?
    var downloads = false
    var ignoresInput = false
    /// Nothing goes to standard output.
    var isQuiet = false
    var login: String?
    var loginKind = "basic"
    /// The name of a session, or the path of its file.
    var session: String?
}
