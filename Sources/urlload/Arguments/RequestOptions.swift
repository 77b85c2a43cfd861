// SPDX-License-Identifier: Apache-2.0

// The options for the request: its method, fields and body.

import URLLoading

struct RequestOptions: Sendable {
    var method: Method?
    var fields = Headers()
    /// Default fields that are not sent: `-H 'Name:'`.
    var removedFields: [FieldName] = []
    var userAgent: String?
    /// Whether compressed responses are requested; `nil` for the default of the destination.
    var acceptsCompressed: Bool?
    var asksForHead = false
    /// The digest that the body must have.
    var expectedDigest: BodyDigest?
    var payloads: [Options.Payload] = []
    var formFields: [FormField] = []
    /// The file that this load uploads unchanged.
    var upload: String?
    /// The file that stores the state of a resumable upload.
    var uploadState: String?
    var expandsPatterns = true
    /// Whether dot segments in paths are sent as they are.
    var keepsPath = false
    /// Schemes that URLs may have.
    var schemes = OptionValue.allSchemes
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
