// SPDX-License-Identifier: Apache-2.0

// In this folder: `urlload top`

// `urlload top SOCKET`: shows what the session behind a statistics socket is doing, once a second.

import FoundationEssentials
import URLLoading
import URLLoadingIO

enum TopCommand {
    static let usage = """
        urlload top [--once] [--json | --openmetrics] SOCKET

        Shows the connections, queue and traffic of a program's session, every second, until the program ends or Ctrl-C.
        The program opens SOCKET: try session.exposeStatistics(at: "SOCKET"). Only its own user is served.
          --once    show the next second only, and end
          --json    write an object on a line for each second, as the program sends it
          --openmetrics
                    write the counts once as OpenMetrics text, and end
        Exit code 0; 7 if no program listens on SOCKET.

        """

    struct Options: Equatable {
        var path = ""
        var endsSoon = false
        var printsJSON = false
        var printsOpenMetrics = false
    }

    /// - Returns: `nil` if help is wanted.
    static func parse(_ arguments: [String]) throws(UsageError) -> Options? {
        var options = Options()
        for word in arguments {
            switch word {
            case "-h", "--help": return nil
            case "--once": options.endsSoon = true
            case "--json": options.printsJSON = true
            case "--openmetrics": options.printsOpenMetrics = true
            case _ where word.hasPrefix("-"): throw UsageError("top has no option \(word)")
            case _ where options.path.isEmpty: options.path = word
            default: throw UsageError("top takes one SOCKET")
            }
        }
        guard !options.path.isEmpty else { throw UsageError("top takes a SOCKET") }
        return options
    }

    static func run(_ arguments: [String]) async -> ExitCode {
        let options: Options
        do throws(UsageError) {
            guard let parsed = try parse(arguments) else { return Console.print(usage) }
            options = parsed
        } catch {
            return Console.usage(error.words, "urlload top --help")
        }
        let socket: LocalSocket
        do throws(IOFailure) { socket = try LocalSocket.connect(to: options.path) } catch {
            try? FileDescriptor.standardError.write("urlload: \(options.path): no program listens here\n")
            return .connect
        }
        let token = StopToken()
        Signals.watch { token.stop(.cancelled) }
        defer { socket.close() }
        do {
            try await show(SnapshotReader(socket, token), options)
            return Signals.exitCode ?? .done
        } catch let error as OutputError {
            return error.code
        } catch {
            return Signals.exitCode ?? .connectionLost
        }
    }

    private static func show(_ reader: SnapshotReader, _ options: Options) async throws {
        var reader = reader
        var table = TopTable()
        var count = 0
        while let line = try await reader.next() {
            count += 1
            if options.printsJSON {
                try FileDescriptor.standardOutput.write(String(decoding: line, as: UTF8.self) + "\n")
            } else if let snapshot = try? JSONDecoder().decode(SessionSnapshot.self, from: Data(line)) {
                if options.printsOpenMetrics {
                    return try FileDescriptor.standardOutput.write(OpenMetricsText(snapshot).text)
                }
                // Rates are differences: the first snapshot has none before it to compare with.
                let drawsNow = !options.endsSoon || count > 1
                let lines = table.lines(snapshot, columns: FileDescriptor.standardOutput.terminalSize?.columns ?? 100)
                if drawsNow { try draw(lines) }
            }
            if options.endsSoon, count == 2 { return }
        }
        guard count > 0 else { throw OutputError(.connectionLost, "the program closed the connection") }
    }

    /// Replaces the lines before on a terminal, from its upper left corner; adds an empty line elsewhere.
    private static func draw(_ lines: [String]) throws(OutputError) {
        let output = FileDescriptor.standardOutput
        guard output.isTerminal else { return try output.write((lines + [""]).map { $0 + "\n" }.joined()) }
        let rows = max(2, (output.terminalSize?.rows ?? 24) - 1)
        try output.write("\u{1B}[H" + lines.prefix(rows).map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J")
    }
}

/// Cuts what a socket sends into lines.
struct SnapshotReader {
    private let socket: LocalSocket
    private let token: StopToken
    private var held: [UInt8] = []
    /// A longer line is no snapshot.
    private static let most = 1 << 20

    init(_ socket: LocalSocket, _ token: StopToken) { (self.socket, self.token) = (socket, token) }

    /// Waits for the next line; `nil` at the end.
    mutating func next() async throws(IOFailure) -> [UInt8]? {
        while true {
            if let end = held.firstIndex(of: UInt8(ascii: "\n")) {
                defer { held.removeFirst(end + 1) }
                return Array(held[..<end])
            }
            let bytes = try await socket.receive(atMost: 64 << 10, token).bytes
            guard !bytes.isEmpty, held.count + bytes.count <= Self.most else { return nil }
            held += bytes
        }
    }
}
