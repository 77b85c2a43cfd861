// What an answer to a request for the rest of a representation means (RFC 9110 §13.1.5, §14.2, §15.3.7, security 79).
// Pure.

import FoundationEssentials
import URLLoadingWire

enum ResumePlan: Equatable {
    /// 206 with exactly the rest of the same content: written behind what is held.
    case append
    /// 200, the whole from its beginning: what is held is given up.
    case restart
    /// 206 with something else, or with something that may be: behind what is held it would make one file of two.
    case mismatch
    /// Any other status: what is held stays as it was.
    case refused

    /// - Parameters:
    ///   - offset: where the rest was asked from; at 0 the whole was.
    ///   - length: how many bytes the whole had, if that is known.
    ///   - validator: what the whole was known by.
    static func make(_ head: HTTPHead, offset: Int64, length: Int64?, validator: ResumeValidator) -> ResumePlan {
        switch head.status {
        case .ok: return .restart
        case .partialContent: return isRest(head, offset, length, validator) ? .append : .mismatch
        default: return .refused
        }
    }

    private static func isRest(_ head: HTTPHead, _ offset: Int64, _ length: Int64?, _ validator: ResumeValidator)
        -> Bool
    {
        guard offset > 0, case .part(let range, let total)? = head.headers[.contentRange].flatMap({ ContentRange($0) })
        else { return false }
        if let length, let total, length != total { return false }
        return range.lowerBound == offset && range.upperBound == total ?? length ?? range.upperBound
            && validator.isRepeated(by: head.headers) && states(head.headers, range.upperBound - range.lowerBound)
            // A coded part is no part of what is held, which is not coded.
            && !head.headers.contains(.contentEncoding)
    }

    /// Where the part that a 206 carries ends; what comes must be exactly that (RFC 9110 §14.4).
    static func end(of head: HTTPHead) -> Int64? {
        guard case .part(let range, _)? = head.headers[.contentRange].flatMap({ ContentRange($0) }) else { return nil }
        return range.upperBound
    }

    /// A length that is stated is that of the part.
    private static func states(_ headers: Headers, _ count: Int64) -> Bool {
        guard let stated = headers[.contentLength] else { return true }
        return Int64(stated) == count
    }

    /// `nil` if the response cannot be resumed.
    static func validator(of head: HTTPHead, method: Method) -> ResumeValidator? {
        guard method == .get, head.status == .ok, !head.headers.contains(.contentEncoding),
            head.headers["Accept-Ranges"]?.lowercased() != "none"
        else { return nil }
        return ResumeValidator(of: head.headers)
    }
}

/// What a representation is known by when its rest is asked for: the value of If-Range (RFC 9110 §13.1.5).
enum ResumeValidator: Sendable, Equatable {
    /// A strong entity tag, as bytes: the same text in UTF-8 and in Latin-1 is two tags.
    case tag(EntityTag)
    /// A date that is known to be a strong validator (§8.8.2.2); over ftp, size and date in a form of our own.
    case text(String)

    /// A strong tag, or the date of a response that is at least a minute younger; `nil` without either.
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

    /// As a token keeps it.
    /// - Parameter bytes: what is sent, where that is not the text in UTF-8.
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

    /// What is sent, where that is not ``description`` in UTF-8.
    var bytes: Data? {
        guard case .tag(let tag) = self, !tag.fieldValue.elementsEqual(tag.description.utf8) else { return nil }
        return Data(tag.fieldValue)
    }

    /// Asks for everything from `offset` on, if the representation is still the same.
    func addCondition(to headers: inout Headers, from offset: Int64) {
        headers[.range] = "bytes=\(offset)-"
        headers.remove(.ifRange)
        switch self {
        case .tag(let tag): tag.append(to: &headers, as: .ifRange)
        case .text(let text): headers[.ifRange] = text
        }
    }

    /// Whether a 206 says that its part is of the same representation. One that does not say so may come from a server
    /// that does not know If-Range and has other content by now.
    func isRepeated(by headers: Headers) -> Bool {
        switch self {
        case .tag(let tag): tag.matchesStrongly(EntityTag(in: headers))
        case .text(let text): headers[.lastModified] == text
        }
    }
}
