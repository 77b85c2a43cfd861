// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestChildren
import URLLoadingTesting

@testable import URLLoadingAgent

/// A PostgreSQL server in a folder of its own, reached by a Unix socket. It runs as another user if the tests run as
/// root, as PostgreSQL demands.
final class PostgresServer: Sendable {
    let folder: String
    /// Of TLS on 127.0.0.1, and a part of the name of the Unix socket.
    private let port: UInt16
    private let identity: TestIdentity?
    private let memory: String
    private let process = Lock<ChildProcess?>(nil)
    private let databases = Atomic(0)

    /// The server of the suite whose row runs.
    @TaskLocal static var current: PostgresServer?

    /// The folder of the programs of the newest version; `nil` where PostgreSQL is not installed.
    private static let programs: String? = {
        let parent = "/usr/lib/postgresql"
        let versions = PrivateFolder.names(parent).compactMap { Int($0) }.sorted()
        let folders = versions.reversed().map { "\(parent)/\($0)/bin" } + ["/usr/bin", "/usr/local/bin"]
        return folders.first { access($0 + "/initdb", X_OK) == 0 && access($0 + "/postgres", X_OK) == 0 }
    }()
    static let isHere = programs != nil && PostgresLibrary.shared != nil
    static let isMissing: Comment = "PostgreSQL is not installed: script/setup --tests installs it"

    private static let isRoot = geteuid() == 0
    /// The account without files of its own that runs the server if the tests run as root.
    private static let other: UInt32 = 65_534

    /// - Parameters:
    ///   - passwords: whether connections need the password `sesame`.
    ///   - identity: the certificate with which the server serves TLS on 127.0.0.1, too.
    ///   - memory: of the server for pages (`shared_buffers`).
    init(passwords: Bool = false, tls identity: TestIdentity? = nil, memory: String = "16MB") async throws {
        (self.identity, self.memory) = (identity, memory)
        port = identity == nil ? 5432 : try Self.freePort()
        var template = Array("/tmp/urlpostgres-XXXXXX".utf8CString)
        folder = mkdtemp(&template).map { String(cString: $0) } ?? "/nowhere"
        chmod(folder, 0o755)
        for name in ["data", "run"] {
            mkdir("\(folder)/\(name)", 0o700)
            if Self.isRoot { chown("\(folder)/\(name)", Self.other, Self.other) }
        }
        let password = folder + "/run/password"
        try Data("sesame\n".utf8).write(to: URL(filePath: password))
        if Self.isRoot { chown(password, Self.other, Self.other) }
        if let identity {
            for (name, text) in [("crt", identity.certificatePEM), ("key", identity.keyPEM)] {
                let path = "\(folder)/run/server.\(name)"
                try Data(text).write(to: URL(filePath: path))
                chmod(path, 0o600)
                if Self.isRoot { chown(path, Self.other, Self.other) }
            }
        }
        let made = try Self.program(
            "initdb",
            [
                "-D", folder + "/data", "-U", "fleet", "--no-sync", "-E", "UTF8", "--locale=C",
                "--auth=\(passwords ? "scram-sha-256" : "trust")", "--pwfile=\(password)",
            ], folder + "/initdb.log")
        #expect(await made.wait() == 0, "\((try? FileReader.text(folder + "/initdb.log")) ?? "")")
        try await start()
    }

    deinit {
        process.withLock { $0 }?.send(SIGKILL)
        try? FileManager.default.removeItem(atPath: folder)
    }

    private static func program(_ name: String, _ arguments: [String], _ log: String) throws -> ChildProcess {
        let words = [try #require(programs) + "/" + name] + arguments
        let files = ChildProcess.Files(output: log, errors: log)
        guard isRoot else { return try ChildProcess(words[0], Array(words.dropFirst()), in: "/", files: files) }
        let user = ["--reuid=\(other)", "--regid=\(other)", "--clear-groups", "--no-new-privs"]
        return try ChildProcess("/usr/bin/setpriv", user + words, in: "/", files: files)
    }

    /// Starts the server, after a kill as well: its processes may still be ending.
    func start() async throws {
        var arguments = [
            "-D", folder + "/data", "-k", folder + "/run", "-c", "listen_addresses=", "-c", "max_connections=100",
            "-c", "fsync=off", "-c", "shared_buffers=\(memory)", "-c", "restart_after_crash=off",
        ]
        if identity != nil {
            arguments += [
                "-c", "listen_addresses=127.0.0.1", "-c", "port=\(port)", "-c", "ssl=on",
                "-c", "ssl_cert_file=\(folder)/run/server.crt", "-c", "ssl_key_file=\(folder)/run/server.key",
            ]
        }
        for _ in 0..<600 {
            let child = process.withLock { $0 }
            if child?.isRunning != true {
                let started = try Self.program("postgres", arguments, folder + "/postgres.log")
                process.withLock { $0 = started }
            }
            if access("\(folder)/run/.s.PGSQL.\(port)", F_OK) == 0,
                (try? await PostgresConnection.open(address("postgres"))) != nil
            {
                return
            }
            try await Task.sleep(for: .milliseconds(50))
        }
        Issue.record("PostgreSQL does not start: \((try? FileReader.text(folder + "/postgres.log")) ?? "")")
    }

    func end(_ signal: Int32 = SIGINT) async {
        let child = process.withLock { $0.take() }
        child?.send(signal)
        _ = await child?.wait()
    }

    func address(_ database: String, user: String = "fleet", password: String = "sesame") -> String {
        "postgresql://\(user):\(password)@/\(database)?host=\(folder)/run&port=\(port)"
    }

    /// The address over TLS.
    /// - Parameter roots: the path of the certificates of authorities that are trusted.
    func secureAddress(_ database: String, roots: String) -> String {
        "postgresql://fleet:sesame@localhost:\(port)/\(database)?hostaddr=127.0.0.1&sslmode=verify-full"
            + "&sslrootcert=\(roots)"
    }

    /// A port that no process listened on a moment ago.
    private static func freePort() throws -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let failure = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { general in
                bind(descriptor, general, length) != 0 || getsockname(descriptor, general, &length) != 0
            }
        }
        try #require(!failure)
        return UInt16(bigEndian: address.sin_port)
    }

    /// Makes an empty database.
    /// - Parameter disk: a folder of the server's user, in which its tables are.
    /// - Returns: its address.
    func database(on disk: String? = nil) async throws -> String {
        let name = "db\(databases.add(1, ordering: .relaxed).newValue)"
        let admin = try await PostgresConnection.open(address("postgres"))
        if let disk { try await admin.run("CREATE TABLESPACE of_\(name) LOCATION '\(disk)'") }
        try await admin.run("CREATE DATABASE \(name)" + (disk == nil ? "" : " TABLESPACE of_\(name)"))
        return address(name)
    }

    /// Mounts a small disk for a database in the server's folder.
    /// - Returns: its path; `nil` if the tests may not mount one.
    func mountDisk(_ name: String, megabytes: Int) -> String? {
        let path = "\(folder)/\(name)"
        mkdir(path, 0o700)
        let options = "size=\(megabytes)m,mode=0700,uid=\(Self.other),gid=\(Self.other)"
        return Self.isRoot && mount("tmpfs", path, "tmpfs", 0, options) == 0 ? path : nil
    }
}

/// Starts a server for the rows of a suite.
struct PostgresTrait: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        guard PostgresServer.isHere else { return try await function() }
        let server = try await PostgresServer()
        try await PostgresServer.$current.withValue(server) { try await function() }
        await server.end()
    }
}

extension Trait where Self == PostgresTrait {
    /// ``PostgresServer/current`` is a server that all rows of the suite share.
    static var postgres: PostgresTrait { PostgresTrait() }
}
