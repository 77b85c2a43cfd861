// An ftp server for tests, in the test's own process: its life, its files, what it remembers. What a connection does
// is in `FTPServerConnection`.

public import FoundationEssentials
import Synchronization
import URLLoadingIO

/// An ftp server on a free port of this machine, with its files in memory, and every fault chosen by the test.
///
/// ```swift
/// try await withFTPTestServer { server in
///     server.put("pub/a.txt", Data("hello".utf8))
///     let (data, _) = try await session.data(from: server.url("/pub/a.txt"))
///     assert(server.commands.contains("RETR pub/a.txt"))
/// }
/// ```
/// It serves passive transfers (EPSV, PASV), REST, SIZE, MDTM, MLSD, and TLS in both ways. Its users share one tree.
public final class FTPTestServer: Sendable {
    /// How it was set up.
    public let configuration: Configuration
    let tls: TLSServerContext?
    private let listener: SocketListener
    private let token = StopToken()
    private let task = Lock<Task<Void, Never>?>(nil)
    private let state: Lock<State>

    /// A file as the server has it.
    public struct File: Sendable, Hashable {
        public var content: Data
        /// `YYYYMMDDHHMMSS`, in UTC.
        public var modified: String
    }

    /// What has happened so far.
    public struct Counts: Sendable, Hashable {
        /// Control connections.
        public var accepted = 0
        /// Those that are open.
        public var open = 0
        /// Data connections that were accepted.
        public var transfers = 0
        /// Those that are open.
        public var openTransfers = 0
        /// Faults of ``FTPFault/stall(_:)`` and ``FTPFault/stallsData(after:)`` that hold somebody up.
        public var stalled = 0
        /// TLS handshakes on data connections that went on with a session.
        public var resumed = 0
    }

    private struct State: Sendable {
        var files: [String: File] = [:]
        var faults: [FTPFault] = []
        var commands: [String] = []
        var counts = Counts()
        var tokens: [Int: StopToken] = [:]
        var next = 0
    }

    /// Listens, but does not answer before ``start()`` or ``run()``.
    /// - Throws: an error that says why no socket or no TLS context was to be had.
    public init(_ configuration: Configuration = Configuration()) throws {
        self.configuration = configuration
        tls = try configuration.tls.map { try TLSServerContext(.init($0)) }
        listener = try SocketListener(try configuration.address.socketAddress)
        state = Lock(State())
    }

    /// The port of its control connections.
    public var port: UInt16 { listener.address.port }

    /// The URL of a path: `ftp`, or `ftps` of a server whose TLS is implicit.
    /// - Parameters:
    ///   - path: as in a URL, beginning with `/`.
    ///   - user: the userinfo, as in a URL; `nil` without.
    public func url(_ path: String = "/", user: String? = nil) -> URL {
        let scheme = configuration.security == .implicit ? "ftps" : "ftp"
        let host =
            configuration.name ?? (tls != nil ? "localhost" : configuration.address == .ipv6 ? "[::1]" : "127.0.0.1")
        let text = "\(scheme)://\(user.map { $0 + "@" } ?? "")\(host):\(port)"
        return URL(string: text + path) ?? URL(filePath: "/")
    }

    // MARK: Files

    /// Puts a file there; folders are what names have in common.
    public func put(_ path: String, _ content: Data, modified: String = "20260102030405") {
        state.withLock { $0.files[Self.normal(path)] = File(content: content, modified: modified) }
    }

    /// The file of a name; `nil` if there is none.
    public func file(_ path: String) -> File? { state.withLock { $0.files[Self.normal(path)] } }

    /// The names and files of a folder, sorted. Folders in it have no content.
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

    // MARK: Faults, and what was seen

    /// From now on this goes wrong, in addition to what did before.
    public func inject(_ faults: FTPFault...) { state.withLock { $0.faults += faults } }
    /// Nothing goes wrong any more.
    public func removeFaults() { state.withLock { $0.faults = [] } }
    func remove(_ fault: FTPFault) {
        state.withLock { state in
            if let index = state.faults.firstIndex(of: fault) { state.faults.remove(at: index) }
        }
    }
    var faults: [FTPFault] { state.withLock { $0.faults } }

    /// The commands of all connections, in their order, without their line ends. Passwords among them.
    public var commands: [String] { state.withLock { $0.commands } }
    func note(_ command: String) { state.withLock { $0.commands.append(command) } }

    /// What has happened so far.
    public var counts: Counts { state.withLock { $0.counts } }
    func count(_ change: (inout Counts) -> Void) { state.withLock { change(&$0.counts) } }

    /// Waits until the counts fulfil a condition.
    ///
    /// ```swift
    /// try await server.wait { $0.open == 0 }   // every control connection is closed
    /// ```
    /// - Parameters:
    ///   - limit: of the wait.
    ///   - isSo: the condition, checked every 200 µs.
    /// - Throws: ``WaitTimedOut`` at the limit; `CancellationError` if the calling task is cancelled first.
    public nonisolated(nonsending) func wait(
        within limit: Duration = WaitTimedOut.usualLimit,
        file: StaticString = #fileID, line: UInt = #line,
        until isSo: (Counts) -> Bool
    ) async throws {
        try await WaitLimit(limit, "the counts of the ftp server", file, line).poll {
            isSo(counts)
        } seen: {
            // The verbs alone: what follows may be a password.
            "\(counts); commands: \(commands.map { $0.prefix { $0 != " " } }.shown())"
        }
    }

    // MARK: Its life

    /// Serves in a task of its own until ``stop()``. A second call does nothing.
    public func start() {
        task.withLock { task in
            guard task == nil else { return }
            task = Task { await self.run() }
        }
    }

    /// Ends every connection and returns when the last one is closed.
    public func stop() async {
        stopServing()
        await task.withLock { $0 }?.value
    }

    /// Serves until ``stop()``, or until the calling task is cancelled. It can run once.
    @concurrent public func run() async {
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                while let socket = await nextConnection() {
                    let own = StopToken()
                    let number = enter(own)
                    group.addTask {
                        await FTPServerConnection(self, socket, own).serve()
                        self.leave(number)
                    }
                }
            }
        } onCancel: {
            stopServing()
        }
        listener.close()
    }

    /// Closes every connection; new ones are served.
    public func closeConnections() {
        for token in state.withLock({ $0.tokens.values.map { $0 } }) { token.stop(.cancelled) }
    }

    private func stopServing() {
        token.stop(.cancelled)
        closeConnections()
    }

    private func enter(_ token: StopToken) -> Int {
        let isLate = self.token.stopReason != nil
        if isLate { token.stop(.cancelled) }
        return state.withLock { state in
            state.next += 1
            state.tokens[state.next] = token
            state.counts.accepted += 1
            state.counts.open += 1
            return state.next
        }
    }

    private func leave(_ number: Int) {
        state.withLock { state in
            state.tokens[number] = nil
            state.counts.open -= 1
        }
    }

    private func nextConnection() async -> SocketTransport? {
        while token.stopReason == nil {
            do throws(IOFailure) { return try await listener.accept(token) } catch {
                try? await Poller.shared.sleep(until: Poller.now() + 5_000_000, token)
            }
        }
        return nil
    }
}

/// Serves for the length of a scope: at its end, however it is left, every connection is closed before this returns.
/// - Throws: what ``FTPTestServer/init(_:)`` or the closure throws.
nonisolated(nonsending) public func withFTPTestServer<R>(
    _ configuration: FTPTestServer.Configuration = .init(),
    _ use: nonisolated(nonsending) (FTPTestServer) async throws -> R
) async throws -> R {
    let server = try FTPTestServer(configuration)
    async let serving: Void = server.run()
    do {
        let result = try await use(server)
        await server.stop()
        await serving
        return result
    } catch {
        await server.stop()
        await serving
        throw error
    }
}
