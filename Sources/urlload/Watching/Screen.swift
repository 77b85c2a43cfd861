// Standard error: messages, transcript and the progress line, which gives way to the others. Nobody
// is told if it cannot be written to.

import Synchronization
import URLLoading
import URLLoadingIO

final class Screen: Sendable {
    private struct State: Sendable {
        var transcript: Transcript
        var meter: ProgressMeter?
        var hasLine = false
    }

    private let state: Lock<State>
    private let isSilent: Bool
    private let output = FileDescriptor.standardError

    init(_ options: Options) {
        isSilent = options.isSilent
        // On a terminal the body itself shows how far it has come.
        let bodyIsSeen = options.destination == .standardOutput && !options.printsJSON
            && FileDescriptor.standardOutput.isTerminal
        let showsProgress = !options.isSilent && options.trace == .off && !bodyIsSeen && output.isTerminal
        state = Lock(State(
            transcript: Transcript(showsBodies: options.trace == .everything, showsSecrets: options.showsSecrets),
            meter: showsProgress ? ProgressMeter(now: Self.now) : nil))
    }

    private static var now: Double { Double(Poller.now()) / 1e9 }

    func message(_ text: String) {
        guard !isSilent else { return }
        warning(text)
    }

    /// Said even when told to be silent.
    func warning(_ text: String) { put(["urlload: " + Self.printable(text)]) }

    func note(_ text: String) { put(["* " + Self.printable(text)]) }

    func show(_ event: WireTapEvent) {
        put(state.withLock { $0.transcript.lines(event) })
    }

    func expect(_ length: Int64?) { state.withLock { $0.meter?.expect(length) } }

    func progress(_ count: Int) {
        state.withLock { state in
            guard let line = state.meter?.add(count, now: Self.now) else { return }
            state.hasLine = true
            try? output.write("\r" + line.text(width: (output.columns ?? 80) - 1) + "\u{1B}[K")
        }
    }

    /// Removes the progress line.
    func clear() { put([]) }

    private func put(_ lines: [String]) {
        state.withLock { state in
            let erase = state.hasLine ? "\r\u{1B}[K" : ""
            state.hasLine = false
            let text = erase + lines.map { $0 + "\n" }.joined()
            if !text.isEmpty { try? output.write(text) }
        }
    }

    /// Words that came from a peer must not command a terminal.
    private static func printable(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map {
            $0.value < 0x20 || (0x7F...0x9F).contains($0.value) ? "\u{FFFD}" : $0
        }))
    }
}
