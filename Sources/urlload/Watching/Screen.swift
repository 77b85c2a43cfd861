// Standard error: messages, transcript and the progress lines, which give way to the others. Nobody is
// told if it cannot be written to.

import Synchronization
import URLLoading
import URLLoadingIO

final class Screen: Sendable {
    private struct State: Sendable {
        var transcript: Transcript
        var board: ProgressBoard?
        /// Progress lines on the terminal now; the cursor is at the end of the last.
        var drawn = 0
    }

    private let state: Lock<State>
    private let isSilent: Bool
    let showsProgress: Bool
    private let bodyIsSeen: Bool
    private let output = FileDescriptor.standardError

    init(_ options: Options) {
        isSilent = options.isSilent
        // On a terminal the body itself shows how far it has come.
        bodyIsSeen =
            options.destination == .standardOutput && !options.printsJSON
            && FileDescriptor.standardOutput.isTerminal
        showsProgress =
            !options.isSilent && options.trace == .off && (!bodyIsSeen || options.sendsBody) && output.isTerminal
        state = Lock(
            State(
                transcript: Transcript(showsBodies: options.trace == .everything, showsSecrets: options.showsSecrets),
                board: showsProgress ? ProgressBoard(areNamed: options.urls.count > 1) : nil))
    }

    private static var now: Double { Double(Poller.now()) / 1e9 }

    /// Writes one line, unless `-s` is given.
    func message(_ text: String) {
        guard !isSilent else { return }
        put(["urlload: " + Self.printable(text)])
    }

    func note(_ text: String) { put(["* " + Self.printable(text)]) }

    func show(_ event: WireTapEvent) {
        put(state.withLock { $0.transcript.lines(event) })
    }

    /// A progress line for a load that begins.
    func progress(of name: String) -> Progress {
        Progress(screen: self, id: state.withLock { $0.board?.begin(Self.printable(name), now: Self.now) ?? 0 })
    }

    /// The progress of one load.
    struct Progress: Sendable {
        fileprivate let screen: Screen
        fileprivate let id: Int

        /// The answer begins.
        func answers(_ length: Int64?) { if screen.bodyIsSeen { end() } else { expect(length) } }

        func expect(_ length: Int64?) { screen.state.withLock { $0.board?.expect(length, of: id) } }

        func add(_ count: Int) {
            screen.state.withLock { state in
                let lines = state.board?.add(count, of: id, now: Screen.now) {
                    let size = screen.output.terminalSize ?? (80, 24)
                    return (size.columns - 1, size.rows - 1)
                }
                guard let lines else { return }
                // What is left of lines that are not drawn any more goes, too.
                try? screen.output.write(
                    Screen.home(state.drawn) + lines.joined(separator: "\u{1B}[K\n") + "\u{1B}[K\u{1B}[J")
                state.drawn = lines.count
            }
        }

        /// The line goes.
        func end() {
            screen.state.withLock { $0.board?.end(id) }
            screen.clear()
        }
    }

    /// Removes the progress lines until they are drawn again.
    private func clear() { put([]) }

    /// To the beginning of the first of so many lines.
    private static func home(_ lines: Int) -> String { lines > 1 ? "\r\u{1B}[\(lines - 1)A" : "\r" }

    private func put(_ lines: [String]) {
        state.withLock { state in
            let erase = state.drawn > 0 ? Self.home(state.drawn) + "\u{1B}[J" : ""
            state.drawn = 0
            let text = erase + lines.map { $0 + "\n" }.joined()
            if !text.isEmpty { try? output.write(text) }
        }
    }

    /// Words that came from a peer must not command a terminal.
    private static func printable(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map {
                    $0.value < 0x20 || (0x7F...0x9F).contains($0.value) ? "\u{FFFD}" : $0
                }))
    }
}
