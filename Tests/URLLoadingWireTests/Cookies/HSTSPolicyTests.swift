// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

/// RFC 6797 §6.1.
struct HSTSPolicyTests {
    @Test(
        "Valid Strict-Transport-Security fields are read",
        arguments: [
            ("max-age=31536000", Int64(31_536_000), false), ("MAX-AGE=\"60\" ; includeSubDomains", 60, true),
            (" includeSUBdomains;;max-age=0; preload", 0, true), ("max-age=1; x=\"a;b\\\"c\"; y", 1, false),
            ("max-age = 5", 5, false), ("max-age=99999999999999999999999999", .max, false),
            ("max-age=\"\\6\"", 6, false), (";max-age=1;", 1, false),
        ])
    func heard(_ text: String, _ age: Int64, _ includes: Bool) {
        let policy = HSTSPolicy(text.utf8)
        #expect(policy?.maximumAge == age && policy?.includesSubdomains == includes)
    }

    @Test(
        "Invalid fields are ignored",
        arguments: [
            "", "includeSubDomains", "max-age", "max-age=", "max-age=x", "max-age=-1", "max-age=1.5", "max-age=1 2",
            "max-age=1; max-age=2",
            "max-age=1; includeSubDomains; includesubdomains", "max-age=1; includeSubDomains=1", "max-age=1; a b",
            "max-age=\"1", "max-age=\"\"",
            "max-age=1; =x", "max-age=1, includeSubDomains", "max-age=1; x=\"a", "max-age=1; x=", "max-age=\"1\\",
        ])
    func ignored(_ text: String) { #expect(HSTSPolicy(text.utf8) == nil) }

    @Test(
        "http becomes https, port 80 becomes 443, other ports stay (RFC 6797 §8.3)",
        arguments: [
            ("http://a/", "https://a/"), ("HTTP://A:80/x?y#z", "HTTPs://A:443/x?y#z"),
            ("http://a:8080", "https://a:8080"),
            ("http://u:80@a:80/:80", "https://u:80@a:443/:80"), ("http://[::1]:80", "https://[::1]:443"),
            ("http://a:/", "https://a:/"),
        ])
    func upgrade(_ text: String, _ secure: String) throws {
        let upgraded = try URIReference(text).securingHTTP?.absoluteString
        #expect(upgraded == secure)
    }

    @Test("URLs of other schemes are not changed", arguments: ["https://a/", "ftp://a/", "//a/", "http:a"])
    func others(_ text: String) throws {
        let upgraded = try URIReference(text).securingHTTP
        #expect(upgraded == nil)
    }
}
