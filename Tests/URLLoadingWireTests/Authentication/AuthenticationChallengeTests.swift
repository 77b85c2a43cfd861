// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

/// RFC 9110 §11: the challenges of a field, in order, and fields that an attacker chose (security 65).
@Suite struct AuthenticationChallengeTests {
    private func parse(_ values: String...) -> [String] {
        AuthenticationChallenge.parse(values).map { challenge in
            ([challenge.scheme] + (challenge.token68.map { [$0] } ?? [])
                + challenge.parameters.map { "\($0.name)=<\($0.value)>" }).joined(separator: " ")
        }
    }

    @Test func `One challenge, several in a field, and several fields are read in order`() {
        #expect(parse("Basic realm=\"a b\"") == ["Basic realm=<a b>"])
        #expect(parse("Basic realm=\"a\", charset=\"UTF-8\"") == ["Basic realm=<a> charset=<UTF-8>"])
        #expect(
            parse("Digest realm=\"a, b\", nonce=x , Basic realm=c", "Bearer") == [
                "Digest realm=<a, b> nonce=<x>", "Basic realm=<c>", "Bearer",
            ])
        // RFC 9110 §11.6.1.
        #expect(
            parse("Basic realm=\"simple\", Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\"")
                == ["Basic realm=<simple>", "Newauth realm=<apps> type=<1> title=<Login to \"apps\">"])
        #expect(parse("NTLM", "Negotiate YWJj==, Basic realm=x") == ["NTLM", "Negotiate YWJj==", "Basic realm=<x>"])
        #expect(parse("NTLM, Negotiate, , Basic realm = \"x\"") == ["NTLM", "Negotiate", "Basic realm=<x>"])
    }

    @Test func `Names are compared without case, values with case`() {
        let challenge = AuthenticationChallenge.parse(["dIGEST ReAlM=\"Q\", Nonce=n"]).first
        #expect(challenge?.isOf("Digest") == true && challenge?["realm"] == "Q" && challenge?["nonce"] == "n")
    }

    @Test func `Challenges with broken grammar are skipped`() {
        #expect(parse("", ",", "   ", "=", "\"\"") == [])
        #expect(parse("Digest realm=\"open", "Bearer realm=two words", "Digest realm=My Router, nonce=x") == [])
        #expect(parse("Basic charset=\"open", "Basic realm=a, charset=U T F") == [])
        #expect(parse("Basic realm=\"a\" b=c", "Basic realm=a\u{1}b", "Basic realm=\"a\u{1}") == [])
        #expect(parse("Basic realm=a, realm=b, Bearer x=y") == ["Bearer x=<y>"])
        #expect(parse("Basic realm=a, Realm=b") == [])
        #expect(parse("Digest nonce=, Basic realm=a") == ["Digest nonce=", "Basic realm=<a>"])
        #expect(parse("Basic realm=", "Basic realm=\"ok\"") == ["Basic realm=", "Basic realm=<ok>"])
    }

    @Test func `A realm of Basic may lack its quotes, as browsers read it`() {
        #expect(parse("Basic realm=My Router") == ["Basic realm=<My Router>"])
        #expect(parse("Basic realm = My Router ,charset=UTF-8") == ["Basic realm=<My Router> charset=<UTF-8>"])
        #expect(
            parse("basic REALM=My Router, Digest realm=\"a\", nonce=x") == [
                "basic realm=<My Router>", "Digest realm=<a> nonce=<x>",
            ])
        #expect(parse("Basic realm='the staff'") == ["Basic realm=<'the staff'>"])
        #expect(parse("Basic realm=\"open") == ["Basic realm=<open>"])
        #expect(parse("Basic realm=\"a, b") == ["Basic realm=<a, b>"])
        #expect(parse("Basic realm=\"a\\") == ["Basic realm=<a\\>"])
    }

    @Test func `A flood of challenges is not read to its end`() {
        #expect(parse(Array(repeating: "Basic realm=a", count: 1000).joined(separator: ", ")).count == 32)
        #expect(AuthenticationChallenge.parse(Array(repeating: "Basic realm=a", count: 1000)).count == 32)
        #expect(parse("Basic " + (0..<1000).map { "p\($0)=v" }.joined(separator: ", ")) == [])
        let long = String(repeating: "x", count: 1 << 20)
        #expect(AuthenticationChallenge.parse(["Basic realm=\"\(long)\""]).first?["realm"]?.utf8.count == 1 << 20)
        #expect(AuthenticationChallenge.parse(["Basic realm=\"\(long)"]).first?["realm"]?.utf8.count == 1 << 20)
    }

    @Test func `A field cut at any place is read without a trap`() {
        let text = "Digest realm=\"a\\\"b\", nonce=\"x\", qop=\"auth,auth-int\", Basic realm=\"c\", Negotiate YWJj=="
        for end in text.indices { _ = AuthenticationChallenge.parse([String(text[..<end])]) }
    }

    @Test("Basic encodes user and password (RFC 7617)") func basic() {
        // RFC 7617 §2 and §2.1.
        #expect(
            BasicAuthorization.value(user: "Aladdin", password: "open sesame") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        #expect(BasicAuthorization.value(user: "test", password: "123£") == "Basic dGVzdDoxMjPCow==")
        #expect(BasicAuthorization.value(user: "", password: "") == "Basic Og==")
        #expect(BasicAuthorization.value(user: "a:b", password: "c") == nil)
        #expect(BasicAuthorization.value(user: "a", password: "b\n") == nil)
        #expect(BearerAuthorization.value(token: "mF_9.B5f-4.1JqM==") == "Bearer mF_9.B5f-4.1JqM==")
        #expect(BearerAuthorization.value(token: "a\r\nb") == nil && BearerAuthorization.value(token: "") == nil)
    }
}
