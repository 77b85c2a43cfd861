// SPDX-License-Identifier: Apache-2.0

// The changes of an external cache that are under way, or that failed: one for each URL at a time, and of those that
// wait the last. Pure. Look-ups see a change before the external cache has made it, so that the loads of a session find
// what it has stored, and nothing that it has removed.

struct StoreChanges: Sendable {
    enum Change: Sendable {
        case store(StoreEntry)
        case remove
    }

    private struct Place: Sendable {
        var change: Change
        var isRunning = true
        var next: Change?
        /// A removal was not made, because a newer response replaces it.
        var owesRemoval = false
    }
    private var places: [StoreKey: Place] = [:]
    /// The number of removals that failed, beyond which the next one is forgotten.
    static let maximumFailed = 1_024
    /// The time of the last removal that was forgotten: what is older is not used.
    private(set) var forgottenUntil = -Double.infinity

    var isEmpty: Bool { places.isEmpty }

    /// The last change of a key.
    func last(_ key: StoreKey) -> Change? { places[key].map { $0.next ?? $0.change } }

    /// Adds a change.
    /// - Returns: true if it is to be made now; false if it follows the one under way.
    mutating func add(_ change: Change, to key: StoreKey) -> Bool {
        guard var place = places[key] else {
            places[key] = Place(change: change)
            return true
        }
        for earlier in [place.next, place.isRunning ? nil : place.change] {
            if case .remove? = earlier { place.owesRemoval = true }
        }
        let mustWait = place.isRunning
        if mustWait { place.next = change } else { (place.change, place.isRunning) = (change, true) }
        places[key] = place
        return !mustWait
    }

    /// Whether a removal that failed is to be made again, now.
    mutating func repeats(_ key: StoreKey) -> Bool {
        guard var place = places[key], !place.isRunning else { return false }
        place.isRunning = true
        places[key] = place
        return true
    }

    mutating func drop(_ key: StoreKey) { places[key] = nil }

    /// Notes the end of a change.
    /// - Parameter now: seconds since 1970.
    /// - Returns: the change of the key that is to be made next.
    mutating func ended(_ key: StoreKey, isMade: Bool, now: Double) -> Change? {
        guard var place = places[key] else { return nil }
        if !isMade, case .remove = place.change { place.owesRemoval = true }
        if isMade { place.owesRemoval = false }
        if let next = place.next {
            (place.change, place.next) = (next, nil)
            places[key] = place
            return next
        }
        guard place.owesRemoval, places.count <= Self.maximumFailed else {
            if place.owesRemoval { forgottenUntil = max(forgottenUntil, now) }
            places[key] = nil
            return nil
        }
        places[key] = Place(change: .remove, isRunning: false)
        return nil
    }
}

/// A response to store in an external cache.
struct StoreEntry: Sendable {
    enum Place: Sendable {
        /// Under the key of the URL.
        case url
        /// Under the key of a variant. The index is stored as well if it is new.
        case variant(StoreKey, StoreIndex, isNew: Bool)
    }
    let response: StoredResponse
    let body: Chunk
    let place: Place

    /// The index of the URL's variants, if the response is one of them.
    var index: StoreIndex? { if case .variant(_, let index, _) = place { index } else { nil } }

    /// The records to store, in order: a variant precedes the index that makes it reachable.
    /// - Parameter key: that of the URL.
    func records(_ key: StoreKey) -> [(key: StoreKey, record: StoreRecord, lifetime: Duration)] {
        let lifetime = Duration.seconds(response.usefulLifetime.rounded(.up))
        let record = StoreRecord.response(response, body)
        switch place {
        case .url: return [(key, record, lifetime)]
        case .variant(let variant, _, isNew: false): return [(variant, record, lifetime)]
        case .variant(let variant, let index, isNew: true):
            return [(variant, record, lifetime), (key, .index(index), max(lifetime, Self.indexLifetime))]
        }
    }

    /// An index is not stored again with each variant: that could undo a removal by another program.
    private static let indexLifetime = Duration.seconds(30 * 86_400)
}
