// SPDX-License-Identifier: Apache-2.0

// The pause that a server asks its client for in the fields of a response.

import FoundationEssentials
import URLLoadingWire

enum ServerPause {
    /// The seconds for which a server wants no further request; `nil` if it says nothing of the kind.
    static func seconds(_ head: HTTPHead) -> Int64? {
        let asked = [retryAfter(head), remaining(head.headers), separate(head.headers)].compactMap(\.self)
        return asked.max()
    }

    /// Retry-After of 429 and 503 (RFC 9110 §10.2.3, RFC 6585 §4). A date is relative to the server's clock.
    private static func retryAfter(_ head: HTTPHead) -> Int64? {
        guard head.status == .tooManyRequests || head.status == .serviceUnavailable else { return nil }
        let now = HTTPDate(secondsSince1970: Int64(Date.now.timeIntervalSince1970))
        guard let text = head.headers[.retryAfter], let after = RetryAfter(text, now: now) else { return nil }
        return after.seconds(after: head.headers[.date].flatMap { HTTPDate($0, now: now) } ?? now)
    }

    /// `RateLimit: "policy";r=0;t=30`: of all policies without a rest the longest time.
    private static func remaining(_ headers: Headers) -> Int64? {
        guard let text = headers["RateLimit"], let list = StructuredField.list(text) else { return nil }
        return list.compactMap { member -> Int64? in
            guard case .item(let item) = member, item.integer("r") == 0 else { return nil }
            return item.integer("t")
        }.max()
    }

    /// `RateLimit-Remaining: 0` with `RateLimit-Reset: 30`, of earlier drafts.
    private static func separate(_ headers: Headers) -> Int64? {
        guard headers["RateLimit-Remaining"].flatMap(StructuredField.integer) == 0 else { return nil }
        return headers["RateLimit-Reset"].flatMap(StructuredField.integer).flatMap { $0 < 0 ? nil : $0 }
    }
}

extension StructuredField.Item {
    /// The value of a parameter that is a whole number from 0.
    fileprivate func integer(_ key: String) -> Int64? {
        guard case .integer(let number)? = parameters.first(where: { $0.key == key })?.value, number >= 0 else {
            return nil
        }
        return number
    }
}
