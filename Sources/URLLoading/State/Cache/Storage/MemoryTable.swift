// SPDX-License-Identifier: Apache-2.0

// The entries of a memory storage, by key and by recency of use. A value without a lock; all calls take constant time,
// except the removal of many entries.

struct MemoryTable: Sendable {
    private struct Slot: Sendable {
        let response: StoredResponse
        let body: Chunk
        let cost: Int

        init(_ response: StoredResponse, _ body: Chunk) {
            (self.response, self.body) = (response, body)
            cost = response.headSize + body.count
        }
    }
    private struct Link: Sendable {
        var older = -1
        var newer = -1
    }
    /// The slots of one key: mostly one, which needs no array.
    private struct Places: Sendable {
        var newest: Int
        var older: [Int] = []
    }

    private var slots: [Slot?] = []
    private var links: [Link] = []
    private var free: [Int] = []
    /// The slots by the hash of the key, the one stored last first. Keys with equal hashes share an entry.
    private var byKey: [Int: Places] = [:]
    private var newest = -1
    private var oldest = -1
    private(set) var count = 0
    /// The size of heads and bodies, in bytes.
    private(set) var bytes = 0
    private(set) var capacity: Int

    /// The most variants of one key; beyond it the oldest is removed.
    static let maximumVariants = 16

    init(capacity: Int) { self.capacity = max(0, capacity) }

    func variants(_ key: CacheKey) -> [StoredResponse] {
        variants(key, key.hash)
    }

    private func variants(_ key: CacheKey, _ hash: Int) -> [StoredResponse] {
        guard let places = byKey[hash] else { return [] }
        guard !places.older.isEmpty else { return response(places.newest, key).map { [$0] } ?? [] }
        return ([places.newest] + places.older).compactMap { response($0, key) }
    }

    private func response(_ place: Int, _ key: CacheKey) -> StoredResponse? {
        slots[place].flatMap { $0.response.key == key ? $0.response : nil }
    }

    /// The slot of the response with the same id.
    private func place(_ response: StoredResponse) -> Int? {
        guard let places = byKey[response.keyHash] else { return nil }
        if slots[places.newest]?.response.id == response.id { return places.newest }
        return places.older.first { slots[$0]?.response.id == response.id }
    }

    /// The response as it is stored here.
    func held(_ response: StoredResponse) -> StoredResponse? { place(response).flatMap { slots[$0]?.response } }

    /// Returns the body and marks the entry as used.
    mutating func use(_ response: StoredResponse) -> Chunk? {
        guard let place = place(response), let body = slots[place]?.body else { return nil }
        if place != newest {
            unlink(place)
            link(place)
        }
        return body
    }

    /// Stores a response in place of those it replaces; returns `false` if it does not fit at all.
    mutating func insert(_ response: StoredResponse, _ body: Chunk) -> Bool {
        let slot = Slot(response, body)
        guard slot.cost <= capacity else { return false }
        if replaceOnlyVariant(with: slot) { return true }
        let place = free.popLast() ?? slots.count
        if place == slots.count {
            slots.append(slot)
            links.append(Link())
        } else {
            slots[place] = slot
        }
        count += 1
        bytes += slot.cost
        link(place)
        if let others = byKey.updateValue(Places(newest: place), forKey: response.keyHash) {
            join(response, place, others)
        }
        shrink()
        return true
    }

    /// Puts a response in the place of the one that it replaces, if that is the only one of its key: most responses are
    /// newer states of what is stored. Returns `false` if there is none.
    private mutating func replaceOnlyVariant(with slot: Slot) -> Bool {
        guard let places = byKey[slot.response.keyHash], places.older.isEmpty, let old = slots[places.newest],
            old.response.id == slot.response.id || slot.response.replaces(old.response)
        else { return false }
        slots[places.newest] = slot
        bytes += slot.cost - old.cost
        if places.newest != newest {
            unlink(places.newest)
            link(places.newest)
        }
        shrink()
        return true
    }

    /// Removes the entries of the key that the new one replaces, and the oldest if there are too many.
    @inline(never)
    private mutating func join(_ response: StoredResponse, _ place: Int, _ others: Places) {
        byKey[response.keyHash] = Places(newest: place, older: [others.newest] + others.older)
        for other in [others.newest] + others.older {
            guard let held = slots[other]?.response, held.id == response.id || response.replaces(held) else { continue }
            remove(at: other)
        }
        if let places = byKey[response.keyHash], places.older.count >= Self.maximumVariants,
            let last = places.older.last
        {
            remove(at: last)
        }
    }

    private mutating func leave(_ place: Int, _ hash: Int) {
        // Most keys have one entry, which one step removes.
        guard var places = byKey.removeValue(forKey: hash) else { return }
        if places.newest != place {
            places.older.removeAll { $0 == place }
        } else if places.older.isEmpty {
            return
        } else {
            places.newest = places.older.removeFirst()
        }
        byKey[hash] = places
    }

    /// Replaces the head of a stored body.
    mutating func update(_ response: StoredResponse) {
        guard let place = place(response), let slot = slots[place] else { return }
        var response = response
        response.isCopy = slot.response.isCopy
        let updated = Slot(response, slot.body)
        bytes += updated.cost - slot.cost
        slots[place] = updated
        shrink()
    }

    mutating func remove(_ response: StoredResponse) {
        if let place = place(response) { remove(at: place) }
    }

    private mutating func remove(at place: Int) {
        guard let slot = slots[place].take() else { return }
        unlink(place)
        count -= 1
        bytes -= slot.cost
        free.append(place)
        leave(place, slot.response.keyHash)
    }

    mutating func remove(_ key: CacheKey) {
        for response in variants(key) { remove(response) }
    }

    mutating func remove(replacedBy response: StoredResponse) {
        for other in variants(response.key, response.keyHash) where response.replaces(other) { remove(other) }
    }

    mutating func removeAll(where isUnwanted: (StoredResponse) -> Bool) {
        for place in slots.indices {
            if let slot = slots[place], isUnwanted(slot.response) { remove(at: place) }
        }
    }

    mutating func removeAll() { self = MemoryTable(capacity: capacity) }

    mutating func setCapacity(_ capacity: Int) {
        self.capacity = max(0, capacity)
        shrink()
    }

    private mutating func shrink() {
        while bytes > capacity, oldest >= 0 { remove(at: oldest) }
    }

    // MARK: The order of use

    private mutating func link(_ place: Int) {
        links[place] = Link(older: newest)
        if newest >= 0 { links[newest].newer = place } else { oldest = place }
        newest = place
    }

    private mutating func unlink(_ place: Int) {
        let link = links[place]
        if link.newer >= 0 { links[link.newer].older = link.older } else { newest = link.older }
        if link.older >= 0 { links[link.older].newer = link.newer } else { oldest = link.newer }
    }
}
