// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

struct AlternativeServicesTests {
    private static func service(
        _ name: String, _ host: String, _ port: UInt16, ma: Int64 = 86_400, persist: Bool = false
    ) throws -> AlternativeService {
        var service = AlternativeService(name, host: host.isEmpty ? nil : try Origin.Host(host), port: port)
        (service.maxAge, service.persists) = (ma, persist)
        return service
    }

    private static func service(
        _ name: String, _ port: UInt16, ma: Int64 = 86_400, persist: Bool = false
    ) throws -> AlternativeService { try service(name, "", port, ma: ma, persist: persist) }

    @Test("The examples of RFC 7838") func examples() throws {
        #expect(AlternativeServices("h2=\":8000\"") == .services([try Self.service("h2", 8000)]))
        #expect(
            AlternativeServices("h2=\"new.example.org:80\"")
                == .services([try Self.service("h2", "new.example.org", 80)]))
        #expect(AlternativeServices("w%3Dx%3Ay#z=\":1\"") == .services([try Self.service("w=x:y#z", 1)]))
        #expect(AlternativeServices("x%25y=\":1\"") == .services([try Self.service("x%y", 1)]))
        #expect(
            AlternativeServices("h2=\"alt.example.com:8000\", h2=\":443\"")
                == .services([try Self.service("h2", "alt.example.com", 8000), try Self.service("h2", 443)]))
        #expect(AlternativeServices("h2=\":443\"; ma=3600") == .services([try Self.service("h2", 443, ma: 3_600)]))
        #expect(
            AlternativeServices("h2=\":443\"; ma=2592000; persist=1")
                == .services([try Self.service("h2", 443, ma: 2_592_000, persist: true)]))
        #expect(AlternativeServices("clear") == .clear)
    }

    @Test("Blanks, empty members, unknown parameters, addresses and quoted values are read") func variants() throws {
        let text =
            " , h3=\":443\";ma=\"60\" ;v=\"46,43\" ; x=y ,, h3-29=\"[2001:db8::1]:8443\" ,\tquic=\"192.0.2.1:1\" "
        #expect(
            AlternativeServices(text)
                == .services([
                    try Self.service("h3", 443, ma: 60), try Self.service("h3-29", "[2001:db8::1]", 8443),
                    try Self.service("quic", "192.0.2.1", 1),
                ]))
        #expect(
            AlternativeServices("h3=\":1\"; ma=99999999999999999999999")
                == .services([try Self.service("h3", 1, ma: .max)]))
        // An unknown value of `persist` means nothing.
        #expect(AlternativeServices("h3=\":1\"; persist=2") == .services([try Self.service("h3", 1)]))
    }

    @Test(
        "A malformed field is ignored as a whole",
        arguments: [
            "", " ", ",", "Clear", "clear, h3=\":1\"", "h3=\":1\", clear", "h3", "h3=", "h3=443", "h3=\"443\"",
            "h3=\":0\"", "h3=\":65536\"", "h3=\":\"", "h3=\":1", "h3=\":1\" h2=\":2\"", "h3=\":1\";", "h3=\":1\"; ma",
            "h3=\":1\"; ma=", "h3=\":1\"; ma=-1", "h3=\":1\"; ma=x", "h%3=\":1\"", "h%GG=\":1\"", "h%FF=\":1\"",
            "h3=\"a b:1\"", "=\":1\"", "h3=\"::1:443\"", "h3=\":+1\"",
        ])
    func malformed(text: String) { #expect(AlternativeServices(text) == nil) }

    @Test("Several fields are one list, of which a limited number is read") func fields() throws {
        var headers = Headers()
        #expect(AlternativeServices(headers) == nil)
        headers.append("Alt-Svc", "h3=\":1\"")
        headers.append("alt-svc", "h2=\":2\"")
        #expect(
            AlternativeServices(headers) == .services([try Self.service("h3", 1), try Self.service("h2", 2)]))
        let many = (1...100).map { "h3=\":\($0)\"" }.joined(separator: ",")
        guard case .services(let all)? = AlternativeServices(many) else {
            Issue.record("not read")
            return
        }
        #expect(all.count == AlternativeServices.most && all.last?.port == 32)
    }

    @Test("Random changes of a field never trap") func mutations() {
        var random = SplitMix(state: 7)
        let sample = Array("h3=\":443\"; ma=60, w%3Dx=\"[::1]:8000\"; persist=1, clear".utf8)
        for _ in 0..<20_000 {
            var bytes = sample
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: .min ... .max, using: &random)
            }
            _ = AlternativeServices(String(decoding: bytes, as: UTF8.self))
        }
    }
}
