// SPDX-License-Identifier: Apache-2.0

// What HTTPS records (RFC 9460) say of origins, and which questions are under way. A value without a lock, a clock or
// sockets. Times are nanoseconds of one monotonic clock.
//
//     an origin    unknown ──begin──▶ asking ──end──▶ known ──its lifetime──▶ unknown

#if HTTP3

import URLLoadingIO
import URLLoadingWire

struct ServiceOfferTable: Sendable {
    private enum Entry {
        /// The slots of the loads that wait for the answer.
        case asking([PollSlot])
        case known(AlternativeService?, until: Int64)
    }
    private var entries: [Origin: Entry] = [:]
    private var asking = 0

    /// The number of origins that are remembered, and of questions under way.
    static let most = 1_000
    static let mostAsking = 64
    /// How long it is remembered that no server has answered, in seconds.
    static let shortest: Int64 = 60

    /// Returns where the records offer HTTP/3.
    func service(of origin: Origin, now: Int64) -> AlternativeService? {
        guard case .known(let service, let end)? = entries[origin], end > now else { return nil }
        return service
    }

    func isAsking(_ origin: Origin) -> Bool { if case .asking? = entries[origin] { true } else { false } }

    /// Returns whether the caller is to ask now; not if the answer is known, or a question or too many are under way.
    mutating func begin(_ origin: Origin, now: Int64) -> Bool {
        switch entries[origin] {
        case .known(_, let end)? where end > now: return false
        case .asking?: return false
        case .known?, nil:
            guard asking < Self.mostAsking else { return false }
            if entries[origin] == nil { makeRoom() }
            entries[origin] = .asking([])
            asking += 1
            return true
        }
    }

    private mutating func makeRoom() {
        guard entries.count >= Self.most else { return }
        let ends = entries.compactMap { origin, entry -> (origin: Origin, end: Int64)? in
            if case .known(_, let end) = entry { (origin, end) } else { nil }
        }
        if let first = ends.min(by: { $0.end < $1.end }) { entries[first.origin] = nil }
    }

    /// Takes what came out of a question; `nil` if no server has answered. Returns the slots to wake.
    mutating func end(_ origin: Origin, _ offer: ServiceOffer?, now: Int64) -> [PollSlot] {
        guard case .asking(let waiting)? = entries[origin] else { return [] }
        let lifetime = offer?.lifetime ?? Self.shortest
        entries[origin] = .known(offer?.service, until: now + lifetime * 1_000_000_000)
        asking -= 1
        return waiting
    }

    /// Lets a slot be woken at the end of a question. Returns false if the wait is over: none is under way, or it has
    /// waited for long enough.
    mutating func wait(_ slot: PollSlot, for origin: Origin, isLate: Bool) -> Bool {
        forget(slot, for: origin)
        guard case .asking(let waiting)? = entries[origin], !isLate else { return false }
        entries[origin] = .asking(waiting + [slot])
        return true
    }

    mutating func forget(_ slot: PollSlot, for origin: Origin) {
        guard case .asking(let waiting)? = entries[origin] else { return }
        entries[origin] = .asking(waiting.filter { $0 !== slot })
    }
}

#endif
