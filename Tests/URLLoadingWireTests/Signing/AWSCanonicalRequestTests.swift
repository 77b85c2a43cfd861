// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// Canonical requests of AWS Signature Version 4.
@Suite struct AWSCanonicalRequestTests {
    @Test("The path of a service: segments are normal, and escaped again") func normalized() {
        for (target, path) in [
            ("/", "/"), ("", "/"), ("/a/b", "/a/b"), ("/a/b/", "/a/b/"), ("//a///b", "/a/b"), ("/a/./b/../c", "/a/c"),
            ("/..", "/"), ("/a/..", "/"), ("/a/.", "/a"), ("/a/b/..", "/a"), ("/a/b/../", "/a/"), ("/a/../", "/"),
            ("/a%20b", "/a%2520b"), ("/a:b", "/a%3Ab"), ("/?a", "/"),
            ("/-._~", "/-._~"), ("/a%2Fb", "/a%252Fb"),
        ] {
            #expect(AWSCanonicalRequest.path(target, .normalized) == path, "\(target)")
        }
    }

    @Test("The path of S3: kept, and escaped once") func asSent() {
        for (target, path) in [
            ("/", "/"), ("//a/./b/../c", "//a/./b/../c"), ("/a%20b", "/a%20b"), ("/a:b!", "/a%3Ab%21"),
            ("/%E1%88%B4?x", "/%E1%88%B4"), ("/a%2fb", "/a%2Fb"), ("/a%2F/%zz:", "/a%2F/%25zz%3A"), ("/a%", "/a%25"),
            ("/test%24file.text", "/test%24file.text"),
        ] {
            #expect(AWSCanonicalRequest.path(target, .asSent) == path, "\(target)")
        }
    }

    @Test("The query: sorted by names, then by values, each escaped") func query() {
        for (target, query) in [
            ("/", ""), ("/?", ""), ("/?a", "a="), ("/?b=2&a=1", "a=1&b=2"), ("/?a=b&a=a&a", "a=&a=a&a=b"),
            ("/?A=1&a=2&B=3", "A=1&B=3&a=2"), ("/?a=%7e&b=%2f", "a=~&b=%2F"), ("/?a=b=c", "a=b%3Dc"),
            ("/?a=b+c&d=e%2Bf", "a=b%20c&d=e%2Bf"), ("/?&a=1&&b=2&", "a=1&b=2"), ("/?%E1%88%B4=bar", "%E1%88%B4=bar"),
            ("/?a=%", "a=%25"), ("/?a1=1&a=2", "a=2&a1=1"), ("/?a=1&a%20=2", "a=1&a%20=2"),
        ] {
            #expect(AWSCanonicalRequest.query(target) == query, "\(target)")
        }
    }

    @Test("Fields: in lower case and order, joined, blanks as one") func fields() {
        let fields = [
            (name: "X-B", value: " a   b\tc "), ("Host", "h"), ("x-b", "d"), ("X-A", ""), ("X-Q", "\"a   b\""),
        ]
        #expect(AWSCanonicalRequest.names(fields) == "host;x-a;x-b;x-q")
        #expect(
            AWSCanonicalRequest.text(method: "GET", target: "/", fields: fields, payload: "p", rule: .normalized)
                == "GET\n/\n\nhost:h\nx-a:\nx-b:a b c,d\nx-q:\"a b\"\n\nhost;x-a;x-b;x-q\np")
    }

    @Test("The file of credentials") func profiles() {
        let file = AWSProfileFile(
            """
            stray = 1
            # comment
            [default]
            aws_access_key_id=AK
            aws_secret_access_key = a=b/+ \r
            [ other ]
            AWS_Access_Key_ID = first
            aws_access_key_id = second
            nested =
              aws_secret_access_key = not this
            ; aws_secret_access_key = nor this
            empty =
            """)
        #expect(file.value("aws_access_key_id", of: "default") == "AK")
        #expect(file.value("aws_secret_access_key", of: "default") == "a=b/+")
        #expect(file.value("aws_access_key_id", of: "other") == "second")
        #expect(file.value("aws_secret_access_key", of: "other") == nil && file.value("empty", of: "other") == nil)
        #expect(file.contains("other") && !file.contains("missing"))
    }
}
