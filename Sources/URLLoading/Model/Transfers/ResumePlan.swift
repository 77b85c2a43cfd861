// SPDX-License-Identifier: Apache-2.0

// Interprets the response to a request for the rest of a representation (RFC 9110 §13.1.5, §14.2, §15.3.7): a file must
// never mix two versions of the content. Pure.

import FoundationEssentials
import URLLoadingWire

enum ResumePlan: Equatable {
    /// 206 with exactly the rest of the same content: it is appended to the partial file.
    case append
    /// 200 with the whole content: the partial file is replaced.
    case restart
    /// 206 with another range, or without proof of the same content: appended, it could mix two versions in one file.
    case mismatch
    /// Any other status: the partial file is unchanged.
    case refused

    /// - Parameters:
    ///   - offset: the requested offset; 0 if the whole was requested.
    ///   - length: the length of the whole content, if known.
    ///   - validator: the validator of the partial content.
    static func make(_ head: HTTPHead, offset: Int64, length: Int64?, validator: ResumeValidator) -> ResumePlan {
        switch head.status {
        case .ok: return .restart
        case .partialContent: return isRemainder(head, offset, length, validator) ? .append : .mismatch
        default: return .refused
        }
    }

    private static func isRemainder(_ head: HTTPHead, _ offset: Int64, _ length: Int64?, _ validator: ResumeValidator)
        -> Bool
    {
        guard offset > 0, let (range, total) = part(of: head, length, validator) else { return false }
        return range.lowerBound == offset && range.upperBound == total ?? length ?? range.upperBound
    }

    /// Returns whether a response is the requested part of the same content, and nothing else.
    static func isPart(_ head: HTTPHead, _ wanted: Range<Int64>, length: Int64, validator: ResumeValidator) -> Bool {
        head.status == .partialContent && part(of: head, length, validator)?.range == wanted
    }

    /// The range of a 206 response of the same content; `nil` for any other content, or if the fields contradict each
    /// other. Several ranges in one response (RFC 9110 §14.6) have no Content-Range.
    private static func part(of head: HTTPHead, _ length: Int64?, _ validator: ResumeValidator) -> (
        range: Range<Int64>, total: Int64?
    )? {
        guard case .part(let range, let total)? = head.headers[.contentRange].flatMap({ ContentRange($0) }),
            length == nil || total == nil || length == total, validator.isRepeated(by: head.headers),
            states(head.headers, range.upperBound - range.lowerBound),
            // A coded part does not continue a partial file that is not coded.
            !head.headers.contains(.contentEncoding)
        else { return nil }
        return (range, total)
    }

    /// Returns the end of the range of a 206 response, which the body must reach exactly (RFC 9110 §14.4).
    static func end(of head: HTTPHead) -> Int64? {
        guard case .part(let range, _)? = head.headers[.contentRange].flatMap({ ContentRange($0) }) else { return nil }
        return range.upperBound
    }

    /// Returns whether the Content-Length, if there is one, is the length of the range.
    private static func states(_ headers: Headers, _ count: Int64) -> Bool {
        guard let stated = headers[.contentLength] else { return true }
        return Int64(stated) == count
    }

    /// Returns the validator of a response; `nil` if it cannot be resumed.
    static func validator(of head: HTTPHead, method: Method) -> ResumeValidator? {
        guard method == .get, head.status == .ok, !head.headers.contains(.contentEncoding),
            head.headers["Accept-Ranges"]?.lowercased() != "none"
        else { return nil }
        return ResumeValidator(of: head.headers)
    }
}

/// The validator of a representation for If-Range (RFC 9110 §13.1.5).
enum ResumeValidator: Sendable, Equatable {
    /// A strong entity tag, as bytes, because its UTF-8 and its Latin-1 form are different tags.
    case tag(EntityTag)
    /// A date that is a strong validator (§8.8.2.2); for FTP, size and date in a format of this library.
    case text(String)

    /// Takes a strong tag, or a Last-Modified at least a minute older than the Date; `nil` without either.
    init?(of headers: Headers) {
        if let tag = EntityTag(in: headers) {
            guard !tag.isWeak else { return nil }
            self = .tag(tag)
            return
        }
        guard let text = headers[.lastModified], let modified = HTTPDate(text),
            let date = headers["Date"].flatMap({ HTTPDate($0) }),
            date.secondsSince1970 - modified.secondsSince1970 >= 60
        else { return nil }
        self = .text(text)
    }

    /// Creates a validator from a token.
    /// - Parameter bytes: the field value, if it differs from the text in UTF-8.
    init(_ text: String, _ bytes: Data?) {
        let tag = bytes.map { EntityTag(Array($0)[...]) } ?? EntityTag(text)
        self = tag.map { .tag($0) } ?? .text(text)
    }

    var description: String {
        switch self {
        case .tag(let tag): tag.description
        case .text(let text): text
        }
    }

    /// The field value, if it differs from ``description`` in UTF-8.
    var bytes: Data? {
        guard case .tag(let tag) = self, !tag.fieldValue.elementsEqual(tag.description.utf8) else { return nil }
        return Data(tag.fieldValue)
    }

    /// Sets the fields that request everything from `offset` on, if the representation is unchanged.
    /// - Parameter end: the end of the requested bytes; `nil` for that of the content.
    func addCondition(to headers: inout Headers, from offset: Int64, upTo end: Int64? = nil) {
        headers[.range] = "bytes=\(offset)-\(end.map { "\($0 - 1)" } ?? "")"
        headers.remove(.ifRange)
        switch self {
        case .tag(let tag): tag.append(to: &headers, as: .ifRange)
        case .text(let text): headers[.ifRange] = text
        }
    }

    /// Returns whether a 206 repeats the validator. One that does not may come from a server that ignores If-Range and
    /// has different content by now.
    func isRepeated(by headers: Headers) -> Bool {
        switch self {
        case .tag(let tag): tag.matchesStrongly(EntityTag(in: headers))
        case .text(let text): headers[.lastModified] == text
        }
    }
}
