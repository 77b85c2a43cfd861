// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import URLLoadingWire

extension HTTPDate {
    /// The date of a moment, rounded down to a whole second.
    ///
    /// ```swift
    /// request.headers["Date"] = HTTPDate(.now).description     // Thu, 26 Nov 2026 03:50:00 GMT
    /// ```
    public init(_ date: Date) {
        let seconds = date.timeIntervalSince1970.rounded(.down)
        self.init(secondsSince1970: seconds.isNaN ? 0 : Int64(max(-9e15, min(9e15, seconds))))
    }
}
