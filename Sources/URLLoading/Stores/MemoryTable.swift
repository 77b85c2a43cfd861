// What a memory storage holds: by id, by key, and in the order of use. A value without a lock; every call but the
// removal of many takes the same time whatever it holds.

struct MemoryTable: Sendable {
    /// An object, for a head is many references to count.
    private final class Slot: Sendable {
        let response: StoredResponse
        let body: MemoryBody
        let cost: Int
        /// Of its key: whatever leaves a dictionary moves others, which are hashed for it.
        let hash: Int

        init(_ response: StoredResponse, _ body: MemoryBody, _ hash: Int) {
            (self.response, self.body, self.hash) = (response, body, hash)
            cost = response.headSize + Int(body.length)
        }
    }
    private struct Link: Sendable {
        var older = -1
        var newer = -1
    }
    /// Mostly one, which needs no array.
    private struct Places: Sendable {
        var newest: Int
        var older: [Int] = []
    }

    private var slots: [Slot?] = []
    private var links: [Link] = []
    private var free: [Int] = []
    private var byID: [Int64: Int] = [:]
    /// By the hash of the key, the one stored last first. Others with the same hash may be among them.
    private var byKey: [Int: Places] = [:]
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
        variants(key, key.hashValue)
    }

    private func variants(_ key: CacheKey, _ hash: Int) -> [StoredResponse] {
        guard let places = byKey[hash] else { return [] }
        guard !places.older.isEmpty else { return response(places.newest, key).map { [$0] } ?? [] }
        return ([places.newest] + places.older).compactMap { response($0, key) }
    }

    private func response(_ place: Int, _ key: CacheKey) -> StoredResponse? {
        slots[place].flatMap { $0.response.key == key ? $0.response : nil }
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
        let slot = Slot(response, body, response.key.hashValue)
        guard slot.cost <= capacity else { return false }
        for other in variants(response.key, slot.hash) where response.replaces(other) || other.id == response.id { remove(other.id) }
        let place = free.popLast() ?? slots.count
        if place == slots.count {
            slots.append(slot)
            links.append(Link())
        } else {
            slots[place] = slot
        }
        byID[response.id] = place
        bytes += slot.cost
        link(place)
        if let last = enter(place, slot.hash), let id = slots[last]?.response.id { remove(id) }
        shrink()
        return true
    }

    /// Returns the one that is too many of its key.
    private mutating func enter(_ place: Int, _ hash: Int) -> Int? {
        guard let index = byKey.index(forKey: hash) else {
            byKey[hash] = Places(newest: place)
            return nil
        }
        byKey.values[index].older.insert(byKey.values[index].newest, at: 0)
        byKey.values[index].newest = place
        return byKey.values[index].older.count >= Self.mostVariants ? byKey.values[index].older.last : nil
    }

    private mutating func leave(_ place: Int, _ hash: Int) {
        guard let index = byKey.index(forKey: hash) else { return }
        guard byKey.values[index].newest == place else { return byKey.values[index].older.removeAll { $0 == place } }
        if byKey.values[index].older.isEmpty {
            byKey.remove(at: index)
        } else {
            byKey.values[index].newest = byKey.values[index].older.removeFirst()
        }
    }

    /// Another head for the same body.
    mutating func update(_ response: StoredResponse) {
        guard let place = byID[response.id], let slot = slots[place] else { return }
        var response = response
        response.isCopy = slot.response.isCopy
        let updated = Slot(response, slot.body, slot.hash)
        bytes += updated.cost - slot.cost
        slots[place] = updated
        shrink()
    }

    mutating func remove(_ id: Int64) {
        guard let place = byID.removeValue(forKey: id), let slot = slots[place].take() else { return }
        unlink(place)
        bytes -= slot.cost
        free.append(place)
        leave(place, slot.hash)
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
