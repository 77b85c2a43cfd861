// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing
import URLLoadingTestSupport
import URLLoadingTesting

/// Kerberos with MIT's library and Apache: a process with its own ticket cache, because the library reads the
/// environment.
@Suite(.enabled(if: Servers.areHere, Servers.areMissing), .timeLimit(.minutes(4)))
struct TicketTests {
    /// A copy, because tickets for services are added to the cache.
    private func load(_ tickets: String, _ words: [String], service: String = "localhost") async throws
        -> Running.Result
    {
        let folder = try TemporaryFolder()
        let caches = try Servers.text("TICKETS", "/")
        if tickets != "none" {
            try FileManager.default.copyItem(atPath: caches + tickets, toPath: folder.path + "/cache")
        }
        let environment = ["KRB5_CONFIG": try Servers.text("KRB5", ""), "KRB5CCNAME": "FILE:" + folder.path + "/cache"]
        let result = try await Running.urlload(
            ["-s", "--cacert", try Servers.text("CA", "")] + words, environment: environment)
        withExtendedLifetime(folder) {}
        return result
    }

    private static func named(_ server: String, _ path: String) throws -> String {
        try Servers.text(server, path).replacing("127.0.0.1", with: "localhost")
    }

    @Test(arguments: ["APACHE", "APACHE_TLS", "APACHE_H2"])
    func `A ticket is used without a challenge decision (checklist 70)`(
        _ server: String
    ) async throws {
        let target = try Self.named(server, "/ticket/1k.txt")
        for words in [["--negotiate"], []] {
            // Twice: an accepted scheme is used preemptively, with a new token.
            let result = try await load("alice", words + ["-i", target, target])
            #expect(
                result.code == 0 && result.text.components(separatedBy: "alice@TEST.LOCAL").count == 3,
                "\(result.text.prefix(400)) \(result.errors)")
            // The head of the first challenge, and of no other.
            #expect(result.text.components(separatedBy: " 401").count == 2)
        }
    }

    @Test func `A ticket takes a challenge and a connection of its own once, and no round trip after them`()
        async throws
    {
        let server = try #require(URL(string: try Self.named("APACHE", "/")))
        try await withNetworkRelay(to: server) { relay in
            let target = relay.url("/ticket/1k.txt").absoluteString
            let first = try await load("alice", [target])
            #expect(first.code == 0 && relay.connections.map(\.roundTrips) == [2, 2], "\(first.errors)")
            let both = try await load("alice", [target, target])
            #expect(both.code == 0 && relay.connections.map(\.roundTrips) == [2, 2, 2, 3], "\(both.errors)")
        }
    }

    @Test func `A body is sent again with the ticket`() async throws {
        let result = try await load("alice", ["-i", "--data", "text", try Self.named("APACHE", "/ticket/1k.txt")])
        #expect(result.text.contains("alice@TEST.LOCAL"), "\(result.text.prefix(400)) \(result.errors)")
    }

    @Test(arguments: ["expired", "none"]) func `Without a valid ticket the refusal is the response`(
        _ tickets: String
    ) async throws {
        // A ticket with a lifetime of one second.
        try await Task.sleep(for: .milliseconds(1100))
        let refused = try await load(tickets, ["-i", try Self.named("APACHE", "/ticket/1k.txt")])
        #expect(
            refused.code == 0 && refused.text.hasPrefix("HTTP/1.1 401"), "\(refused.text.prefix(200)) \(refused.errors)"
        )
        // And the next scheme, if there is one.
        let next = try await load(tickets, ["-i", "-u", "u:pw", try Self.named("APACHE", "/ticket-or-basic/1k.txt")])
        #expect(next.text.contains("HTTP/1.1 200"), "\(next.text.prefix(200)) \(next.errors)")
    }

    @Test func `A server with another key or a name that is not a service's is refused`() async throws {
        let wrong = try await load("alice", ["-i", try Self.named("APACHE", "/wrong-ticket/1k.txt")])
        #expect(wrong.code == 0 && wrong.text.hasPrefix("HTTP/1.1 401"), "\(wrong.text.prefix(200)) \(wrong.errors)")
        let address = try await load("alice", ["-i", try Servers.text("APACHE", "/ticket/1k.txt")])
        #expect(address.text.hasPrefix("HTTP/1.1 401"), "\(address.text.prefix(200)) \(address.errors)")
    }

    @Test func `A server that refuses the ticket gets the next scheme`() async throws {
        let result = try await load("alice", ["-i", "-u", "u:pw", try Self.named("APACHE", "/ticket-or-basic/1k.txt")])
        #expect(result.text.contains("HTTP/1.1 200"), "\(result.text.prefix(300)) \(result.errors)")
    }

    @Test func `No credentials are delegated (security 85)`() async throws {
        let folder = try TemporaryFolder()
        try FileManager.default.copyItem(atPath: try Servers.text("TICKETS", "/alice"), toPath: folder.path + "/cache")
        let trace = folder.path + "/trace"
        let environment = [
            "KRB5_CONFIG": try Servers.text("KRB5", ""), "KRB5CCNAME": "FILE:" + folder.path + "/cache",
            "KRB5_TRACE": trace,
        ]
        let result = try await Running.urlload(
            ["-s", "-i", try Self.named("APACHE", "/ticket/1k.txt")], environment: environment)
        #expect(result.text.contains("alice@TEST.LOCAL"))
        let said = try String(contentsOfFile: trace, encoding: .utf8)
        // Delegation would ask the KDC for a ticket to forward.
        #expect(said.contains("HTTP/localhost@TEST.LOCAL") && !said.lowercased().contains("forward"))
    }

    // MARK: Passwords, bindings, proxies

    @Test func `Without a ticket the password obtains one, and is sent to the KDC only (checklist 66)`() async throws {
        let target = try Self.named("APACHE", "/ticket/1k.txt")
        let right = try await load("none", ["-v", "-i", "--negotiate", "-u", "alice@TEST.LOCAL:pw", target, target])
        #expect(
            right.text.components(separatedBy: "alice@TEST.LOCAL").count == 3,
            "\(right.text.prefix(300)) \(right.errors)")
        #expect(!right.errors.contains("Basic "))
        for user in ["alice@TEST.LOCAL:no", "nobody@TEST.LOCAL:pw", "alice@NO.REALM:pw", "alice:pw", ":"] {
            let wrong = try await load("none", ["-i", "--negotiate", "-u", user, target])
            #expect(wrong.text.hasPrefix("HTTP/1.1 401"), "\(user) \(wrong.text.prefix(300)) \(wrong.errors)")
        }
        // An existing ticket has precedence.
        let both = try await load("alice", ["-i", "--negotiate", "-u", "nobody@TEST.LOCAL:no", target])
        #expect(both.text.contains("alice@TEST.LOCAL"))
    }

    @Test func `A ticket is bound to the server's certificate`() async throws {
        let target = try Servers.text("TICKETS_TLS", "/")
        let result = try await load("alice", [target, target])
        #expect(result.text == "alice@TEST.LOCAL bound\nalice@TEST.LOCAL bound\n", "\(result.errors)")
        let late = try await load("none", ["--negotiate", "-u", "alice@TEST.LOCAL:pw", target])
        #expect(late.text == "alice@TEST.LOCAL bound\n", "\(late.errors)")
    }

    @Test(arguments: ["SQUID_TICKETS", "TICKETS_TLS"])
    func `A proxy accepts tickets for requests and for tunnels (checklist 88)`(_ proxy: String) async throws {
        let way = ["-i", "-x", try Servers.text(proxy, "")]
        for origin in ["NGINX", "NGINX_TLS"] {
            let target = try ProxyTests.renamed(origin, "/1k.txt").absoluteString
            let result = try await load("alice", way + [target, target])
            #expect(
                result.code == 0 && result.text.components(separatedBy: "0000128\n").count == 3,
                "\(origin) \(result.text.prefix(300)) \(result.errors)")
            // Over TLS the ticket is bound to the proxy's certificate.
            if proxy == "TICKETS_TLS", origin == "NGINX" { #expect(result.text.contains("alice@TEST.LOCAL bound")) }
            let refused = try await load("none", way + [target])
            #expect(
                refused.text.isEmpty ? refused.code == 56 : refused.text.hasPrefix("HTTP/1.1 407"),
                "\(refused.text.prefix(100)) \(refused.errors)")
        }
        let sent = try await load(
            "alice", way + ["-d", "text", try ProxyTests.renamed("NGINX", "/up/echo").absoluteString])
        #expect(sent.text.contains("200"), "\(sent.text.prefix(300)) \(sent.errors)")
    }

    /// The library itself would wait for minutes.
    @Test func `A KDC that never answers leads to the next scheme after ten seconds`() async throws {
        let silent = try SilentServer()
        let folder = try TemporaryFolder()
        let text = try String(contentsOfFile: try Servers.text("KRB5", ""), encoding: .utf8)
        let words = text.split(separator: "\n").map {
            $0.contains("kdc = ") ? "kdc = 127.0.0.1:\(silent.port)" : String($0)
        }
        try words.joined(separator: "\n").write(toFile: folder.path + "/krb5.conf", atomically: true, encoding: .utf8)
        try FileManager.default.copyItem(atPath: try Servers.text("TICKETS", "/alice"), toPath: folder.path + "/cache")
        let environment = ["KRB5_CONFIG": folder.path + "/krb5.conf", "KRB5CCNAME": "FILE:" + folder.path + "/cache"]
        let start = ContinuousClock.now
        let result = try await Running.urlload(
            ["-s", "-i", "-u", "u:pw", try Self.named("APACHE", "/ticket-or-basic/1k.txt")], environment: environment)
        #expect(result.text.contains("HTTP/1.1 200"), "\(result.text.prefix(300)) \(result.errors)")
        #expect(ContinuousClock.now - start >= .seconds(9))
        withExtendedLifetime(silent) {}
    }
}

/// The kernel accepts the connection, and nothing answers.
private final class SilentServer: Sendable {
    private let socket: Int32
    let port: UInt16

    init() throws {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = socket
        let isBound = withUnsafeMutableBytes(of: &address) { bytes in
            guard let start = bytes.baseAddress else { return false }
            let place = start.assumingMemoryBound(to: sockaddr.self)
            return bind(socket, place, size) == 0 && listen(socket, 16) == 0 && getsockname(socket, place, &size) == 0
        }
        port = UInt16(bigEndian: address.sin_port)
        try #require(isBound)
    }

    deinit { close(socket) }
}
