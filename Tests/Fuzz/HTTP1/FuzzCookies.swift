// SPDX-License-Identifier: Apache-2.0

import URLLoadingWire

func fuzzCookies(_ bytes: [UInt8]) {
    if let date = CookieDate.parse(bytes) {
        promise((-11_644_473_600...253_402_300_799).contains(date), "a date has four digits of a year")
    }
    let now: Int64 = 1_700_000_000
    if let set = SetCookie(bytes, now: now) {
        promise(!bytes.contains { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }, "no control character gets in")
        promise(!set.name.isEmpty || !set.value.isEmpty, "a cookie is something")
        promise(!set.name.contains("=") && !(set.name + set.value).contains(";"), "what is sent is one cookie")
        promise((set.expires ?? 0) <= now + SetCookie.longestLife, "no cookie is for ever")
        promise(set.path.map { $0.utf8.first == UInt8(ascii: "/") } ?? true, "a path begins with a slash")
    }
    if let policy = HSTSPolicy(bytes) { promise(policy.maximumAge >= 0, "an age is a count") }
    let text = String(decoding: bytes, as: UTF8.self)
    if let line = CookieFileLine(text) {
        promise(line.text.flatMap { CookieFileLine($0) } == line, "a line reads as itself")
        promise(line.text?.utf8.contains { $0 == 0x0A || $0 == 0x0D } == false, "a line is one")
    }
    // Bytes of a request line are ASCII (RFC 3986 §2).
    let target = bytes.map { $0 & 0x7F }
    let path = CookieScope.defaultPath(of: target)
    promise(
        CookieScope.matches(path: path, requestPath: CookieScope.path(of: target)) || target.first != UInt8(ascii: "/"),
        "a default path is one of its own")
    promise(String(validating: path.utf8, as: UTF8.self) != nil, "a path is text")
}
