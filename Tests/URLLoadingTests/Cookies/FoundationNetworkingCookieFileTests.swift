// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// Importing cookies from FoundationNetworking.
@Suite(.timeLimit(.minutes(1)))
struct FoundationNetworkingCookieFileTests {
    private func entry(_ name: String, _ domain: String = "example.org", _ more: String = "") -> String {
        """
        <key>\(domain)/\(name)</key><dict>\
        <key>Domain</key><string>\(domain)</string><key>Name</key><string>\(name)</string>
        <key>Path</key><string>/</string><key>Value</key><string>v</string>\
        <key>Version</key><integer>0</integer>\(more)</dict>
        """
    }

    private func list(_ entries: String...) -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0"><dict>\(entries.joined())</dict></plist>
        """
    }

    private func withFile<R>(_ text: some Sequence<UInt8>, _ use: (URL) throws -> R) throws -> R {
        let file = temporaryURL("cookies")
        try Data(text).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        return try use(file)
    }

    private func imported(_ text: String) throws -> [Cookie] {
        let store = CookieStore()
        let count = try withFile(text.utf8) { try store.importCookies(foundationNetworkingFile: $0) }
        #expect(count == store.all.count)
        return store.all.sorted { $0.name < $1.name }
    }

    private static let far = "<key>Expires</key><real>4102444800.5</real>"

    @Test("cookies are imported with their domain, path, expiry and security")
    func all() throws {
        let cookies = try imported(
            list(
                entry("host", "example.org", Self.far + "<key>Secure</key><false/>"),
                entry("wide", ".example.org", Self.far + "<key>Secure</key><true/>"),
                entry(
                    "numbered", "example.org",
                    "<key>Expires</key><integer>4102444800</integer><key>Port</key><array><integer>80</integer></array>"
                ),
                entry("session", "127.0.0.1")))
        #expect(cookies.map(\.name) == ["host", "numbered", "session", "wide"])
        #expect(cookies.map(\.domain) == ["example.org", "example.org", "127.0.0.1", "example.org"])
        #expect(
            cookies.map(\.isHostOnly) == [true, true, true, false]
                && cookies.map(\.isSecure) == [false, false, false, true])
        #expect(cookies[0].expires == Date(timeIntervalSince1970: 4_102_444_800.5) && cookies[2].expires == nil)
    }

    @Test("entities are decoded; comments and unknown elements are ignored")
    func syntax() throws {
        let cookies = try imported(
            list(
                "<!-- a comment --><key>x</key><array><dict><key>Name</key><string>x</string></dict></array>",
                entry(
                    "a&amp;b&#65;&#x42;&lt;&nope;&", "example.org",
                    "<key>Created</key><date>2026-01-01T00:00:00Z</date><key>Note</key><string/>")))
        #expect(cookies.map(\.name) == [])
        let entities = try imported(list(entry("a&amp;b&#65;&#x42;&lt;", "example.org", Self.far)))
        #expect(entities.map(\.name) == ["a&bAB<"])
        let unknown = try imported(list(entry("&nope&", "example.org", Self.far)))
        #expect(unknown.map(\.name) == ["&nope&"])
    }

    @Test("expired, invalid and incomplete cookies are skipped")
    func passedOver() throws {
        let cookies = try imported(
            list(
                entry("good", "example.org", Self.far),
                entry("past", "example.org", "<key>Expires</key><real>1000</real>"),
                entry("suffix", ".co.uk", Self.far), entry("semi;colon", "example.org", Self.far),
                entry("nohost", "a b", Self.far),
                entry("__Host-x", "example.org", Self.far),
                entry("text", "example.org", "<key>Expires</key><string>soon</string>"),
                "<key>a</key><string>b</string>", "<key>c</key><dict><key>Name</key><string>c</string></dict>"))
        #expect(cookies.map(\.name) == ["good"])
    }

    @Test(
        "another kind of file is an error, and no cookie is set",
        arguments: [
            "", "not a list", "<plist", "<plist version=\"1.0\"><array/></plist>", "bplist00",
            "# Netscape HTTP Cookie File\n",
        ])
    func bad(_ text: String) throws { try expectRefusal(text) }

    @Test(
        "a file with elements nested a hundred thousand deep is an error",
        arguments: ["<array>", "<dict><key>a</key>"])
    func nested(_ element: String) throws {
        try expectRefusal("<?xml version=\"1.0\"?><plist version=\"1.0\">" + String(repeating: element, count: 100_000))
    }

    private func expectRefusal(_ text: String) throws {
        let store = CookieStore()
        try withFile(text.utf8) { file in
            let error = #expect(throws: LoadError.self) { try store.importCookies(foundationNetworkingFile: file) }
            #expect(error?.reason == .cannotReadFile && error?.url == file && store.all.isEmpty)
            #expect(error?.description.contains("cookie file") == true)
        }
    }

    @Test("a missing file, a file that is too large, and a directory are errors")
    func unreadable() throws {
        let store = CookieStore()
        func reason(_ file: URL) -> LoadError.Reason? {
            #expect(throws: LoadError.self) { try store.importCookies(foundationNetworkingFile: file) }?.reason
        }
        #expect(reason(URL(filePath: "/nothing/here")) == .fileNotFound)
        #expect(reason(FileManager.default.temporaryDirectory) == .cannotReadFile)
        #expect(reason(URL(filePath: "/dev/zero")) == .cannotReadFile)
        #expect(URL(string: "http://example.org/").map(reason) == .cannotReadFile)
        try withFile(repeatElement(0x20, count: 4 << 20 + 1)) { file in #expect(reason(file) == .cannotReadFile) }
    }

    @Test("no truncated or altered input crashes the reader")
    func damaged() throws {
        let bytes = Array(list(entry("a", "example.org", Self.far), entry("b", ".example.org", Self.far)).utf8)
        for count in stride(from: 0, to: bytes.count, by: 7) {
            _ = try? FoundationNetworkingCookieFile.cookies(in: bytes[..<count])
        }
        var random = SeededGenerator(seed: 1)
        for place in bytes.indices {
            var changed = bytes
            changed[place] = UInt8.random(in: 0...255, using: &random)
            _ = try? FoundationNetworkingCookieFile.cookies(in: changed)
        }
    }
}
