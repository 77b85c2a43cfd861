// What a memory storage holds: by id, by key, and in the order of use. A value without a lock; every call but the
// removal of many takes the same time whatever it holds.

struct MemoryTable: Sendable {
    private struct Slot: Sendable {
        var response: StoredResponse
        let body: MemoryBody
        var cost: Int
        var older = -1
        var newer = -1
    }

    private var slots: [Slot?] = []
    private var free: [Int] = []
    private var byID: [Int64: Int] = [:]
    /// The one stored last first.
    private var byKey: [CacheKey: [Int]] = [:]
    private var newest = -1
    private var oldest = -1
    /// Heads and bodies together.
    private(set) var bytes = 0
    private(set) var capacity: Int

    /// Under one key: the oldest goes.
    static let mostVariants = 16

    init(capacity: Int) { self.capacity = max(0, capacity) }

    var count: Int { byID.count }

    func variants(_ key: CacheKey) -> [StoredResponse] {
        guard let places = byKey[key] else { return [] }
        return places.compactMap { slots[$0]?.response }
    }

    func contains(_ id: Int64) -> Bool { byID[id] != nil }
    func response(_ id: Int64) -> StoredResponse? { byID[id].flatMap { slots[$0]?.response } }

    /// The body, which is used now.
    mutating func use(_ id: Int64) -> MemoryBody? {
        guard let place = byID[id], let body = slots[place]?.body else { return nil }
        if place != newest {
            unlink(place)
            link(place)
        }
        return body
    }

    /// Keeps a response instead of those it replaces; returns `false` if there is no room for it at all.
    mutating func insert(_ response: StoredResponse, _ body: MemoryBody) -> Bool {
        let cost = response.headSize + Int(body.length)
        guard cost <= capacity else { return false }
        for place in byKey[response.key] ?? [] {
            guard let other = slots[place]?.response, response.replaces(other) || other.id == response.id else { continue }
            remove(other.id)
        }
        let slot = Slot(response: response, body: body, cost: cost)
        let place = free.popLast() ?? slots.count
        if place == slots.count { slots.append(slot) } else { slots[place] = slot }
        byID[response.id] = place
        byKey[response.key, default: []].insert(place, at: 0)
        bytes += cost
        if let places = byKey[response.key], places.count > Self.mostVariants, let last = places.last, let id = slots[last]?.response.id {
            remove(id)
        }
        link(place)
        shrink()
        return true
    }

    /// Another head for the same body.
    mutating func update(_ response: StoredResponse) {
        guard let place = byID[response.id], let slot = slots[place] else { return }
        var response = response
        response.isCopy = slot.response.isCopy
        let cost = response.headSize + Int(slot.body.length)
        bytes += cost - slot.cost
        slots[place]?.cost = cost
        slots[place]?.response = response
        shrink()
    }

    mutating func remove(_ id: Int64) {
        guard let place = byID.removeValue(forKey: id), let slot = slots[place] else { return }
        unlink(place)
        bytes -= slot.cost
        slots[place] = nil
        free.append(place)
        let key = slot.response.key
        guard byKey[key]?.count != 1 else { return byKey[key] = nil }
        byKey[key]?.removeAll { $0 == place }
    }

    mutating func remove(_ key: CacheKey) {
        for response in variants(key) { remove(response.id) }
    }

    mutating func remove(replacedBy response: StoredResponse) {
        for other in variants(response.key) where response.replaces(other) { remove(other.id) }
    }

    mutating func removeAll(where isUnwanted: (StoredResponse) -> Bool) {
        for slot in slots {
            if let slot, isUnwanted(slot.response) { remove(slot.response.id) }
        }
    }

    mutating func removeAll() { self = MemoryTable(capacity: capacity) }

    mutating func setCapacity(_ capacity: Int) {
        self.capacity = max(0, capacity)
        shrink()
    }

    private mutating func shrink() {
        while bytes > capacity, oldest >= 0, let id = slots[oldest]?.response.id { remove(id) }
    }

    // MARK: The order of use

    private mutating func link(_ place: Int) {
        slots[place]?.older = newest
        slots[place]?.newer = -1
        if newest >= 0 { slots[newest]?.newer = place } else { oldest = place }
        newest = place
    }

    private mutating func unlink(_ place: Int) {
        guard let slot = slots[place] else { return }
        if slot.newer >= 0 { slots[slot.newer]?.older = slot.older } else { newest = slot.older }
        if slot.older >= 0 { slots[slot.older]?.newer = slot.newer } else { oldest = slot.newer }
    }
}
