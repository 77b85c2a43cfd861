// SPDX-License-Identifier: Apache-2.0

// Standard error: messages, transcript and the progress lines, which make room for the others. A failure to write to
// it is ignored.

import Glibc
import Synchronization
import URLLoading
import URLLoadingIO

final class Screen: Sendable {
    private struct State: Sendable {
        var transcript: Transcript
        var board: ProgressBoard?
        /// The columns of each progress line on the terminal; the cursor is at the end of the last line.
        var drawn: [Int] = []
    }

    private let state: Lock<State>
    private let shared: Options.Shared
    let showsProgress: Bool
    /// True if a body goes to a terminal.
    let bodyIsOnTerminal: Bool
    private let bodyIsSeen: Bool
    private let output: FileDescriptor
    /// The output of the transcript.
    private let traceOutput: FileDescriptor

    init(_ options: Options) {
        shared = options.shared
        output = Self.open(options.shared.errorFile) ?? .standardError
        traceOutput = Self.open(options.shared.traceFile) ?? output
        bodyIsOnTerminal = FileDescriptor.standardOutput.isTerminal
        // A body that is printed to the terminal shows its own progress.
        bodyIsSeen =
            !options.outputs.contains { $0 != .standardOutput } && !options.saving.namesAll
            && !options.output.printsSummary
            && bodyIsOnTerminal
        showsProgress =
            !options.isSilent && options.shared.showsMeter && options.trace == .off
            && (!bodyIsSeen || options.sendsBody) && output.isTerminal
        let areNamed =
            options.urls.count > 1 || !options.saving.inputLists.isEmpty
            || options.request.expandsPatterns
                && options.urls.contains { $0.contains { "[{".contains($0) } }
        state = Lock(
            State(
                transcript: Transcript(
                    showsBodies: options.trace == .everything, showsSecrets: options.output.showsSecrets),
                board: showsProgress ? ProgressBoard(areNamed: areNamed) : nil))
    }

    /// The files of `--stderr` and `--trace-ascii` by their paths. They belong to all groups of the command line, so a
    /// later group writes behind the first one.
    private static let files = Lock<[String: FileDescriptor]>([:])

    /// Returns `nil` without a path, or if the file cannot be written.
    private static func open(_ path: String?) -> FileDescriptor? {
        guard let path else { return nil }
        if path == "-" { return .standardOutput }
        if let standard = FileDescriptor.standard(path) { return standard }
        return files.withLock { files in
            if let file = files[path] { return file }
            let number = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
            guard number >= 0 else { return nil }
            let file = FileDescriptor(number: number, name: path)
            files[path] = file
            return file
        }
    }

    private static var now: Double { Double(Poller.now()) / 1e9 }

    /// Writes one line, unless `-s` is given.
    func message(_ text: String) {
        guard !shared.isSilent else { return }
        put(["urlload: " + Self.printable(text)])
    }

    /// Writes the line of a failure, unless `-s` is given without `-S`.
    func error(_ text: String) {
        guard !shared.isSilent || shared.showsErrors else { return }
        put(["urlload: " + Self.printable(text)])
    }

    /// Writes a line unchanged, for a summary.
    func plain(_ text: String) { put([Self.printable(text)]) }

    func note(_ text: String) { trace(["* " + Self.printable(text)]) }

    func show(_ event: WireTapEvent) { trace(state.withLock { $0.transcript.lines(event) }) }

    private func trace(_ lines: [String]) {
        guard traceOutput.number != output.number else { return put(lines) }
        state.withLock { _ in try? traceOutput.write(lines.map { $0 + "\n" }.joined()) }
    }

    /// Adds a progress line for a load.
    func progress(of name: String) -> Progress {
        Progress(
            screen: self, id: state.withLock { $0.board?.begin(Self.printable(name), now: Self.now) ?? 0 },
            start: Self.now)
    }

    /// The progress of one load.
    struct Progress: Sendable {
        fileprivate let screen: Screen
        fileprivate let id: Int
        fileprivate let start: Double

        /// Seconds since the start of the load.
        var elapsed: Double { Screen.now - start }

        /// Called when a download is resumed at an offset.
        func begins(at offset: Int64, of length: Int64?) {
            screen.state.withLock { $0.board?.begin(at: offset, of: length, id) }
        }

        /// Called when the response begins.
        func answers(_ length: Int64?) { if screen.bodyIsSeen { end() } else { expect(length) } }

        func expect(_ length: Int64?) { screen.state.withLock { $0.board?.expect(length, of: id) } }

        func add(_ count: Int) {
            screen.state.withLock { state in
                let lines = state.board?.add(count, of: id, now: Screen.now) {
                    let size = screen.output.terminalSize ?? (80, 24)
                    return (size.columns - 1, size.rows - 1)
                }
                guard let lines else { return }
                // Also clears lines that are not drawn any more.
                try? screen.output.write(
                    screen.home(state.drawn) + lines.joined(separator: "\u{1B}[K\n") + "\u{1B}[K\u{1B}[J")
                state.drawn = lines.map(ProgressBoard.columns)
            }
        }

        /// Removes the line; a summary takes its place if there is one and lines are shown. In wget's grammar, which
        /// numbers files, it is written into a pipe, too.
        func end(_ summary: String? = nil) {
            screen.state.withLock { $0.board?.end(id) }
            let isShown = screen.showsProgress || screen.shared.grammar == .wget && !screen.shared.isSilent
            screen.put(isShown ? summary.map { [Screen.printable($0)] } ?? [] : [])
        }
    }

    /// Moves the cursor to the beginning of the first line. Lines take more rows if the terminal has become narrower.
    private func home(_ lines: [Int]) -> String {
        let width = max(1, output.terminalSize?.columns ?? 80)
        let rows = lines.reduce(0) { $0 + max(1, ($1 + width - 1) / width) }
        return rows > 1 ? "\r\u{1B}[\(rows - 1)A" : "\r"
    }

    private func put(_ lines: [String]) {
        state.withLock { state in
            let erase = state.drawn.isEmpty ? "" : home(state.drawn) + "\u{1B}[J"
            state.drawn = []
            let text = erase + lines.map { $0 + "\n" }.joined()
            if !text.isEmpty { try? output.write(text) }
        }
    }

    /// Replaces control characters: text from a server must not control the terminal.
    private static func printable(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map {
                    $0.value < 0x20 || (0x7F...0x9F).contains($0.value) ? "\u{FFFD}" : $0
                }))
    }
}
