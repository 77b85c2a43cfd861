// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// Signature bases (RFC 9421 §2), with the examples of the RFC.
@Suite struct SignatureBaseTests {
    /// The request of appendix B.2.
    static let request = SignatureMessage.Request(
        method: "POST", scheme: "https", authority: "example.com", target: "/foo?param=Value&Pet=dog",
        headers: [
            "Host": "example.com", "Date": "Tue, 20 Apr 2021 02:07:55 GMT", "Content-Type": "application/json",
            "Content-Digest":
                "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:",
            "Content-Length": "18",
        ])

    private static func list(_ text: String) throws -> StructuredField.InnerList {
        let entries = try #require(StructuredField.dictionary("x=\(text)"))
        guard case .list(let list)? = entries.first?.member else { throw NoList() }
        return list
    }
    private struct NoList: Error {}

    private static func base(
        _ input: String, _ message: SignatureMessage = SignatureMessage(request)
    ) throws -> [String] {
        try SignatureBase.make(try list(input), of: message).split(separator: "\n").map(String.init)
    }

    @Test("The bases of appendix B.2") func appendix() throws {
        #expect(
            try Self.base("();created=1618884473;keyid=\"test-key-rsa-pss\";nonce=\"b3k2pp5k7z-50gnwp.yemd\"") == [
                "\"@signature-params\": ();created=1618884473;keyid=\"test-key-rsa-pss\";nonce=\"b3k2pp5k7z-50gnwp.yemd\""
            ])
        #expect(
            try Self.base(
                "(\"@authority\" \"content-digest\" \"@query-param\";name=\"Pet\");created=1618884473;keyid=\"test-key-rsa-pss\";tag=\"header-example\""
            ) == [
                "\"@authority\": example.com",
                "\"content-digest\": sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:",
                "\"@query-param\";name=\"Pet\": dog",
                "\"@signature-params\": (\"@authority\" \"content-digest\" \"@query-param\";name=\"Pet\");created=1618884473;keyid=\"test-key-rsa-pss\";tag=\"header-example\"",
            ])
        #expect(
            try Self.base(
                "(\"date\" \"@method\" \"@path\" \"@query\" \"@authority\" \"content-type\" \"content-length\");created=1618884473"
            ) == [
                "\"date\": Tue, 20 Apr 2021 02:07:55 GMT", "\"@method\": POST", "\"@path\": /foo",
                "\"@query\": ?param=Value&Pet=dog", "\"@authority\": example.com", "\"content-type\": application/json",
                "\"content-length\": 18",
                "\"@signature-params\": (\"date\" \"@method\" \"@path\" \"@query\" \"@authority\" \"content-type\" \"content-length\");created=1618884473",
            ])
    }

    @Test("Derived components of section 2.2") func derived() throws {
        func value(
            _ component: String, scheme: String = "https", authority: String = "www.example.com", _ target: String
        )
            throws -> String
        {
            let request = SignatureMessage.Request(
                method: "GET", scheme: scheme, authority: authority, target: target, headers: Headers())
            return try #require(try Self.base("(\(component))", SignatureMessage(request)).first)
        }
        for (component, target, line) in [
            ("\"@target-uri\"", "/path?param=value", "\"@target-uri\": https://www.example.com/path?param=value"),
            ("\"@request-target\"", "/path?param=value", "\"@request-target\": /path?param=value"),
            ("\"@scheme\"", "/", "\"@scheme\": https"), ("\"@path\"", "/a/b?c", "\"@path\": /a/b"),
            ("\"@query\"", "/path?param=value&foo=bar&baz=bat%2Dman", "\"@query\": ?param=value&foo=bar&baz=bat%2Dman"),
            ("\"@query\"", "/path?queryString", "\"@query\": ?queryString"), ("\"@query\"", "/path", "\"@query\": ?"),
            ("\"@query\"", "/path?", "\"@query\": ?"),
            (
                "\"@query-param\";name=\"baz\"", "/p?param=value&baz=batman&qux=",
                "\"@query-param\";name=\"baz\": batman"
            ),
            ("\"@query-param\";name=\"qux\"", "/p?param=value&baz=batman&qux=", "\"@query-param\";name=\"qux\": "),
            (
                "\"@query-param\";name=\"var\"",
                "/p?var=this%20is%20a%20big%0Amultiline%20value&bar=with+plus+whitespace",
                "\"@query-param\";name=\"var\": this%20is%20a%20big%0Amultiline%20value"
            ),
            (
                "\"@query-param\";name=\"bar\"", "/p?bar=with+plus+whitespace",
                "\"@query-param\";name=\"bar\": with%20plus%20whitespace"
            ),
            (
                "\"@query-param\";name=\"fa%C3%A7ade%22%3A%20\"", "/p?fa%C3%A7ade%22%3A%20=something",
                "\"@query-param\";name=\"fa%C3%A7ade%22%3A%20\": something"
            ),
        ] {
            #expect(try value(component, target) == line)
        }
        for (scheme, authority, normal) in [
            ("https", "WWW.Example.COM", "www.example.com"), ("https", "a:443", "a"), ("http", "a:80", "a"),
            ("http", "a:443", "a:443"), ("https", "[::1]:443", "[::1]"),
        ] {
            #expect(
                try value("\"@authority\"", scheme: scheme, authority: authority, "/") == "\"@authority\": \(normal)")
        }
    }

    @Test("Fields of section 2.1: joined, members, strict forms and bytes") func fields() throws {
        var headers: Headers = ["X-Two": "one", "Signature-Input": "sig1=( \"@method\"  );created=1", "Empty": ""]
        headers.append("x-two", " two ")
        headers.append("Priority", "u=1,   i=?1")
        headers.append("Set-Cookie", "a=1")
        headers.append("Set-Cookie", "b=2")
        headers.appendRaw(name: "Bytes", value: [0xFF, 0x61])
        let message = SignatureMessage(
            .init(method: "GET", scheme: "http", authority: "a", target: "/", headers: headers))
        for (component, value) in [
            ("\"x-two\"", "one, two"), ("\"empty\"", ""), ("\"priority\"", "u=1,   i=?1"),
            ("\"priority\";sf", "u=1, i"),
            ("\"priority\";key=\"u\"", "1"), ("\"priority\";key=\"i\"", "?1"),
            ("\"signature-input\";key=\"sig1\"", "(\"@method\");created=1"), ("\"x-two\";bs", ":b25l:, :dHdv:"),
            ("\"bytes\";bs", ":/2E=:"), ("\"set-cookie\";bs", ":YT0x:, :Yj0y:"),
        ] {
            #expect(try Self.base("(\(component))", message).first == "\(component): \(value)")
        }
    }

    @Test(
        "A component that is missing, repeated, unknown or cannot be text is refused",
        arguments: [
            ("\"absent\"", SignatureBase.Problem.missing("\"absent\"")),
            ("\"@status\"", .missing("\"@status\"")), ("\"date\";req", .missing("\"date\";req")),
            ("\"@method\" \"@method\"", .repeated("\"@method\"")),
            ("\"priority\";sf;key=\"u\"  \"priority\";key=\"u\";sf", .repeated("\"priority\";key=\"u\";sf")),
            ("\"@query-param\";name=\"p\"", .repeated("\"@query-param\";name=\"p\"")),
            ("\"@query-param\";name=\"q\"", .missing("\"@query-param\";name=\"q\"")),
            ("\"@query-param\"", .unsupported("\"@query-param\"")), ("\"@method\";sf", .unsupported("\"@method\";sf")),
            ("\"Date\"", .unsupported("\"Date\"")), ("\"\"", .unsupported("\"\"")),
            ("\"@new\"", .unsupported("\"@new\"")), ("date", .unsupported("that is not a string")),
            ("\"date\";tr", .missing("\"date\";tr")), ("\"date\";tr=?0", .unsupported("\"date\";tr=?0")),
            ("\"date\";x=1", .unsupported("\"date\";x=1")),
            ("\"date\";bs=?0", .unsupported("\"date\";bs=?0")), ("\"date\";bs;sf", .unsupported("\"date\";bs;sf")),
            ("\"date\";sf", .unsupported("\"date\";sf")), ("\"date\";key=1", .unsupported("\"date\";key=1")),
            ("\"priority\";key=\"x\"", .missing("\"priority\";key=\"x\"")),
            ("\"umlaut\"", .unwritable("\"umlaut\"")),
            ("\"want-repr-digest\";sf", .unwritable("\"want-repr-digest\";sf")),
        ] as [(String, SignatureBase.Problem)])
    func refused(_ list: String, _ problem: SignatureBase.Problem) throws {
        let message = SignatureMessage(
            .init(
                method: "GET", scheme: "http", authority: "a", target: "/?p=1&p=2",
                headers: ["Date": "x", "Priority": "u=1", "Umlaut": "ü", "Want-Repr-Digest": "=("]))
        #expect(throws: problem) { try Self.base("(\(list))", message) }
        #expect(!problem.description.isEmpty)
    }

    @Test("A base has up to 64 components, and fields of the same name in request and response are two") func most()
        throws
    {
        let names = (0..<65).map { "\"f\($0)\"" }
        let headers = Headers(names.map { (FieldName(String($0.dropFirst().dropLast())), "v") })
        let many = SignatureMessage(.init(method: "GET", scheme: "http", authority: "a", target: "/", headers: headers))
        #expect(try Self.base("(\(names.dropLast().joined(separator: " ")))", many).count == 65)
        #expect(throws: SignatureBase.Problem.tooMany) { try Self.base("(\(names.joined(separator: " ")))", many) }
        let request = SignatureMessage.Request(
            method: "GET", scheme: "http", authority: "a", target: "/", headers: ["Priority": "u=1"])
        let both = SignatureMessage(status: 200, ["Priority": "u=2, i"], answering: request)
        #expect(
            try Self.base("(\"priority\";key=\"u\" \"priority\";key=\"u\";req \"priority\";key=\"i\")", both)
                .dropLast().map { $0.split(separator: " ").last } == ["2", "1", "?1"])
    }

    @Test("A response may cover its request (section 2.4)") func response() throws {
        let message = SignatureMessage(status: 503, ["Content-Type": "text/plain"], answering: Self.request)
        #expect(
            try Self.base(
                "(\"@status\" \"content-type\" \"@method\";req \"content-type\";req \"@query-param\";name=\"Pet\";req)",
                message
            )
            .dropLast() == [
                "\"@status\": 503", "\"content-type\": text/plain", "\"@method\";req: POST",
                "\"content-type\";req: application/json", "\"@query-param\";name=\"Pet\";req: dog",
            ])
        let alone = SignatureMessage(status: 503, [:], answering: nil)
        for component in ["\"@method\"", "\"@method\";req", "\"@status\";req"] {
            #expect(throws: SignatureBase.Problem.missing(component)) { try Self.base("(\(component))", alone) }
        }
    }
}

extension Headers {
    fileprivate mutating func appendRaw(name: String, value: [UInt8]) {
        Array(name.utf8).withUnsafeBytes { name in value.withUnsafeBytes { appendRaw(name: name, value: $0) } }
    }
}

extension Headers {
    fileprivate init(_ fields: [(FieldName, String)]) {
        self.init()
        for (name, value) in fields { append(name, value) }
    }
}
