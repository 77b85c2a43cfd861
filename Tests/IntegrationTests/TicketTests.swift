import Foundation
import Testing

/// Kerberos as MIT and Apache speak it: a process with a cache of its own, for the library reads the environment.
@Suite(.enabled(if: Servers.areHere, Servers.areMissing), .timeLimit(.minutes(1)))
struct TicketTests {
    /// A copy: tickets for services are added to it.
    private func load(_ tickets: String, _ words: [String], service: String = "localhost") async throws -> Running.Result {
        let folder = try TemporaryFolder()
        let caches = try Servers.text("TICKETS", "/")
        if tickets != "none" { try FileManager.default.copyItem(atPath: caches + tickets, toPath: folder.path + "/cache") }
        let environment = ["KRB5_CONFIG": try Servers.text("KRB5", ""), "KRB5CCNAME": "FILE:" + folder.path + "/cache"]
        let result = try await Running.urlload(["-s", "--cacert", try Servers.text("CA", "")] + words, environment: environment)
        withExtendedLifetime(folder) {}
        return result
    }

    private static func named(_ server: String, _ path: String) throws -> String {
        try Servers.text(server, path).replacing("127.0.0.1", with: "localhost")
    }

    @Test(arguments: ["APACHE", "APACHE_TLS", "APACHE_H2"]) func `checklist 70: a ticket is used, and nobody asked`(_ server: String) async throws {
        let target = try Self.named(server, "/ticket/1k.txt")
        for words in [["--negotiate"], []] {
            // Twice: what was accepted is said unasked, with a token of its own.
            let result = try await load("alice", words + ["-i", target, target])
            #expect(result.code == 0 && result.text.components(separatedBy: "alice@TEST.LOCAL").count == 3, "\(result.text.prefix(400)) \(result.errors)")
            #expect(!result.text.contains(" 401"))
        }
    }

    @Test func `a body goes out again with the ticket`() async throws {
        let result = try await load("alice", ["-i", "--data", "text", try Self.named("APACHE", "/ticket/1k.txt")])
        #expect(result.text.contains("alice@TEST.LOCAL"), "\(result.text.prefix(400)) \(result.errors)")
    }

    @Test(arguments: ["expired", "none"]) func `no ticket, or one that has expired: the refusal is the response`(_ tickets: String) async throws {
        // One of a second.
        try await Task.sleep(for: .milliseconds(1100))
        let refused = try await load(tickets, ["-i", try Self.named("APACHE", "/ticket/1k.txt")])
        #expect(refused.code == 0 && refused.text.hasPrefix("HTTP/1.1 401"), "\(refused.text.prefix(200)) \(refused.errors)")
        // And the next way, where there is one.
        let next = try await load(tickets, ["-i", "-u", "u:pw", try Self.named("APACHE", "/ticket-or-basic/1k.txt")])
        #expect(next.text.contains("HTTP/1.1 200"), "\(next.text.prefix(200)) \(next.errors)")
    }

    @Test func `a server with another's key, or under a name that is no service's`() async throws {
        let wrong = try await load("alice", ["-i", try Self.named("APACHE", "/wrong-ticket/1k.txt")])
        #expect(wrong.code == 0 && wrong.text.hasPrefix("HTTP/1.1 401"), "\(wrong.text.prefix(200)) \(wrong.errors)")
        let address = try await load("alice", ["-i", try Servers.text("APACHE", "/ticket/1k.txt")])
        #expect(address.text.hasPrefix("HTTP/1.1 401"), "\(address.text.prefix(200)) \(address.errors)")
    }

    @Test func `a server that takes no ticket gets the next way`() async throws {
        let result = try await load("alice", ["-i", "-u", "u:pw", try Self.named("APACHE", "/ticket-or-basic/1k.txt")])
        #expect(result.text.contains("HTTP/1.1 200"), "\(result.text.prefix(300)) \(result.errors)")
    }

    @Test func `security 85: nothing is delegated`() async throws {
        let folder = try TemporaryFolder()
        try FileManager.default.copyItem(atPath: try Servers.text("TICKETS", "/alice"), toPath: folder.path + "/cache")
        let trace = folder.path + "/trace"
        let environment = ["KRB5_CONFIG": try Servers.text("KRB5", ""), "KRB5CCNAME": "FILE:" + folder.path + "/cache", "KRB5_TRACE": trace]
        let result = try await Running.urlload(["-s", "-i", try Self.named("APACHE", "/ticket/1k.txt")], environment: environment)
        #expect(result.text.contains("alice@TEST.LOCAL"))
        let said = try String(contentsOfFile: trace, encoding: .utf8)
        // Who delegates asks the KDC for a ticket to forward.
        #expect(said.contains("HTTP/localhost@TEST.LOCAL") && !said.lowercased().contains("forward"))
    }
}
