// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// Secrets are removed from texts for messages and logs (security 81).
@Suite(.timeLimit(.minutes(4)))
struct SecretsTests {
    @Test(
        "Userinfo and secret parameters are removed from URLs in a text",
        arguments: [
            ("https://ada:s3cret@a.test/x?y=1", "https://a.test/x?y=1"),
            ("0; url=https://ada:s3cret@a.test/", "0; url=https://a.test/"),
            (
                "<https://ada@a.test/>; rel=next, <//b:c@d/?token=s3cret>",
                "<https://a.test/>; rel=next, <//d/?token=(removed)>"
            ),
            ("GET /a?access_token=s3cret&b=2 HTTP/1.1", "GET /a?access_token=(removed)&b=2 HTTP/1.1"),
            ("/cb?CODE=s3cret&state=1#id_token=s3cret&x=y", "/cb?CODE=(removed)&state=1#id_token=(removed)&x=y"),
            ("/a?access%5Ftoken=s3cret", "/a?access%5Ftoken=(removed)"),
            (
                "https://s3.test/k?X-Amz-Signature=s3cret&X-Amz-Date=1",
                "https://s3.test/k?X-Amz-Signature=(removed)&X-Amz-Date=1"
            ),
            ("/go?next=https%3A%2F%2Fada%3As3cret%40a.test%2F&n=1", "/go?next=(removed)&n=1"),
            ("/go?next=https%3A%2F%2Fa.test%2F%3Ftoken%3Ds3cret", "/go?next=(removed)"),
            ("/go?next=https%3A%2F%2Fa.test%2F%3Fpage%3D2", "/go?next=https%3A%2F%2Fa.test%2F%3Fpage%3D2"),
            ("https://ada:s3/cr?et#s3cret@a.test/x", "https://a.test/x"), ("https://ada:s3cre", "https://"),
            ("text/html; charset=utf-8; token=kept", "text/html; charset=utf-8; token=kept"),
            ("me@a.test", "me@a.test"),
            ("https://[::1]:80/a@b", "https://[::1]:80/a@b"), ("http://a.test:8080/x@y", "http://a.test:8080/x@y"),
            ("max-age=10, key=1", "max-age=10, key=1"), ("/a?token=", "/a?token="), ("", ""),
            ("/x?password=wh?tever1&a=b", "/x?password=(removed)&a=b"), ("/x?token=abc;defgh", "/x?token=(removed)"),
            ("/x?token=abc;d=e&f;g h", "/x?token=(removed);d=e&f;g h"),
            ("https://a.test//b:c//d@e", "https://a.test//e"), ("//a:b@c //d:e f@g //h:i//j@k", "//c // f@g //k"),
        ])
    func text(_ text: String, _ shown: String) {
        #expect(Secrets.hidden(in: text) == shown)
    }

    /// With work that grows with the square of the length, this takes hours.
    @Test("A long text of slashes is read in one pass")
    func manySlashes() {
        let count = 1 << 18
        let slashes = "x:" + String(repeating: "/", count: count)
        #expect(Secrets.hidden(in: slashes) == slashes)
        #expect(Secrets.hidden(in: "x" + String(repeating: "//:y", count: count)).utf8.count == 1 + 2 * count)
        #expect(Secrets.hidden(in: "x" + String(repeating: "//:y", count: count) + "@z") == "x//z")
    }

    @Test(
        "Everything that may be a password is removed from a URL that cannot be parsed",
        arguments: [
            ("http://ada:s3 cret@exa mple/x", "http://exa mple/x"), ("http://ada:s3cret@a.test:port/", "http:///"),
            ("ada:s3 cret@a.test/", "a.test/"), ("http://exa mple/?token=s3cret", "http://exa mple/?token=(removed)"),
            ("http://a.test/@b", "http://a.test/@b"), ("http://ada:s3@cret@a.test/", "http://a.test/"),
            (#"http://ada:s3cret\@a.test/"#, "http://a.test/"),
        ])
    func broken(_ text: String, _ shown: String) {
        #expect(Secrets.hidden(inURL: text) == shown)
    }

    @Test("Fields with credentials are recognised")
    func fields() {
        let secret: [FieldName] = [
            .authorization, .proxyAuthorization, .cookie, .setCookie, "Set-Cookie2", "Authentication-Info",
            "Proxy-Authentication-Info",
            "X-API-Key", "x-auth-token", "X-Amz-Security-Token", "X-CSRF-Token", "X-Vault-Token", "Private-Token",
            "X-Session-ID",
            "Ocp-Apim-Subscription-Key", "DPoP", "X-Goog-Api-Key",
        ]
        let open: [FieldName] = [
            "WWW-Authenticate", "Access-Control-Allow-Credentials", "Sec-WebSocket-Key", "Idempotency-Key", "Location",
            "Host", "ETag",
        ]
        #expect(secret.filter { !$0.isSecret } == [])
        #expect(open.filter(\.isSecret) == [])
        let headers: Headers = [
            "X-Api-Key": "s3cret", .location: "https://ada:s3cret@a.test/?token=s3cret", .host: "a.test",
        ]
        #expect(!headers.description.contains("s3cret") && headers.description.contains("Host: a.test"))
    }
}
