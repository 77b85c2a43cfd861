// The requests of a resumable upload, and where they may go: the upload resource gets the caller's
// credentials, so it must lie in the origin of the caller's request, and redirects must stay there.

import FoundationEssentials
import URLLoadingWire

/// One request of an upload, and what is noted while it goes on. Used by one task.
final class UploadExchange {
    enum Kind { case creation, question, addition }
    let kind: Kind
    let request: Request
    /// The bytes of the whole that it carries.
    let range: Range<Int64>
    /// Where the response comes from: after redirects, the last place.
    private(set) var url: URL
    /// What comes is the answer to the whole, whatever its fields say.
    private(set) var isAnswered = false
    /// Why we ended it ourselves.
    var refusal: LoadError?
    /// We ended it because the server does not take so much at once.
    var isTooLong = false

    private init(_ kind: Kind, _ request: Request, _ range: Range<Int64>) {
        (self.kind, self.request, self.range, url) = (kind, request, range, request.url)
    }

    convenience init(creating request: Request, _ range: Range<Int64>) { self.init(.creation, request, range) }
    convenience init(asking request: Request, _ length: Int64) { self.init(.question, request, length..<length) }
    convenience init(appending request: Request, _ range: Range<Int64>) { self.init(.addition, request, range) }

    func note(_ redirect: Redirect) {
        url = redirect.request.url
        // See Other leads from what was uploaded to what has become of it.
        if redirect.request.method != request.method { isAnswered = true }
    }
}

extension ResumableUpload {
    /// The caller's request with the whole, or the first part (draft §4.2.1).
    func creation(_ range: Range<Int64>) -> Request {
        var creation = request
        creation.body = source.body(range)
        creation.headers[.uploadComplete] = StructuredField.text(range.upperBound == length)
        creation.headers[.uploadLength] = StructuredField.text(length)
        creation.headers[.uploadInteropVersion] = StructuredField.text(ResumableUploads.interopVersion)
        return creation
    }

    /// How far it is (draft §4.3.1).
    func question() throws(LoadError) -> Request { try toResource(.head) }

    /// A part (draft §4.4.1).
    func addition(_ range: Range<Int64>) throws(LoadError) -> Request {
        var addition = try toResource(.patch)
        addition.body = source.body(range)
        addition.headers[.contentType] = ResumableUploads.mediaType
        addition.headers[.uploadOffset] = StructuredField.text(range.lowerBound)
        addition.headers[.uploadComplete] = StructuredField.text(range.upperBound == length)
        return addition
    }

    private func toResource(_ method: Method) throws(LoadError) -> Request {
        guard let token else { throw UploadPlan.inconsistent("nowhere to go on") }
        return request.toUpload(at: token.url, method)
    }

    /// Where a Location leads; `nil` if it may not be used, so that the upload goes on as a plain one.
    func place(_ location: String, _ exchange: UploadExchange) -> URL? {
        Self.place(location, from: exchange.url, for: request)
    }

    /// - Parameter url: that of the request which was answered.
    static func place(_ location: String, from url: URL, for request: Request) -> URL? {
        guard let base = try? URIReference(url.absoluteString), let reference = try? URIReference(location),
            let resolved = try? base.resolve(reference), resolved.userinfo == nil,
            let place = URL(string: String(resolved.absoluteString.prefix { $0 != "#" })),
            Request(url: place).goes(where: request)
        else { return nil }
        return place
    }

    /// Redirects of the caller's own request are the caller's; those of the upload resource are ours.
    func decisions(for exchange: UploadExchange) -> Decisions? {
        guard exchange.kind != .creation else { return decisions }
        var decisions = decisions ?? Decisions()
        // What the caller decides about is the answer to the whole.
        if exchange.kind == .question || exchange.range.upperBound < length { decisions.response = nil }
        decisions.redirect = .ofUpload(within: request)
        return decisions
    }
}

extension Decision where Question == Redirect, Answer == RedirectDecision {
    /// Draft §4.3.2, §4.4.2: 307 and 308 move an upload resource, and with it nobody else's; 303 after the
    /// last part leads to what has become of it.
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
    /// A request to an upload resource, in the name of the one that created it: the fields that say who
    /// asks are kept, those that describe the representation are not.
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

    /// RFC 9110 §8, RFC 9530, RFC 6266, and the conditions of §13, which were meant for another resource.
    private static let representationFields: [FieldName] = [
        .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation, .contentRange,
        .contentDisposition, .transferEncoding, .trailer, .expect, .range, .ifMatch, .ifNoneMatch, .ifModifiedSince,
        .ifUnmodifiedSince, .ifRange, "Content-MD5", "Digest", "Repr-Digest", "Content-Digest", "Want-Repr-Digest",
        "Want-Content-Digest",
    ]
}

/// The end of an upload that nobody wants any more (draft §4.5).
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
        // What is not there any more needs no end.
        guard head.status.kind == .successful || head.status == .notFound || head.status == .gone else {
            throw UploadPlan.refused(UploadAnswer(head)).at(response.url)
        }
    }
}
