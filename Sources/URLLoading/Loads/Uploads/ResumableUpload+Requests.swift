// SPDX-License-Identifier: Apache-2.0

// The requests of a resumable upload and their targets. The upload resource gets the caller's credentials, so it must
// have the origin of the caller's request, and redirects must stay there.

import FoundationEssentials
import URLLoadingWire

/// One request of an upload, and the facts noted while it runs. Used by one task.
final class UploadExchange {
    enum Kind { case creation, question, addition }
    let kind: Kind
    let request: Request
    /// The range of the source that the request carries.
    let range: Range<Int64>
    /// The URL of the response: after redirects, the final one, or the first at another server.
    private(set) var url: URL
    /// True if the response answers the whole upload, whatever its fields.
    private(set) var isAnswered = false
    /// The error for which the client aborted the request.
    var refusal: LoadError?
    /// True if the client aborted the request because the server's limit is smaller than the part.
    var isTooLong = false

    private init(_ kind: Kind, _ request: Request, _ range: Range<Int64>) {
        (self.kind, self.request, self.range, url) = (kind, request, range, request.url)
    }

    convenience init(creating request: Request, _ range: Range<Int64>) { self.init(.creation, request, range) }
    convenience init(asking request: Request, _ length: Int64) { self.init(.question, request, length..<length) }
    convenience init(appending request: Request, _ range: Range<Int64>) { self.init(.addition, request, range) }

    func note(_ redirect: Redirect) {
        if Request(url: url).goes(where: request) { url = redirect.request.url }
        // 303 (See Other) leads from the upload to its result.
        if redirect.request.method != request.method { isAnswered = true }
    }
}

extension ResumableUpload {
    /// Returns the caller's request with the whole source, or its first part (draft §4.2.1).
    func creation(_ range: Range<Int64>) -> Request {
        var creation = request
        creation.body = source.body(range)
        creation.headers[.uploadComplete] = StructuredField.text(range.upperBound == length)
        creation.headers[.uploadLength] = StructuredField.text(length)
        creation.headers[.uploadInteropVersion] = StructuredField.text(ResumableUploads.interopVersion)
        return creation
    }

    /// Returns the request for the offset (draft §4.3.1).
    func question() throws(LoadError) -> Request { try toResource(.head) }

    /// Returns the request that appends a part (draft §4.4.1).
    func addition(_ range: Range<Int64>) throws(LoadError) -> Request {
        var addition = try toResource(.patch)
        addition.body = source.body(range)
        addition.headers[.contentType] = ResumableUploads.mediaType
        addition.headers[.uploadOffset] = StructuredField.text(range.lowerBound)
        addition.headers[.uploadComplete] = StructuredField.text(range.upperBound == length)
        return addition
    }

    private func toResource(_ method: Method) throws(LoadError) -> Request {
        guard let token else { throw UploadPlan.inconsistent("the server gave no location for the upload") }
        return request.toUpload(at: token.url, method)
    }

    /// Returns the decisions for a request: the caller's redirect decision covers the caller's own request, the
    /// library's covers the upload resource.
    func decisions(for exchange: UploadExchange) -> Decisions? {
        guard exchange.kind != .creation else { return decisions }
        var decisions = decisions ?? Decisions()
        // The caller's response decision is about the response to the whole upload only.
        if exchange.kind == .question || exchange.range.upperBound < length { decisions.response = nil }
        decisions.redirect = .ofUpload(within: request)
        return decisions
    }
}

extension Decision where Question == Redirect, Answer == RedirectDecision {
    /// The redirect decision for an upload resource (draft §4.3.2, §4.4.2): 307 and 308 move the resource within its
    /// origin; 303 after the last part leads to the result.
    static func ofUpload(within request: Request) -> Decision {
        Decision { redirect in
            let answer = redirect.response.http.map { UploadAnswer($0) }
            switch answer?.status {
            case .seeOther? where answer?.isComplete == true:
                var next = redirect.request
                for name in Request.uploadFields { next.headers.remove(name) }
                return .instead(next)
            case .temporaryRedirect?, .permanentRedirect?:
                return answer?.isComplete != true && redirect.request.goes(where: request) ? .follow : .doNotFollow
            default: return .doNotFollow
            }
        }
    }
}

extension Request {
    /// Returns the upload resource that a Location names; `nil` if it must not be used, so that the upload continues as
    /// a plain one.
    /// - Parameter url: the URL of the answered request. A server that a redirect has led to does not choose a place at
    ///   the caller's, where the next requests go with the caller's credentials.
    func uploadPlace(_ location: String, from url: URL) -> URL? {
        guard Request(url: url).goes(where: self), let base = try? URIReference(url.absoluteString),
            let reference = try? URIReference(location),
            let resolved = try? base.resolve(reference), resolved.userinfo == nil,
            let place = URL(string: String(resolved.absoluteString.prefix { $0 != "#" })),
            Request(url: place).goes(where: self)
        else { return nil }
        return place
    }

    /// Returns a request to an upload resource on behalf of the request that created it: the fields with credentials
    /// are kept, those that describe the representation are removed.
    func toUpload(at url: URL, _ method: Method) -> Request {
        var next = self
        (next.url, next.method, next.body) = (url, method, nil)
        for name in Self.representationFields + Self.uploadFields { next.headers.remove(name) }
        next.headers[.uploadInteropVersion] = StructuredField.text(ResumableUploads.interopVersion)
        return next
    }

    fileprivate static let uploadFields: [FieldName] = [
        .uploadOffset, .uploadComplete, .uploadLength, .uploadInteropVersion,
    ]

    /// The fields of RFC 9110 §8, RFC 9530 and RFC 6266, and the conditions of §13, which apply to another resource.
    private static let representationFields: [FieldName] = [
        .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation, .contentRange,
        .contentDisposition, .transferEncoding, .trailer, .expect, .range, .ifMatch, .ifNoneMatch, .ifModifiedSince,
        .ifUnmodifiedSince, .ifRange, "Content-MD5", "Digest", "Repr-Digest", "Content-Digest", "Want-Repr-Digest",
        "Want-Content-Digest",
    ]
}

/// Cancels an upload on the server (draft §4.5).
enum UploadCancellation {
    static func send(_ core: Core, _ request: Request, _ token: UploadToken, _ decisions: Decisions?)
        async throws(LoadError)
    {
        var decisions = decisions ?? Decisions()
        decisions.response = nil
        decisions.redirect = .ofUpload(within: request)
        let load = try UploadLoad(core, request.toUpload(at: token.url, .delete), decisions)
        let (_, response) = try await load.run { _ throws(LoadError) in }
        guard let head = response.http else { return }
        // An upload that does not exist any more counts as cancelled.
        guard head.status.kind == .successful || head.status == .notFound || head.status == .gone else {
            throw UploadPlan.refused(UploadAnswer(head)).at(response.url)
        }
    }
}
