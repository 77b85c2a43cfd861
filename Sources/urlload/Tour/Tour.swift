// SPDX-License-Identifier: Apache-2.0

// In this folder: `urlload tour`

// `urlload tour`: the features of the library in steps, on a server inside this process. Each step shows its code, runs
// it, draws the bytes on the wire, and prints the result.

import Glibc

struct Tour {
    struct Options: Equatable {
        var steps: [String] = []
        var lists = false
        var usesColor = true
    }

    let options: Options
    private let colors: Colors
    private let waits: Bool

    init(_ options: Options) {
        self.options = options
        let isTerminal = FileDescriptor.standardOutput.isTerminal
        colors = Colors(isOn: options.usesColor && isTerminal && getenv("NO_COLOR") == nil)
        waits = isTerminal && isatty(0) == 1
    }

    static let usage = """
        urlload tour [--list] [--no-color] [STEP…]

        Shows what URLLoading can do, on an origin in this very process: all steps, or those named.

        """ + TourStep.all.map { "  \($0.name.padded(to: 12))\($0.title)\n" }.joined()

    /// - Throws: ``UsageError`` for an unknown argument.
    static func parse(_ arguments: [String]) throws(UsageError) -> Options? {
        var options = Options()
        for argument in arguments {
            switch argument {
            case "--list": options.lists = true
            case "--no-color": options.usesColor = false
            case "--help", "-h": return nil
            case _ where TourStep.all.contains { $0.name == argument }: options.steps.append(argument)
            default: throw UsageError("tour has no step or option \(argument)")
            }
        }
        return options
    }

    static func run(_ arguments: [String]) async -> ExitCode {
        do throws(UsageError) {
            guard let options = try parse(arguments) else { return print(usage) ? .done : .write }
            return await Tour(options).run()
        } catch {
            try? FileDescriptor.standardError.write("urlload: \(error.words)\nurlload tour --help lists the steps\n")
            return .usage
        }
    }

    func run() async -> ExitCode {
        if options.lists { return Self.print(TourStep.all.map { "\($0.name)\n" }.joined()) ? .done : .write }
        let steps = TourStep.all.filter { options.steps.isEmpty || options.steps.contains($0.name) }
        for (number, step) in steps.enumerated() {
            let text = await show(step, number + 1, of: steps.count)
            guard Self.print(text) else { return .write }
            if waits, number + 1 < steps.count, !asksToContinue() { break }
        }
        return .done
    }

    /// Runs a step and returns its whole text.
    func show(_ step: TourStep, _ number: Int, of count: Int) async -> String {
        var text = "\n" + colors.title("\(number)/\(count)  \(step.title)") + "\n\n" + step.words + "\n\n"
        text += step.code.split(separator: "\n", omittingEmptySubsequences: false).map {
            colors.code("    \($0)") + "\n"
        }
        .joined()
        do {
            let stage = try await TourStage.run(step)
            if !stage.wire.isEmpty {
                text += "\n" + Self.shortened(stage.wire).map { colors.wire("  \($0)") + "\n" }.joined()
            }
            text += "\n" + stage.said.map { colors.outcome("  → \($0)") + "\n" }.joined()
        } catch {
            text += "\n  ! \(error)\n"
        }
        return text
    }

    /// Cuts long lines, and omits the middle of a long drawing.
    static func shortened(_ lines: [String]) -> [String] {
        let narrow = lines.map { $0.count > 76 ? $0.prefix(75) + "…" : $0 }
        guard narrow.count > 26 else { return narrow }
        return narrow.prefix(18) + ["… \(narrow.count - 24) more lines …"] + narrow.suffix(6)
    }

    private func asksToContinue() -> Bool {
        _ = Self.print("\n" + colors.wire("Return: the next step · q: end "))
        return readLine().map { !$0.lowercased().hasPrefix("q") } ?? false
    }

    private static func print(_ text: String) -> Bool {
        do throws(OutputError) { try FileDescriptor.standardOutput.write(text) } catch { return false }
        return true
    }
}

/// Colours, for a terminal that shows them.
struct Colors: Sendable {
    let isOn: Bool
    func title(_ text: String) -> String { paint(text, "1") }
    func code(_ text: String) -> String { paint(text, "36") }
    func wire(_ text: String) -> String { paint(text, "2") }
    func outcome(_ text: String) -> String { paint(text, "32") }
    private func paint(_ text: String, _ code: String) -> String { isOn ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text }
}

extension String {
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(1, width - count)) }
}
