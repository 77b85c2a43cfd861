// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Keys of RFC 9421 §3.3, their examples in appendix B.2.1 to B.2.6, and signatures that a server asks for (§5).
@Suite(.timeLimit(.minutes(2)))
struct SigningKeyTests {
    // MARK: Appendix B.1.2

    static let pssPublic = """
        -----BEGIN PUBLIC KEY-----
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAr4tmm3r20Wd/PbqvP1s2
        +QEtvpuRaV8Yq40gjUR8y2Rjxa6dpG2GXHbPfvMs8ct+Lh1GH45x28Rw3Ry53mm+
        oAXjyQ86OnDkZ5N8lYbggD4O3w6M6pAvLkhk95AndTrifbIFPNU8PPMO7OyrFAHq
        gDsznjPFmTOtCEcN2Z1FpWgchwuYLPL+Wokqltd11nqqzi+bJ9cvSKADYdUAAN5W
        Utzdpiy6LbTgSxP7ociU4Tn0g5I6aDZJ7A8Lzo0KSyZYoA485mqcO0GVAdVw9lq4
        aOT9v6d+nb4bnNkQVklLQ3fVAvJm+xdDOp9LCNCN48V2pnDOkFV6+U9nV5oyc6XI
        2wIDAQAB
        -----END PUBLIC KEY-----
        """
    static let pssPrivate = """
        -----BEGIN PRIVATE KEY-----
        MIIEvgIBADALBgkqhkiG9w0BAQoEggSqMIIEpgIBAAKCAQEAr4tmm3r20Wd/Pbqv
        P1s2+QEtvpuRaV8Yq40gjUR8y2Rjxa6dpG2GXHbPfvMs8ct+Lh1GH45x28Rw3Ry5
        3mm+oAXjyQ86OnDkZ5N8lYbggD4O3w6M6pAvLkhk95AndTrifbIFPNU8PPMO7Oyr
        FAHqgDsznjPFmTOtCEcN2Z1FpWgchwuYLPL+Wokqltd11nqqzi+bJ9cvSKADYdUA
        AN5WUtzdpiy6LbTgSxP7ociU4Tn0g5I6aDZJ7A8Lzo0KSyZYoA485mqcO0GVAdVw
        9lq4aOT9v6d+nb4bnNkQVklLQ3fVAvJm+xdDOp9LCNCN48V2pnDOkFV6+U9nV5oy
        c6XI2wIDAQABAoIBAQCUB8ip+kJiiZVKF8AqfB/aUP0jTAqOQewK1kKJ/iQCXBCq
        pbo360gvdt05H5VZ/RDVkEgO2k73VSsbulqezKs8RFs2tEmU+JgTI9MeQJPWcP6X
        aKy6LIYs0E2cWgp8GADgoBs8llBq0UhX0KffglIeek3n7Z6Gt4YFge2TAcW2WbN4
        XfK7lupFyo6HHyWRiYHMMARQXLJeOSdTn5aMBP0PO4bQyk5ORxTUSeOciPJUFktQ
        HkvGbym7KryEfwH8Tks0L7WhzyP60PL3xS9FNOJi9m+zztwYIXGDQuKM2GDsITeD
        2mI2oHoPMyAD0wdI7BwSVW18p1h+jgfc4dlexKYRAoGBAOVfuiEiOchGghV5vn5N
        RDNscAFnpHj1QgMr6/UG05RTgmcLfVsI1I4bSkbrIuVKviGGf7atlkROALOG/xRx
        DLadgBEeNyHL5lz6ihQaFJLVQ0u3U4SB67J0YtVO3R6lXcIjBDHuY8SjYJ7Ci6Z6
        vuDcoaEujnlrtUhaMxvSfcUJAoGBAMPsCHXte1uWNAqYad2WdLjPDlKtQJK1diCm
        rqmB2g8QE99hDOHItjDBEdpyFBKOIP+NpVtM2KLhRajjcL9Ph8jrID6XUqikQuVi
        4J9FV2m42jXMuioTT13idAILanYg8D3idvy/3isDVkON0X3UAVKrgMEne0hJpkPL
        FYqgetvDAoGBAKLQ6JZMbSe0pPIJkSamQhsehgL5Rs51iX4m1z7+sYFAJfhvN3Q/
        OGIHDRp6HjMUcxHpHw7U+S1TETxePwKLnLKj6hw8jnX2/nZRgWHzgVcY+sPsReRx
        NJVf+Cfh6yOtznfX00p+JWOXdSY8glSSHJwRAMog+hFGW1AYdt7w80XBAoGBAImR
        NUugqapgaEA8TrFxkJmngXYaAqpA0iYRA7kv3S4QavPBUGtFJHBNULzitydkNtVZ
        3w6hgce0h9YThTo/nKc+OZDZbgfN9s7cQ75x0PQCAO4fx2P91Q+mDzDUVTeG30mE
        t2m3S0dGe47JiJxifV9P3wNBNrZGSIF3mrORBVNDAoGBAI0QKn2Iv7Sgo4T/XjND
        dl2kZTXqGAk8dOhpUiw/HdM3OGWbhHj2NdCzBliOmPyQtAr770GITWvbAI+IRYyF
        S7Fnk6ZVVVHsxjtaHy1uJGFlaZzKR4AGNaUTOJMs6NadzCmGPAxNQQOCqoUjn4XR
        rOjr9w349JooGXhOxbu8nOxX
        -----END PRIVATE KEY-----
        """
    /// Made for this test.
    static let p384Private = """
        -----BEGIN PRIVATE KEY-----
        MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDD9047XjYt4H6KPteWx
        T6EOWgnUgulb5+fL8ghgNI/PIoGtLhhcdR4Zv2d7BooRoWGhZANiAARRWB5b+QWV
        zLQ8Ecs3WOVUn0QC5DlDahCeEdfn+bdQ2jjqLbucOIchHAp/VPQ1ev1lQDHv0MTP
        fGHbCVHbJFr/zVkMasxI6/wWanMUN9hSQEG7a5S+pevh+OB5ZrwZexg=
        -----END PRIVATE KEY-----
        """
    /// Made for this test: RSA of 1024 bits.
    static let short = """
        -----BEGIN PUBLIC KEY-----
        MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDLu6cI4sbS6CVu+NH9XIKjeLda
        GXxyb0RhHCI+CbiY1PnXR5QccqJK2NRfaXhsRKlYGw4Ar0gUo2A4372E1feZMyfd
        xy6B9f20FcQcoRtkIwwsc3VCJbSnJ0Q1VQKSx3dGTm3dvwJm+2GnbANVIXHoQWMt
        f39UbLJCF+BbAqbbcwIDAQAB
        -----END PUBLIC KEY-----
        """

    /// Made for this test: RSA of 2048 bits, and the signature of `hello` by another program.
    static let plainPrivate = """
        -----BEGIN PRIVATE KEY-----
        MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQCamooaxiBDDM8o
        IoBHCFUecin36wz5/KfmGomd/Ro6w4C1crdGzSVH5V/u6wAH3yUOsUa7JW9iIQCx
        JNWgQbS6eNbrl6pmshoh5zy4B39DoIhKQwktvmk42iHt24KTJO/GxfxgOe0SBPGD
        ICnj8S/vWfPaAzRULWmT8tcQi5QcesUfUisucr/RO1QTWlcvtm5ob/wnc9OrAev0
        +lSErfQqkB52O/WuRjVN2iiQ+Hy8pu+TWMhbK2R453XkhTAFlZPUHKyf5aECgm1e
        OA73zbkVVj1ZNws5Drt1hGl4IOEnllISvCjF0iC9E9ZUO5AmH6G7KKi2stKRuaO7
        kdvHhHwVAgMBAAECggEACHbVgMnAEmutG8FnzHvETTpq2cvglf8jIhHp3uBwgy8Y
        6NYy+olYtSr1qZrsEYJCAR/rg2t1QaYU553gpDl0r5DWE2fmSGEP1TNXu6uNaCJt
        08L/yaVXFWm72c3exDeNeRB11L7XH9ltb4RfRr95pF0EYLc0MjeaRCNTavB5V2W7
        gTA33mhS5RDOaH8mlhUIsBG+pe0mW0qt6fYbzUKJy2Cqrr9yJmoYBly023nJ0K39
        Kg0x6wkvY78KGU0Wd9rxYprpp89zz0HR/66uaCvxdEATDsdf/05f8KpoyYEF5DbF
        x32CSdDd2a6GlRlxjeNaertZFdpHIkz/o4OfW/dUsQKBgQDN1joeiDRSok4rLtZW
        mj0tewmb9R4KbYkpIMk8qnCQ4KUdYFd1nMvRwOYDLSJSotFqCevN9ACybso45kG2
        7JIKJ0XpIrkMWqsKvcQ1CkVdONUCNaw6gFZ0Lqbh7sklTZZF5fFmcpocLztv/azO
        ZiuUGNbhOFWQVUpIRcw+WDJVvwKBgQDAR/jdqDpWibQePXKomBG+IyqIvwy0X+5C
        EdXtFpOlFBaF1hjy8zVvOCOT0zzQmJBTBNVvZhbUgYWPu9MLJy7UVqDOI8QnJ94l
        KNK9L0qY7BevF2HOP0HkmS1WK1F/i3gOlQMj+oViRHjF+PIrreicd/NTiYpH5xea
        NeVf0ZcrKwKBgGxSdemFckueYJa3IlMW/mUF3+u0FigUtt7vAxgq9ew4XIxWHBCo
        AFcVNbasNOjaCGzOZcrPwuIkDcXd3u1eGAjB3Dexb0LCIEsZzLzA9/n0I5zzE/0B
        dv3TYz15BV/dMdz9AooQe2ujq5rnG97Ow9Y/MC38EINRbzMTkEWq8mpPAoGAMMbR
        MeGIEwXRpE4wNOaGsbYYByJ35ZXkSexeWUt93sWOxRq/r3nU10bld42BguUAz56N
        SjoaloPYztJ1wgGJlqH3HvPhwZESgFivxQAnK03Q4EDNNdXEMGpPHunUPceyh/hz
        GIBnr7rw7D+vpzbxqCehmVJturm7ugnsCvePIosCgYBQOd9LBoixIZSCVyXjniFy
        VfUJTyXpIQaek9gu7VLUmwbc4gC0BEwhxy/dnnCooVz6nrvdjbbV3DgqNjPOnuut
        m4fnI30LYz87GLZvmvxne+49Oqr5Y0vG0lGRQmVLSLr0TSNKquYHaDCp5PSVghb4
        AZ6NPl3ffuDqQOtNZ4Yq6w==
        -----END PRIVATE KEY-----
        """
    static let plainSignature =
        "TFMifsaGpX/oOezx1Yroqy69mmBH0AlhqcH5+soracgpY5mhqTi2+OVxJB8Mp00pYTEgBj2InQmPWLNp/g2epTbx/t/tFrBRK2QXNk4+9E98K/RFm9spP2TzK2MZypGkbS4dTrTDb7Q6XDApTT4wTZFCrNXX9TOJ1Vv77iu6sCLasitEIcMFuJUyKeZS9OC+0ksvm3jeMv/JNoHONcVWj2y37VZXHrpHkkCEM8jDEZo3jY6Tq36th3nwXm83YDSR8OVpfhsLpfEoFhQxesC9I1R89jSq5D9dYAICDWV6uMtjOWZduBawZGpSckZzy3RGjk0HhxLo6q0LsH6exbsGJQ=="

    /// The request of appendix B.2, with the digest that it states.
    private static func request() throws -> SigningRequest {
        let request = try SigningVectorTests.request()
        var headers = request.headers
        headers.append(
            .contentDigest,
            "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:")
        let line = SigningRequest.Line(
            method: request.method, url: request.url, authority: request.authority, target: request.target)
        return SigningRequest(line, headers: headers, body: request.body, date: request.date)
    }

    private static func verifies(_ key: SigningKey, _ request: SigningRequest, _ input: String, _ signature: String)
        throws -> Bool
    {
        let entry = try #require(StructuredField.dictionary(input)?.first)
        guard case .list(let list) = entry.member else { return false }
        let base = try SignatureBase.make(list, of: SignatureMessage(request.components))
        let bytes = try #require(StructuredField.byteSequences(signature)?[entry.key])
        return key.key.verifies(bytes, of: Array(base.utf8))
    }

    /// A published signature: its two fields, and what makes them.
    struct Example: Sendable {
        let input: String
        let signature: String
        let components: [SignatureComponent]
        var nonce: String?
        var tag: String?
    }

    static let examples = [
        Example(
            input: "sig-b21=();created=1618884473;keyid=\"test-key-rsa-pss\";nonce=\"b3k2pp5k7z-50gnwp.yemd\"",
            signature:
                "sig-b21=:d2pmTvmbncD3xQm8E9ZV2828BjQWGgiwAaw5bAkgibUopemLJcWDy/lkbbHAve4cRAtx31Iq786U7it++wgGxbtRxf8Udx7zFZsckzXaJMkA7ChG52eSkFxykJeNqsrWH5S+oxNFlD4dzVuwe8DhTSja8xxbR/Z2cOGdCbzR72rgFWhzx2VjBqJzsPLMIQKhO4DGezXehhWwE56YCE+O6c0mKZsfxVrogUvA4HELjVKWmAvtl6UnCh8jYzuVG5WSb/QEVPnP5TmcAnLH1g+s++v6d4s8m0gCw1fV5/SITLq9mhho8K3+7EPYTU8IU1bLhdxO5Nyt8C8ssinQ98Xw9Q==:",
            components: [], nonce: "b3k2pp5k7z-50gnwp.yemd"),
        Example(
            input:
                "sig-b22=(\"@authority\" \"content-digest\" \"@query-param\";name=\"Pet\");created=1618884473;keyid=\"test-key-rsa-pss\";tag=\"header-example\"",
            signature:
                "sig-b22=:LjbtqUbfmvjj5C5kr1Ugj4PmLYvx9wVjZvD9GsTT4F7GrcQEdJzgI9qHxICagShLRiLMlAJjtq6N4CDfKtjvuJyE5qH7KT8UCMkSowOB4+ECxCmT8rtAmj/0PIXxi0A0nxKyB09RNrCQibbUjsLS/2YyFYXEu4TRJQzRw1rLEuEfY17SARYhpTlaqwZVtR8NV7+4UKkjqpcAoFqWFQh62s7Cl+H2fjBSpqfZUJcsIk4N6wiKYd4je2U/lankenQ99PZfB4jY3I5rSV2DSBVkSFsURIjYErOs0tFTQosMTAoxk//0RoKUqiYY8Bh0aaUEb0rQl3/XaVe4bXTugEjHSw==:",
            components: [.authority, .field(.contentDigest), .queryParameter("Pet")],
            tag: "header-example"),
        Example(
            input:
                "sig-b23=(\"date\" \"@method\" \"@path\" \"@query\" \"@authority\" \"content-type\" \"content-digest\" \"content-length\");created=1618884473;keyid=\"test-key-rsa-pss\"",
            signature:
                "sig-b23=:bbN8oArOxYoyylQQUU6QYwrTuaxLwjAC9fbY2F6SVWvh0yBiMIRGOnMYwZ/5MR6fb0Kh1rIRASVxFkeGt683+qRpRRU5p2voTp768ZrCUb38K0fUxN0O0iC59DzYx8DFll5GmydPxSmme9v6ULbMFkl+V5B1TP/yPViV7KsLNmvKiLJH1pFkh/aYA2HXXZzNBXmIkoQoLd7YfW91kE9o/CCoC1xMy7JA1ipwvKvfrs65ldmlu9bpG6A9BmzhuzF8Eim5f8ui9eH8LZH896+QIF61ka39VBrohr9iyMUJpvRX2Zbhl5ZJzSRxpJyoEZAFL2FUo5fTIztsDZKEgM4cUA==:",
            components: [
                .field(.date), .method, .path, .query, .authority, .field(.contentType), .field(.contentDigest),
                .field(.contentLength),
            ]),
    ]

    @Test("B.2.1 to B.2.3, RSASSA-PSS: the published signatures are right, and so are new ones", arguments: examples)
    func pss(_ example: Example) async throws {
        let (input, signature) = (example.input, example.signature)
        let (request, open) = (try Self.request(), try SigningKey(pem: Self.pssPublic.utf8))
        #expect(open.algorithm == .rsaPSS && !open.canSign && open.description == "rsa-pss-sha512 public key")
        #expect(try Self.verifies(open, request, input, signature))
        #expect(try !Self.verifies(open, request, input.replacing("1618884473", with: "1618884474"), signature))
        var signer = try MessageSigner(key: try SigningKey(pem: Self.pssPrivate.utf8), keyID: "test-key-rsa-pss")
        (signer.components, signer.nonce, signer.tag) = (example.components, example.nonce, example.tag)
        signer.label = String(input.prefix { $0 != "=" })
        let made = try await signer.signature(of: request).headers
        let own = try #require(made[.signatureInput])
        // The order of parameters is the signer's choice.
        #expect(own.split(separator: ";").sorted() == input.split(separator: ";").sorted())
        // The salt is another one.
        #expect(made[.signature] != signature)
        #expect(try Self.verifies(open, request, own, made[.signature] ?? ""))
    }

    @Test("B.2.4, ECDSA over P-256: a signer makes the same input, and a verifier accepts a new signature") func ecdsa()
        async throws
    {
        let headers: Headers = [.contentType: "application/json", .contentLength: "23"]
        let message = SignatureMessage(status: 200, headers, answering: nil)
        let items = [SignatureComponent.status, .field(.contentType), .field(.contentLength)].map(\.item)
        let input = StructuredField.InnerList(
            items, [.init("created", .integer(1_618_884_473)), .init("keyid", .string("k"))])
        let base = try SignatureBase.make(input, of: message)
        let key = try SigningKey(pem: SigningVectorTests.p256Private.utf8)
        let signature = try #require(key.key.sign(Array(base.utf8)))
        let inputText = try #require(StructuredField.text([StructuredField.Entry("sig", .list(input))]))
        var signed = headers
        signed.append(.signatureInput, inputText)
        signed.append(.signature, "sig=\(StructuredField.text(signature))")
        let verifier = MessageVerifier(
            keys: ["k": try SigningKey(pem: SigningVectorTests.p256Public.utf8)], covering: [.status])
        let response = Response(
            url: try url("https://example.com/foo"), http: HTTPHead(status: .ok, headers: signed))
        #expect(try verifier.verify(response, at: SigningVectorTests.created).label == "sig")
    }

    private static func request(_ method: Method, _ text: String, _ headers: Headers) throws -> SigningRequest {
        let target = try Target(text)
        let line = SigningRequest.Line(
            method: method, url: try url(text), authority: String(decoding: target.hostField, as: UTF8.self),
            target: String(decoding: target.originForm, as: UTF8.self))
        return SigningRequest(line, headers: headers, date: SigningVectorTests.created)
    }

    @Test("B.3: the signature of a proxy that terminates TLS covers the certificate of its client") func proxy() throws
    {
        let certificate =
            ":"
            + "MIIBqDCCAU6gAwIBAgIBBzAKBggqhkjOPQQDAjA6MRswGQYDVQQKDBJMZXQncyBBdXRoZW50aWNhdGUxGzAZBgNVBAMMEkxB"
            + "IEludGVybWVkaWF0ZSBDQTAeFw0yMDAxMTQyMjU1MzNaFw0yMTAxMjMyMjU1MzNaMA0xCzAJBgNVBAMMAkJDMFkwEwYHKoZI"
            + "zj0CAQYIKoZIzj0DAQcDQgAE8YnXXfaUgmnMtOXU/IncWalRhebrXmckC8vdgJ1p5Be5F/3YC8OthxM4+k1M6aEAEFcGzkJi"
            + "Ny6J84y7uzo9M6NyMHAwCQYDVR0TBAIwADAfBgNVHSMEGDAWgBRm3WjLa38lbEYCuiCPct0ZaSED2DAOBgNVHQ8BAf8EBAMC"
            + "BsAwEwYDVR0lBAwwCgYIKwYBBQUHAwIwHQYDVR0RAQH/BBMwEYEPYmRjQGV4YW1wbGUuY29tMAoGCCqGSM49BAMCA0gAMEUC"
            + "IBHda/r1vaL6G3VliL4/Di6YK0Q6bMjeSkC3dFCOOB8TAiEAx/kHSB4urmiZ0NX5r5XarmPk0wmuydBVoU4hBVZ1yhk="
            + ":"
        let request = try Self.request(
            .post, "https://service.internal.example/foo?param=Value&Pet=dog",
            [
                .date: "Tue, 20 Apr 2021 02:07:55 GMT", .contentType: "application/json", .contentLength: "18",
                "Client-Cert": certificate,
            ])
        let input =
            "ttrp=(\"@path\" \"@query\" \"@method\" \"@authority\" \"client-cert\")"
            + ";created=1618884473;keyid=\"test-key-ecc-p256\""
        let signature =
            "ttrp=:xVMHVpawaAC/0SbHrKRs9i8I3eOs5RtTMGCWXm/9nvZzoHsIg6Mce9315T6xoklyy0yzhD9ah4JHRwMLOgmizw==:"
        let key = try SigningKey(pem: SigningVectorTests.p256Public.utf8)
        #expect(try Self.verifies(key, request, input, signature))
    }

    @Test("B.4: changes of a request on its way that keep a signature right, and such that do not") func changes()
        throws
    {
        let key = try SigningKey(pem: SigningVectorTests.edPublic.utf8)
        func verifies(_ method: Method, _ url: String, _ headers: Headers) throws -> Bool {
            try Self.verifies(
                key, try Self.request(method, url, headers),
                "transform=(\"@method\" \"@path\" \"@authority\" \"accept\")"
                    + ";created=1618884473;keyid=\"test-key-ed25519\"",
                "transform=:ZT1kooQsEHpZ0I1IjCqtQppOmIqlJPeo7DHR3SoMn0s5JZ1eRGS0A+vyYP9t/LXlh5QMFFQ6cpLt2m0pmj3NDA==:")
        }
        let place = "https://example.org/demo"
        var (two, turned) = (Headers(), Headers())
        for value in ["application/json", "*/*"] { two.append(.accept, value) }
        for value in ["*/*", "application/json"] { turned.append(.accept, value) }
        #expect(try verifies(.get, place + "?name1=Value1&Name2=value2", two))
        #expect(try verifies(.get, place + "?name1=Value1&Name2=value2&param=added", two))
        #expect(try verifies(.get, place, [.acceptLanguage: "en-US,en;q=0.5", .accept: "application/json, */*"]))
        #expect(try verifies(.get, "https://EXAMPLE.org:443/demo", [.accept: "application/json, */*"]))
        #expect(try !verifies(.post, place, two))
        #expect(try !verifies(.get, "https://example.com/demo", two))
        #expect(try !verifies(.get, place + "/", two))
        #expect(try !verifies(.get, place, turned))
    }

    // MARK: Keys

    @Test("a key of RSA is used with the algorithm that is asked for, and verifies no signature of the other")
    func rsa()
        throws
    {
        let plain = try SigningKey(pem: Self.pssPublic.utf8, algorithm: .rsaPKCS1)
        let pss = try SigningKey(pem: Self.pssPublic.utf8, algorithm: .rsaPSS)
        #expect(plain.algorithm == .rsaPKCS1 && pss.algorithm == .rsaPSS)
        let signature = try #require(try SigningKey(pem: Self.pssPrivate.utf8).key.sign([1, 2]))
        #expect(pss.key.verifies(signature, of: [1, 2]) && !plain.key.verifies(signature, of: [1, 2]))
        // The key says that it is for RSASSA-PSS alone.
        #expect(throws: LoadError.self) { try SigningKey(pem: Self.pssPrivate.utf8, algorithm: .rsaPKCS1) }
    }

    @Test("RSASSA-PKCS1-v1_5 with SHA-256: what OpenSSL has signed is verified, and the other way round") func pkcs1()
        throws
    {
        let key = try SigningKey(pem: Self.plainPrivate.utf8, algorithm: .rsaPKCS1)
        // openssl dgst -sha256 -sign of `hello`: the signature has no salt.
        let known = try #require(Base64.decode(Self.plainSignature))
        #expect(key.key.sign(Array("hello".utf8)) == known && key.key.verifies(known, of: Array("hello".utf8)))
        #expect(!key.key.verifies(known, of: Array("hallo".utf8)))
        #expect(try SigningKey(pem: Self.plainPrivate.utf8).algorithm == .rsaPSS)
    }

    @Test("P-384: r and s have 48 bytes each") func p384() throws {
        let key = try SigningKey(pem: Self.p384Private.utf8)
        #expect(key.algorithm == .ecdsaP384)
        let signature = try #require(key.key.sign([1]))
        #expect(signature.count == 96 && key.key.verifies(signature, of: [1]) && !key.key.verifies(signature, of: [2]))
        #expect(!key.key.verifies(Array(signature.dropLast()), of: [1]) && !key.key.verifies([], of: [1]))
    }

    @Test("keys that are short, of another curve or for another algorithm are refused in words") func refused()
        async throws
    {
        for (pem, algorithm, words) in [
            (Self.short, nil, "only Ed25519"), (Self.p384Private, .ecdsaP256, "not for ecdsa-p256-sha256"),
            (SigningVectorTests.edPrivate, .hmacSHA256, "not for hmac-sha256"),
            (SigningVectorTests.p256Public, .rsaPSS, "not for rsa-pss-sha512"), ("", .ed25519, "no key"),
        ] as [(String, SigningKey.Algorithm?, String)] {
            let error = await failure(.cannotSign) { try SigningKey(pem: pem.utf8, algorithm: algorithm) }
            #expect(error?.detail?.contains(words) == true, "\(error?.detail ?? "")")
        }
    }

    @Test(
        "a key pair is made, written and read",
        arguments: [SigningKey.Algorithm.ed25519, .ecdsaP256, .ecdsaP384, .rsaPSS, .rsaPKCS1], ["a word", nil])
    func made(_ algorithm: SigningKey.Algorithm, passphrase: String?) async throws {
        let key = try SigningKey.generate(algorithm)
        #expect(key.algorithm == algorithm && key.canSign)
        let pem = try #require(key.privatePEM(passphrase: passphrase))
        #expect(pem.hasPrefix("-----BEGIN \(passphrase == nil ? "" : "ENCRYPTED ")PRIVATE KEY-----\n"))
        let read = try SigningKey(pem: pem.utf8, passphrase: passphrase, algorithm: algorithm)
        let open = try SigningKey(pem: try #require(key.publicPEM).utf8, algorithm: algorithm)
        let signature = try #require(read.key.sign([1, 2, 3]))
        #expect(open.key.verifies(signature, of: [1, 2, 3]) && key.key.verifies(signature, of: [1, 2, 3]))
        #expect(!open.canSign && open.privatePEM(passphrase: nil) == nil && open.publicPEM == key.publicPEM)
        #expect(try !SigningKey.generate(algorithm).key.verifies(signature, of: [1, 2, 3]))
        if passphrase != nil {
            await expectFailure(.wrongPassphrase) { try SigningKey(pem: pem.utf8, passphrase: "another") }
        }
    }

    @Test("no key is made for HMAC, and a secret is not written") func unmade() async throws {
        await expectFailure(.cannotSign) { try SigningKey.generate(.hmacSHA256) }
        let secret = SigningKey.hmacSHA256([1])
        #expect(secret.publicPEM == nil && secret.privatePEM(passphrase: nil) == nil)
        #expect(try SigningKey.generate(.ed25519).privatePEM(passphrase: "") == nil)
    }

    // MARK: Trailers as components

    /// A response whose signature covers a trailer field (RFC 9421 §2.1.4).
    private static func expect(
        _ verified: Bool, head: Headers, trailers: Headers, covering: SignatureComponent, signed: Headers? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let key = SigningKey.hmacSHA256([1, 2])
        let input = StructuredField.InnerList([covering.item], [.init("keyid", .string("k"))])
        let base = try SignatureBase.make(
            input, of: SignatureMessage(status: 200, head, trailers: signed ?? trailers, answering: nil))
        let text = try #require(StructuredField.text([StructuredField.Entry("sig", .list(input))]))
        var head = head
        head.append(.signatureInput, text)
        head.append(.signature, "sig=\(StructuredField.text(try #require(key.key.sign(Array(base.utf8)))))")
        var verifier = MessageVerifier(keys: ["k": key], covering: [covering])
        verifier.maximumAge = nil
        let response = Response(url: try url("https://example.com/"), http: HTTPHead(status: .ok, headers: head))
        if verified {
            #expect(throws: Never.self, sourceLocation: sourceLocation) {
                try verifier.verify(response, trailers: trailers)
            }
        } else {
            #expect(throws: LoadError.self, sourceLocation: sourceLocation) {
                try verifier.verify(response, trailers: trailers)
            }
        }
    }

    @Test("a signature may cover trailers, which are not the fields of the head") func trailers() async throws {
        let expires = SignatureComponent.field("Expires").inTrailers
        #expect(expires.description == "\"expires\";tr")
        try Self.expect(true, head: ["Expires": "0"], trailers: ["Expires": "1"], covering: expires)
        try Self.expect(
            false, head: ["Expires": "1"], trailers: ["Expires": "0"], covering: expires, signed: ["Expires": "1"])
        try Self.expect(
            false, head: ["Expires": "1"], trailers: [:], covering: expires, signed: ["Expires": "1"])
        // A digest in a trailer proves the body if the library compares it, which an announcement makes it do.
        let digest = SignatureComponent.field(.contentDigest).inTrailers
        let stated: Headers = [.contentDigest: "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"]
        try Self.expect(true, head: [.trailer: "x, Content-Digest"], trailers: stated, covering: digest)
        try Self.expect(false, head: [:], trailers: stated, covering: digest)
        try Self.expect(
            false, head: [.trailer: "Content-Digest"], trailers: [.contentDigest: "md5=:AA==:"], covering: digest)
        var signer = try MessageSigner(key: .hmacSHA256([1]), keyID: nil)
        signer.components = [expires]
        await expectFailure(.cannotSign) { try await signer.signature(of: try Self.request()) }
    }

    // MARK: Accept-Signature (RFC 9421 §5)

    @Test("what a server asks for is read; what it must not ask for is left out") func requested() throws {
        let all = RequestedSignature.all(in: [
            "Accept-Signature":
                "sig1=(\"@method\" \"@target-uri\" \"content-digest\";req);created;expires;keyid=\"k\";nonce=\"n\";tag=\"t\";alg=\"ed25519\", "
                + "a=1, b=(\"@path\");unknown, c=(\"@path\");created=5, d=(1), e=()"
        ])
        #expect(all.map(\.label) == ["sig1", "e"])
        let first = try #require(all.first)
        #expect(first.components == [.method, .targetURI, .field(.contentDigest).ofRequest])
        #expect(first.keyID == "k" && first.nonce == "n" && first.tag == "t" && first.algorithm == "ed25519")
        #expect(first.wantsCreated && first.wantsExpiry)
        #expect(first.description == "sig1 over \"@method\" \"@target-uri\" \"content-digest\";req")
        #expect(
            RequestedSignature.all(in: [:]).isEmpty && RequestedSignature.all(in: ["Accept-Signature": "("]).isEmpty)
    }

    @Test("a signer makes what is asked for, and nothing that it must not") func answering() async throws {
        func asked(_ text: String) throws -> RequestedSignature {
            try #require(RequestedSignature.all(in: ["Accept-Signature": text]).first)
        }
        let key = try SigningKey(pem: SigningVectorTests.edPrivate.utf8)
        var signer = try MessageSigner(key: key, keyID: "k")
        let answer = try signer.answering(
            try asked(
                "s=(\"@authority\" \"@method\");created;expires;nonce=\"n\";alg=\"ed25519\";keyid=\"k\";tag=\"t\""))
        let headers = try await answer.signature(of: try Self.request()).headers
        #expect(
            headers[.signatureInput]
                == "s=(\"@authority\" \"@method\");created=1618884473;expires=1618884773;nonce=\"n\";alg=\"ed25519\";keyid=\"k\";tag=\"t\""
        )
        let request = try Self.request()
        #expect(try Self.verifies(key, request, headers[.signatureInput] ?? "", headers[.signature] ?? ""))
        signer.components = [.method, .authority]
        for (text, words) in [
            ("s=(\"@path\");alg=\"hmac-sha256\"", "asks for hmac-sha256"), ("s=(\"@path\");keyid=\"x\"", "the key x"),
            ("s=(\"@method\")", "does not cover \"@authority\""),
        ] {
            let error = await failure(.cannotSign) { try signer.answering(try asked(text)) }
            #expect(error?.detail?.contains(words) == true, "\(error?.detail ?? "")")
        }
        signer.components = nil
        // Without components of its own, the signer insists on what binds a signature to a method and a server.
        for text in ["s=()", "s=(\"@path\" \"@method\")", "s=(\"@target-uri\")", "s=(\"@authority\" \"x-any\")"] {
            await expectFailure(.cannotSign) { try signer.answering(try asked(text)) }
        }
        signer.components = []
        #expect(throws: Never.self) { try signer.answering(try asked("s=(\"x-any\")")) }
    }
}
