// SPDX-License-Identifier: Apache-2.0

// An FTP server in the test's own process: lifetime, files and records. `FTPServerConnection` serves the connections.

public import FoundationEssentials
import Synchronization
import URLLoadingIO

/// An FTP server on a free local port, with files in memory and faults chosen by the test.
///
/// ```swift
/// try await withFTPTestServer { server in
///     server.put("pub/a.txt", Data("hello".utf8))
///     let (data, _) = try await session.data(from: server.url("/pub/a.txt"))
///     assert(server.commands.contains("RETR pub/a.txt"))
/// }
/// ```
/// It supports passive transfers (EPSV, PASV), REST, SIZE, MDTM, MLSD, and explicit and implicit TLS. All users share
/// one file tree.
public final class FTPTestServer: Sendable {
    /// The configuration that the server was created with.
    public let configuration: Configuration
    let tls: TLSServerContext?
    let life: ServerLife
    private let state = Lock(State())

    /// A file of the server.
    public struct File: Sendable, Hashable {
        /// The content of the file.
        public var content: Data
        /// The modification time as `YYYYMMDDHHMMSS`, in UTC.
        public var modified: String
    }

    /// Counters of the server's activity, all taken at the same moment.
    public struct Counts: Sendable, Hashable {
        /// Control connections accepted.
        public var accepted = 0
        /// Control connections open now.
        public var open = 0
        /// Data connections accepted.
        public var transfers = 0
        /// Data connections open now.
        public var openTransfers = 0
        /// Connections that currently stall because of a stall or ``FTPFault/stallsData(after:)``.
        public var stalled = 0
        /// Data connections that resumed a TLS session.
        public var resumed = 0
    }

    struct State: ServerState {
        fileprivate var files: [String: File] = [:]
        fileprivate var faults: [FTPFault] = []
        fileprivate(set) var commands: [String] = []
        fileprivate var connections = ServerConnections<FTPServerConnection>()
        /// The counters of everything except control connections.
        fileprivate var activity = Counts()
        var watchers: [PollSlot] = []

        var counts: Counts {
            var counts = activity
            (counts.accepted, counts.open) = (connections.accepted, connections.open.count)
            return counts
        }

        /// The state as shown by a wait that timed out: verbs only, because arguments may be passwords.
        var shown: String {
            "\(counts); commands: \(commands.map { $0.prefix { $0 != " " } }.shown())"
        }
    }

    /// Listens on a port; serves only once ``start()`` or ``run()`` is called.
    /// - Throws: an error if the socket or the TLS context could not be created.
    public init(_ configuration: Configuration = Configuration()) throws {
        self.configuration = configuration
        tls = try configuration.tls.map { try TLSServerContext(.init($0)) }
        life = try ServerLife(try configuration.address.socketAddress)
    }

    /// The port for control connections.
    public var port: UInt16 { life.port }

    /// Returns the URL of a path: scheme `ftp`, or `ftps` for a server with implicit TLS.
    /// - Parameters:
    ///   - path: a URL path, beginning with `/`.
    ///   - user: the URL's userinfo; `nil` for none.
    public func url(_ path: String = "/", user: String? = nil) -> URL {
        let scheme = configuration.security == .implicit ? "ftps" : "ftp"
        let authority = configuration.address.authority(host: configuration.name, isSecure: tls != nil, port: port)
        let text = "\(scheme)://\(user.map { $0 + "@" } ?? "")\(authority)"
        return URL(string: text + path) ?? URL(filePath: "/")
    }

    // MARK: Files

    /// Stores a file; folders exist implicitly as prefixes of paths.
    public func put(_ path: String, _ content: Data, modified: String = "20260102030405") {
        state.withLock { $0.files[Self.normal(path)] = File(content: content, modified: modified) }
    }

    /// Returns a file; `nil` if it does not exist.
    public func file(_ path: String) -> File? { state.withLock { $0.files[Self.normal(path)] } }

    /// Returns the entries of a folder, sorted by name. The file of a subfolder is `nil`.
    func list(_ path: String) -> [(String, File?)] {
        let folder = Self.normal(path)
        return state.withLock { state in
            var entries: [String: File?] = [:]
            for (name, file) in state.files where folder.isEmpty || name.hasPrefix(folder + "/") {
                let rest = folder.isEmpty ? name[...] : name.dropFirst(folder.count + 1)
                let first = String(rest.prefix { $0 != "/" })
                entries.updateValue(first.count == rest.count ? file : nil, forKey: first)
            }
            return entries.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        }
    }

    private static func normal(_ path: String) -> String { path.split(separator: "/").joined(separator: "/") }

    // MARK: Faults and records

    /// Adds faults that apply from now on.
    public func inject(_ faults: FTPFault...) { state.withLock { $0.faults += faults } }
    /// Removes all faults.
    public func removeFaults() { state.withLock { $0.faults = [] } }
    func remove(_ fault: FTPFault) {
        state.withLock { state in
            if let index = state.faults.firstIndex(of: fault) { state.faults.remove(at: index) }
        }
    }
    var faults: [FTPFault] { state.withLock { $0.faults } }

    /// The commands of all connections in order, without line ends; including passwords.
    public var commands: [String] { state.withLock { $0.commands } }
    func note(_ command: String) { change { $0.commands.append(command) } }

    /// The current counters.
    public var counts: Counts { state.withLock { $0.counts } }
    func count(_ update: (inout Counts) -> Void) { change { update(&$0.activity) } }

    /// Waits until the counters fulfil a condition.
    ///
    /// ```swift
    /// try await server.wait { $0.open == 0 }   // every control connection is closed
    /// ```
    /// - Parameters:
    ///   - limit: the longest time to wait.
    ///   - isSo: evaluated after every change of the state.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func wait(
        timeout limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line,
        until isSo: @Sendable (Counts) -> Bool
    ) async throws {
        try await wait(WaitLimit(limit, "the counts of the ftp server", file, line)) { isSo($0.counts) ? () : nil }
    }

    // MARK: Lifetime

    /// Serves in a separate task until ``stop()``. A second call does nothing.
    public func start() { startServing() }

    /// Ends every connection; returns once all are closed.
    public func stop() async { await stopServing() }

    /// Serves until ``stop()``, or until the calling task is cancelled. Can be called once.
    @concurrent public func run() async { await serveAll() }

    /// Closes every connection; new ones are still served.
    public func closeConnections() {
        for connection in state.withLock({ Array($0.connections.open.values) }) { connection.end() }
    }

    func closed(_ number: Int) { change { $0.connections.close(number) } }
}

extension FTPTestServer: ServingTests, WatchedServer {
    func withState<R: Sendable>(_ use: (inout State) -> R) -> R { state.withLock { use(&$0) } }
    func open(_ socket: SocketTransport) -> FTPServerConnection? {
        change { $0.connections.open { FTPServerConnection(socket, number: $0, self) } }
    }
    func stopOpening() -> [FTPServerConnection] { state.withLock { $0.connections.stop() } }
}

/// Runs an FTP server for the duration of a closure; all connections are closed before this function returns or throws.
/// - Throws: the errors of ``FTPTestServer/init(_:)`` and of the closure.
nonisolated(nonsending) public func withFTPTestServer<R>(
    _ configuration: FTPTestServer.Configuration = .init(),
    _ use: nonisolated(nonsending) (FTPTestServer) async throws -> R
) async throws -> R {
    try await FTPTestServer(configuration).serving(use)
}
