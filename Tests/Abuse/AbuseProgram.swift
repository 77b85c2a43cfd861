// SPDX-License-Identifier: Apache-2.0

// The program of script/abuse: a driver that starts testing servers and child processes, and the child processes, each
// of which makes a random program over both APIs from its seed.

import Foundation

@main
enum AbuseProgram {
    static let usage = """
        AbuseProgram drive [--seconds N] [--seed S] [--children N] [--operations N] [--without NAME]… [--reports FOLDER]
        AbuseProgram child --seed S [--operations N] [--in-flight N] [--cores N] [--descriptors N] [--memory MIB]
                           [--threads N] [--leave MILLISECONDS] [--end exit|return] [--only NAME]… [--without NAME]…
                           [--servers TEXT --authority FILE]     without them the servers are started as well
        AbuseProgram exits [--runs N] [--kind K]… [--seed S]
        AbuseProgram exit --kind K --after MICROSECONDS --way exit|return|deinit --count N
                          --servers TEXT --authority FILE
        AbuseProgram serve [--seed S]                            the servers alone, for a child in a debugger
        AbuseProgram names                                       the operations and the kinds of exit
        """

    static func main() {
        var words = Array(CommandLine.arguments.dropFirst())
        let mode = words.isEmpty ? "" : words.removeFirst()
        do {
            let arguments = try AbuseArguments(words)
            switch mode {
            case "drive": block { try await AbuseDriver(arguments).run() }
            case "serve": block { try await AbuseHome(seed: arguments.seed ?? 1).serve() }
            case "exits": block { try await ExitDriver(arguments).run() }
            case "child" where arguments.servers == nil: block { try await AbuseDriver(arguments).repeatOne() }
            case "child": try AbuseChild.run(arguments)
            case "exit": try ExitRun.run(arguments)
            case "names":
                say("operations: \(Operation.all.map(\.name).joined(separator: " "))")
                say("exits: \(ExitKind.allCases.map(\.rawValue).joined(separator: " "))")
            default: throw AbuseFailure(mode.isEmpty ? "a mode is missing" : "\(mode) is no mode")
            }
        } catch {
            complain("AbuseProgram: \(error)\n\(usage)")
            exit(64)
        }
    }

    /// Runs the driver, which calls `exit` itself.
    private static func block(_ run: @escaping @Sendable () async throws -> Int32) -> Never {
        Task {
            do { exit(try await run()) } catch {
                complain("AbuseProgram: \(error)")
                exit(1)
            }
        }
        dispatchMain()
    }
}

struct AbuseFailure: Error, CustomStringConvertible {
    let description: String
    init(_ words: String) { description = words }
}

/// Writes a line to standard output at once: that of `print` would wait in a buffer.
func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

/// Writes a line to standard error at once.
func complain(_ line: String) { FileHandle.standardError.write(Data((line + "\n").utf8)) }

/// The options of all modes; each has the name of its property.
struct AbuseArguments: Sendable {
    var seed: UInt64?
    var seconds = 60
    /// The driver stops after so many children; `nil` is as many as the time allows.
    var children: Int?
    var operations: Int?
    var reports: String?
    var only: Set<String> = []
    var without: Set<String> = []

    var inFlight = 64
    var cores: Int?
    var descriptors: Int?
    var memory: Int?
    var threads: Int?
    var leave: Int?
    var end = "exit"
    var servers: ServerAddresses?
    var authority: String?
    /// A file of eight bytes, to which a child writes how many operations it has completed.
    var counter: String?

    var runs = 200
    var kinds: [ExitKind] = []
    var after = 0
    var way = "exit"
    var count = 1

    init(_ words: [String]) throws {
        var rest = words[...]
        while let option = rest.popFirst() {
            guard let value = rest.popFirst() else { throw AbuseFailure("\(option) has no value") }
            func number<N: FixedWidthInteger>(_ kind: N.Type = Int.self) throws -> N {
                guard let number = N(value) else { throw AbuseFailure("\(option) \(value) is no number") }
                return number
            }
            switch option {
            case "--seed": seed = try number(UInt64.self)
            case "--seconds": seconds = try number()
            case "--children": children = try number()
            case "--operations": operations = try number()
            case "--reports": reports = value
            case "--only": only.insert(value)
            case "--without": without.insert(value)
            case "--in-flight": inFlight = try number()
            case "--cores": cores = try number()
            case "--descriptors": descriptors = try number()
            case "--memory": memory = try number()
            case "--threads": threads = try number()
            case "--leave": leave = try number()
            case "--end": end = value
            case "--servers": servers = try ServerAddresses(value)
            case "--authority": authority = value
            case "--counter": counter = value
            case "--runs": runs = try number()
            case "--kind":
                guard let kind = ExitKind(rawValue: value) else { throw AbuseFailure("\(value) is no kind of exit") }
                kinds.append(kind)
            case "--after": after = try number()
            case "--way": way = value
            case "--count": count = try number()
            default: throw AbuseFailure("\(option) is no option")
            }
        }
        let known = Set(Operation.all.map(\.name))
        if let unknown = only.union(without).subtracting(known).first {
            throw AbuseFailure("\(unknown) is no operation: see AbuseProgram names")
        }
    }
}
