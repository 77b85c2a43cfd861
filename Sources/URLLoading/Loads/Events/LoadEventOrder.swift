// SPDX-License-Identifier: Apache-2.0

// The legal order of a load's events as a state machine. Debug builds check every event of every load with one, and
// tests can check the events they received.

/// Checks that the events of a load come in a legal order.
///
/// ```
/// canonicalized* (request (redirected | retrying))* request retryRefused? responded
///     (becameStream | becameDownload? resumed? received*) (stored | notStored)? metrics completed
///     where request = (waitingForConnectivity | challenged)* bodySent* informational* challenged*
/// ```
/// If a server answers before it has read the whole request, `bodySent` also follows `responded`. If a download
/// continues over another connection, the events of that request and another `resumed` follow there.
///
/// `metrics` may come at any point, once, and only `completed`, which ends every load, may follow it. Totals only grow;
/// those of the request's body restart with each request.
///
/// ```swift
/// var order = LoadEventOrder()
/// for await event in task.events {
///     let isLegal = order.accept(event)
///     #expect(isLegal, "\(order)")
/// }
/// #expect(order.isComplete)
/// ```
public struct LoadEventOrder: Sendable, CustomStringConvertible {
    private enum Stage: Int, Sendable, Comparable {
        case canonicalizing, sending, responded, receiving, measured, completed
        static func < (a: Stage, b: Stage) -> Bool { a.rawValue < b.rawValue }
    }
    private var stage = Stage.canonicalizing
    private var sent: Int64 = 0
    private var hasStored = false
    private var received: Int64 = 0
    /// A word per event; consecutive progress events share one.
    private var words: [String] = []

    /// Creates the order of a load without events.
    public init() {}

    /// True if the load's last event has been accepted.
    public var isComplete: Bool { stage == .completed }

    /// Accepts the next event. Returns false if it is not legal now; the state is then unchanged.
    public mutating func accept(_ event: LoadEvent) -> Bool {
        if case .completed = event { return move(event, if: stage == .measured, to: .completed) }
        guard stage < .measured else { return note(event, false) }
        switch event {
        case .canonicalized:
            // Each request of a chain of redirects may be canonicalized, and so may each request of a resumable upload.
            sent = 0
            return move(event, if: stage <= .sending, to: stage)
        case .bodySent(let bytes):
            // The body restarts if it is sent again on a fresh connection.
            let grows = bytes.total == sent + Int64(bytes.count) || bytes.total == Int64(bytes.count)
            sent = bytes.total
            return move(event, if: bytes.count > 0 && grows, to: max(stage, .sending))
        case .challenged, .informational, .waitingForConnectivity, .retryRefused:
            return move(event, if: true, to: max(stage, .sending))
        case .retrying:
            sent = 0
            return move(event, if: true, to: max(stage, .sending))
        case .redirected:
            sent = 0
            return move(event, if: stage <= .sending, to: .sending)
        case .responded:
            return move(event, if: stage <= .sending, to: .responded)
        case .becameDownload:
            return move(event, if: stage == .responded, to: .responded)
        case .becameStream:
            return move(event, if: stage == .responded, to: .receiving)
        case .resumed(let offset, _):
            let isInOrder = stage == .receiving && offset == received
            received = offset
            return move(event, if: isInOrder || stage == .responded && offset >= 0, to: .receiving)
        case .received(let bytes):
            let grows = bytes.total == received + Int64(bytes.count)
            received = bytes.total
            let isBody = stage == .responded || stage == .receiving
            return move(event, if: isBody && bytes.count > 0 && grows, to: .receiving)
        case .stored, .notStored:
            // Also for a redirect response that was not followed.
            let isFirst = !hasStored
            hasStored = true
            return move(event, if: isFirst, to: stage)
        case .metrics, .completed:
            return move(event, if: true, to: .measured)
        }
    }

    /// The events accepted, and the first that was not: `responded received metrics completed !received`.
    public var description: String { words.isEmpty ? "nothing" : words.joined(separator: " ") }

    private mutating func move(_ event: LoadEvent, if isLegal: Bool, to next: Stage) -> Bool {
        if isLegal { stage = next }
        return note(event, isLegal)
    }

    private mutating func note(_ event: LoadEvent, _ isLegal: Bool) -> Bool {
        let word = (isLegal ? "" : "!") + event.word
        if words.last != word, words.count < 1_000 { words.append(word) }
        return isLegal
    }
}

extension LoadEvent {
    fileprivate var word: String {
        switch self {
        case .canonicalized: "canonicalized"
        case .bodySent: "bodySent"
        case .informational: "informational"
        case .retrying: "retrying"
        case .retryRefused: "retryRefused"
        case .waitingForConnectivity: "waitingForConnectivity"
        case .challenged: "challenged"
        case .redirected: "redirected"
        case .responded: "responded"
        case .becameDownload: "becameDownload"
        case .becameStream: "becameStream"
        case .resumed: "resumed"
        case .received: "received"
        case .stored: "stored"
        case .notStored: "notStored"
        case .metrics: "metrics"
        case .completed: "completed"
        }
    }
}
