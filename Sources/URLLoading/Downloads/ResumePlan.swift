// What an answer to a request for the rest of something means (RFC 9110 §14.2, §13.1.5, security 79).
// Pure.

import URLLoadingWire

enum ResumePlan: Equatable {
    /// The rest: written behind what is held.
    case append
    /// The whole, from its beginning: what is held is given up.
    case restart
    /// Neither: the whole must be asked for.
    case askForAll
    /// An error, or an answer of another kind: the result as it is, and what is held stays as it was.
    case deliver

    /// - Parameters:
    ///   - offset: where the rest was asked from.
    ///   - length: how many bytes the whole had, if that is known.
    ///   - validator: what the whole was known by.
    static func make(_ head: HTTPHead, offset: Int64, length: Int64?, validator: String) -> ResumePlan {
        switch head.status {
        case .partialContent:
            // Anything but exactly the rest of exactly that would be put together with something else.
            guard case .part(let range, let total)? = head.headers["Content-Range"].flatMap({ ContentRange($0) }),
                range.lowerBound == offset, range.upperBound == total ?? range.upperBound,
                length == nil || total == nil || length == total, agrees(head.headers, validator),
                states(head.headers, range.upperBound - range.lowerBound)
            else { return .askForAll }
            return .append
        case .rangeNotSatisfiable: return .askForAll
        default: return head.status.kind == .successful ? .restart : .deliver
        }
    }

    /// Where the part that a 206 carries ends; what comes must be exactly that (RFC 9110 §14.4).
    static func end(of head: HTTPHead) -> Int64? {
        guard case .part(let range, _)? = head.headers["Content-Range"].flatMap({ ContentRange($0) }) else { return nil }
        return range.upperBound
    }

    /// A length that is stated is that of the part.
    private static func states(_ headers: Headers, _ count: Int64) -> Bool {
        guard let stated = headers[.contentLength] else { return true }
        return Int64(stated) == count
    }

    /// A validator in a 206 must be the one that was asked for; it need not be there (§15.3.7).
    private static func agrees(_ headers: Headers, _ validator: String) -> Bool {
        if let tag = EntityTag(validator) {
            guard headers.contains("ETag") else { return true }
            return tag.matchesStrongly(EntityTag(in: headers))
        }
        guard let modified = headers["Last-Modified"] else { return true }
        return modified == validator
    }

    /// What If-Range may be sent with: a strong tag, or a date that is known to be one (§8.8.2.2: the
    /// response is at least a minute younger). `nil` if the response cannot be resumed.
    static func validator(of head: HTTPHead, method: Method) -> String? {
        let headers = head.headers
        guard method == .get, head.status == .ok, !headers.contains(.contentEncoding),
            headers["Accept-Ranges"]?.lowercased() != "none"
        else { return nil }
        if let tag = EntityTag(in: headers) { return tag.isWeak ? nil : tag.description }
        guard let text = headers["Last-Modified"], let modified = HTTPDate(text), let date = headers["Date"].flatMap({ HTTPDate($0) }),
            date.secondsSince1970 - modified.secondsSince1970 >= 60
        else { return nil }
        return text
    }
}
