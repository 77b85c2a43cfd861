// SPDX-License-Identifier: Apache-2.0

// The servers that `script/test` starts, as named by the environment.

import FoundationEssentials
import Glibc
import Testing
import URLLoading

enum Servers {
    static let areHere = variable("NGINX") != nil
    static let areMissing: Comment =
        "No servers: script/test starts them, or source script/servers and call start_servers"
    /// True in `script/test --long`.
    static let isLong = getenv("URLLOADING_LONG") != nil

    /// True in `script/test --far`: the URLs are those of relays, and what a server says of its own URL is not.
    static let isFar = getenv("URLLOADING_NEAR_NGINX") != nil

    /// The sanitizer that this build has, by its name in `-sanitize=`.
    static let sanitizer: String? = {
        #if URLLOADING_THREAD_SANITIZER
        "thread"
        #elseif URLLOADING_ADDRESS_SANITIZER
        "address"
        #else
        nil
        #endif
    }()
    static let isSanitized = sanitizer != nil

    /// `Servers.url("NGINX", "/1k.txt")`.
    static func url(_ server: String, _ path: String) throws -> URL {
        try #require(URL(string: text(server, path)))
    }

    static func text(_ server: String, _ path: String) throws -> String {
        try #require(variable(server), "URLLOADING_TEST_\(server) is not set") + path
    }

    static func variable(_ name: String) -> String? {
        getenv("URLLOADING_TEST_" + name).map { String(cString: $0) }
    }

    /// The same server by its IPv6 address; `nil` without IPv6, by the same check as in `script/servers`.
    static func overIPv6(_ server: String, _ path: String) throws -> URL? {
        let addresses = (try? String(contentsOfFile: "/proc/net/if_inet6", encoding: .utf8)) ?? ""
        let loopback = String(repeating: "0", count: 31) + "1 "
        guard addresses.split(separator: "\n").contains(where: { $0.hasPrefix(loopback) }) else { return nil }
        // Relays of `script/test --far` listen on 127.0.0.1 only.
        let near = getenv("URLLOADING_NEAR_" + server).map { String(cString: $0) + path }
        let url = try near.flatMap { URL(string: $0) } ?? url(server, path)
        return URL(string: "\(url.scheme ?? "")://[::1]:\(url.port ?? 0)\(path)")
    }

    /// A configuration that trusts the servers' certificates and has short timeouts.
    static var configuration: Configuration {
        var configuration = Configuration.ephemeral
        configuration.timeouts.idle = .seconds(20)
        // Each load shall reach its server; tests of the cache change that.
        configuration.caching.usesMemoryStore = false
        if let path = variable("CA") { configuration.tls.trustRoots = .file(URL(filePath: path)) }
        return configuration
    }

    /// The bytes of `1k.txt` and `1m.txt`: numbered lines of eight bytes.
    static func numbers(_ count: Int) -> Data {
        var bytes: [UInt8] = []
        for number in 1...count {
            let digits = String(number)
            bytes += String(repeating: "0", count: 7 - digits.count).utf8
            bytes += digits.utf8
            bytes.append(10)
        }
        return Data(bytes)
    }
}

/// Expects a load to fail.
func failure(_ session: Session, _ request: Request) async throws -> LoadError {
    do {
        let (data, response) = try await session.data(for: request)
        throw Unexpected(description: "loaded: \(response), \(data.count) bytes")
    } catch let error as LoadError {
        return error
    }
}

struct Unexpected: Error, CustomStringConvertible {
    let description: String
}
