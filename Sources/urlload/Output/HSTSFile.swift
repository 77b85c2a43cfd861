// SPDX-License-Identifier: Apache-2.0

// HSTS hosts in curl's format: `.example.org "20300101 00:00:00"`; a leading dot includes subdomains.

import FoundationEssentials
import URLLoading
import URLLoadingWire

enum HSTSFile {
    static func read(_ text: String) -> [HSTSHost] {
        text.split { $0.isNewline }.compactMap { line in
            let parts = line.split(separator: " ", maxSplits: 1)
            guard line.first != "#", parts.count == 2 else { return nil }
            let end = parts[1].filter { $0 != "\"" }
            guard let expires = end == "unlimited" ? Date.distantFuture : date(end) else { return nil }
            return HSTSHost(String(parts[0]), includesSubdomains: parts[0].first == ".", expires: expires)
        }
    }

    static func text(_ hosts: [HSTSHost]) -> String {
        hosts.reduce(into: "# Hosts that are loaded with https only (HSTS), for urlload and curl\n") { text, host in
            let date = HTTPDate(secondsSince1970: Int64(min(host.expires, .distantFuture).timeIntervalSince1970))
            let end = host.expires >= .distantFuture ? "unlimited" : words(date)
            text += "\(host.includesSubdomains ? "." : "")\(host.name) \"\(end)\"\n"
        }
    }

    /// Converts `Tue, 01 Jan 2030 00:00:00 GMT` to `20300101 00:00:00`.
    private static func words(_ date: HTTPDate) -> String {
        let parts = date.description.split(separator: " ")
        let month = (months.firstIndex(of: String(parts[2])) ?? 0) + 1
        return "\(parts[3])\(month < 10 ? "0" : "")\(month)\(parts[1]) \(parts[4])"
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func date(_ text: String) -> Date? {
        let bytes = Array(text.utf8)
        guard bytes.count == 17, bytes[..<8].allSatisfy({ (0x30...0x39).contains($0) }),
            let month = Int(text.dropFirst(4).prefix(2)),
            (1...12).contains(month)
        else { return nil }
        let (year, day, time) = (text.prefix(4), text.dropFirst(6).prefix(2), text.suffix(8))
        return HTTPDate("Mon, \(day) \(months[month - 1]) \(year) \(time) GMT").map {
            Date(timeIntervalSince1970: Double($0.secondsSince1970))
        }
    }
}
