// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoadingIO

struct TLSIssuerTests {
    private static func certificate(_ pem: [UInt8]) throws -> CertificateFacts {
        let first = try #require(try PEM.certificates(pem).first)
        return withExtendedLifetime(first) { CertificateFacts(sharing: first.pointer) }
    }

    /// A chain of authorities below a root: its certificates, the last issued first.
    private static func chain(_ count: Int, locations: [String] = ["http://ca.example/issuer"]) throws
        -> [CertificateFacts]
    {
        var authority = try TestCertificateAuthority(commonName: "Root")
        var all = [try certificate(authority.pem)]
        for number in 0..<count {
            authority = try authority.intermediate(commonName: "Authority \(number)", issuerLocations: locations)
            all.insert(try certificate(authority.pem), at: 0)
        }
        return all
    }

    @Test("The addresses of an issuer are those of caIssuers, at most four")
    func locations() throws {
        let some = try Self.chain(1, locations: ["http://a.example/1", "ldap://b.example/2"])[0]
        #expect(some.issuerLocations == ["http://a.example/1", "ldap://b.example/2"])
        let many = try Self.chain(1, locations: (1...9).map { "http://a.example/\($0)" })[0]
        #expect(many.issuerLocations.count == 4)
        #expect(try Self.chain(1, locations: [])[0].issuerLocations.isEmpty)
    }

    @Test("Issuers are read from DER and PKCS#7, and from nothing else")
    func files() throws {
        let chain = try Self.chain(1)
        #expect(CertificateFacts.issuers(in: chain[0].der) == [chain[0]])
        let message = PKCS7.message(chain.map(\.der))
        #expect(CertificateFacts.issuers(in: message).map(Set.init) == Set(chain))
        #expect(CertificateFacts.issuers(in: PKCS7.message([])) == nil)
        for wrong in [[], Array("<html>".utf8), Array(chain[0].der.dropLast()), chain[0].der + [0], [0x30, 0x80]] {
            #expect(CertificateFacts.issuers(in: wrong as [UInt8]) == nil)
        }
        let pem = try TestCertificateAuthority(commonName: "Root").pem
        #expect(CertificateFacts.issuers(in: pem) == nil)
    }

    @Test("A search asks for one issuer after the other, three at most")
    func steps() throws {
        let chain = try Self.chain(5)
        var search = TLSIssuerSearch(isEnabled: true)
        for step in 0..<3 {
            let asks = search.begin(chain[step])
            #expect(asks)
            #expect(search.pending?.certificate == chain[step])
            search.answer(.certificates([chain[step + 1]], from: "http://ca.example/issuer"))
            #expect(search.found.count == step + 1 && search.pending == nil)
        }
        let asksFourth = search.begin(chain[3])
        #expect(!asksFourth)
        #expect(search.reason == "more than 3 issuers are missing")
        let asksAgain = search.begin(chain[3])
        #expect(!asksAgain, "an ended search stays so")
    }

    @Test("A search ends at a root, without an address, and with an answer that does not help")
    func ends() throws {
        let chain = try Self.chain(2)
        var search = TLSIssuerSearch(isEnabled: true)
        let asksForRoot = search.begin(try #require(chain.last))
        #expect(!asksForRoot && search.reason == nil, "a root has no issuer")
        search = TLSIssuerSearch(isEnabled: true)
        let asksWithoutAddress = search.begin(try Self.chain(1, locations: [])[0])
        #expect(!asksWithoutAddress)
        #expect(search.reason == "CN=Authority 0 names no address of its issuer")
        let answers: [(TLSFoundIssuers, String)] = [
            (.none("404"), "404"),
            (.certificates([chain[0]], from: "u"), "u is the certificate itself, not its issuer's"),
            (.certificates([chain[2]], from: "u"), "the certificate at u is not the issuer's of CN=Authority 1"),
        ]
        for (answer, words) in answers {
            search = TLSIssuerSearch(isEnabled: true)
            let asks = search.begin(chain[0])
            #expect(asks)
            search.answer(answer)
            #expect(search.reason == words && search.found.isEmpty)
        }
        search = TLSIssuerSearch(isEnabled: false)
        let asksUnlessEnabled = search.begin(chain[0])
        #expect(!asksUnlessEnabled && search.reason == nil)
    }
}
