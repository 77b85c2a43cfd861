// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import urlload

struct AddressTests {
    @Test(
        "A missing scheme is http for this machine, otherwise https",
        arguments: [
            ("http://a.example/x", "http://a.example/x"),
            ("a.example/x", "https://a.example/x"),
            ("localhost:8080/x", "http://localhost:8080/x"),
            ("LocalHost", "http://LocalHost"),
            ("127.0.0.1:1", "http://127.0.0.1:1"),
            ("[::1]:8080/", "http://[::1]:8080/"),
            ("localhost.example/", "https://localhost.example/"),
        ])
    func aSchemeIsAdded(_ typed: String, _ url: String) {
        #expect(AddressText.url(typed)?.absoluteString == url)
    }

    @Test("Userinfo is not shown in messages") func userinfoIsNotShown() throws {
        let url = try #require(URL(string: "http://ada:secret@a.example/p@q?r=s@t"))
        #expect(AddressText.shown(url) == "http://a.example/p@q?r=s@t")
    }

    @Test(
        "Userinfo of an address without a scheme is not shown in messages (security 81)",
        arguments: [
            ("ada:s3cret@a.test/x", "a.test/x"), ("ada@a.test", "a.test"), ("ada:s3 cret@a.test/", "a.test/"),
            ("ada:s3/cret@a.test/", "a.test/"), ("ada:s3cret@a.test:99999/", "a.test:99999/"),
            ("http://ada:s3cret@a.test/", "http://a.test/"), ("a.test:8080/x", "a.test:8080/x"),
            ("a.test:8080/x@y", "a.test:8080/x@y"), ("a.test/x@y", "a.test/x@y"), ("me file", "me file"),
            ("data:,a@b", "data:,a@b"),
        ])
    func userinfoWithoutSchemeIsNotShown(_ typed: String, _ shown: String) {
        #expect(AddressText.inMessage(typed) == shown)
    }

    @Test(
        "File names from URLs cannot leave the folder, hide or control a terminal",
        arguments: [
            ("http://a/x/file.tar.gz?v=1", "file.tar.gz"),
            ("http://a/", "index.html"),
            ("http://a", "index.html"),
            ("http://a/x/", "index.html"),
            ("http://a/caf%C3%A9.txt", "café.txt"),
            ("http://a/..%2F..%2Fetc%2Fpasswd", "_._.._etc_passwd"),
            ("http://a/.bashrc", "_bashrc"),
            ("http://a/-rf", "_rf"),
            ("http://a/a%1B%5B31m", "a_[31m"),
            ("http://a/a%00b", "a_b"),
            ("http://a/a%E2%80%AEb", "a_b"),
            ("http://a/%FF", "%FF"),
            ("http://a/a%5Cb", "a_b"),
        ])
    func fileNamesAreSafe(_ url: String, _ name: String) throws {
        #expect(FileName.make(for: try #require(URL(string: url))) == name)
    }

    @Test("File names from URLs have at most 255 bytes") func fileNamesAreShortEnough() throws {
        let url = try #require(URL(string: "http://a/" + String(repeating: "%C3%A9", count: 300)))
        #expect(FileName.make(for: url).utf8.count == 254)
    }

    @Test(
        "File names of one run differ and have at most 255 bytes",
        arguments: [
            (["a", nil, "b"], ["a", nil, "b"]), (["a", "a", "a"], ["a", "a.1", "a.2"]),
            (["a", "a", "a.1"], ["a", "a.2", "a.1"]), (["a.1", "a", "a"], ["a.1", "a", "a.2"]),
        ] as [([String?], [String?])])
    func distinctNames(_ names: [String?], _ expected: [String?]) {
        #expect(FileName.distinct(names).map { $0?.own } == expected)
        let long = String(repeating: "x", count: 255)
        let own = FileName.distinct([long, long]).compactMap { $0?.own }
        #expect(own == [long, String(repeating: "x", count: 253) + ".1"])
    }
}
