// SPDX-License-Identifier: Apache-2.0

#if DEBUG
import Synchronization
import URLLoadingIO

/// Notes that a decision without a deadline has not answered for ten seconds: the load waits for it until its resource
/// timeout, seven days by default.
final class UnansweredNote: TimerTarget {
    private static let interval: Int64 = 10_000_000_000
    private let question: String
    private let isAnswered = Lock(false)

    private init(_ question: String) { self.question = question }

    static func schedule(_ question: Any.Type) -> UnansweredNote {
        let note = UnansweredNote("\(question)")
        Poller.shared.schedule(note, at: Poller.now() + interval)
        return note
    }

    func answered() { isAnswered.withLock { $0 = true } }

    func timerFired(now: Int64) {
        guard !isAnswered.withLock({ $0 }) else { return }
        DebugNote.write(
            "a decision about a \(question) has not answered for 10 s, and its load waits for it: return from the "
                + "closure, or give it a deadline, Decision(timeout: .seconds(5), fallback: …)")
    }
}
#endif
