// SPDX-License-Identifier: Apache-2.0

/// Selects the transfers to begin, and a running one that yields. Pure.
///
/// Identifiers take turns; within one, higher priority comes first, then the older transfer. Limits bound the running
/// transfers of a host, of an identifier and of the agent, so that one program cannot occupy the agent or a host.
struct SchedulePlan: Sendable, Equatable {
    struct Candidate: Sendable, Equatable {
        var id: String
        var identifier: String
        var host: String
        var priority: UInt8
        /// The order of acceptance; older transfers have lower numbers. Those submitted at once are accepted in any
        /// order: the files of each are looked at before, by the program and by the agent, and none waits for another.
        var number: Int64
        var isDiscretionary = false
        var isResumable = true
    }

    struct Limits: Sendable, Equatable {
        var host = 6
        var identifier = 6
        var agent = 32
    }

    /// The transfers to begin, in order.
    var begins: [String] = []
    /// The running transfers that yield: the least urgent resumable one for a more urgent candidate.
    var yields: [String] = []

    /// - Parameters:
    ///   - ready: the transfers that may begin.
    ///   - running: the transfers that are running.
    ///   - last: the identifier whose transfer began last; the turn continues after it.
    ///   - allowsDiscretionary: whether network, power and machine load permit discretionary transfers.
    static func make(
        ready: [Candidate], running: [Candidate], limits: Limits = Limits(), last: String? = nil,
        allowsDiscretionary: Bool = true
    ) -> SchedulePlan {
        var plan = SchedulePlan()
        var hosts: [String: Int] = [:]
        var identifiers: [String: Int] = [:]
        for candidate in running {
            hosts[candidate.host, default: 0] += 1
            identifiers[candidate.identifier, default: 0] += 1
        }
        var count = running.count
        let eligible = ready.filter { allowsDiscretionary || !$0.isDiscretionary }
        var lanes = Dictionary(grouping: eligible, by: \.identifier).mapValues { $0.sorted(by: precedes) }
        var turn = last
        while count < limits.agent, let next = nextTurn(lanes.keys, after: turn) {
            turn = next
            guard identifiers[next, default: 0] < limits.identifier,
                let index = lanes[next]?.firstIndex(where: { hosts[$0.host, default: 0] < limits.host }),
                let chosen = lanes[next]?.remove(at: index)
            else {
                lanes[next] = nil
                continue
            }
            plan.begins.append(chosen.id)
            hosts[chosen.host, default: 0] += 1
            identifiers[next, default: 0] += 1
            count += 1
            if lanes[next]?.isEmpty == true { lanes[next] = nil }
        }
        if plan.begins.isEmpty { plan.yield(for: eligible, running, limits) }
        return plan
    }

    /// If no transfer could begin, the most urgent candidate replaces the least urgent transfer that blocks it.
    private mutating func yield(for ready: [Candidate], _ running: [Candidate], _ limits: Limits) {
        guard let wanted = ready.min(by: Self.precedes) else { return }
        let ofHost = running.filter { $0.host == wanted.host }
        let ofIdentifier = running.filter { $0.identifier == wanted.identifier }
        let competitors =
            ofHost.count >= limits.host ? ofHost : ofIdentifier.count >= limits.identifier ? ofIdentifier : running
        let preempted = competitors.filter { $0.isResumable && $0.priority < wanted.priority }.max(by: Self.precedes)
        if let preempted { yields = [preempted.id] }
    }

    private static func precedes(_ a: Candidate, _ b: Candidate) -> Bool {
        (b.priority, a.number) < (a.priority, b.number)
    }

    private static func nextTurn(_ identifiers: some Collection<String>, after last: String?) -> String? {
        let sorted = identifiers.sorted()
        return last.flatMap { last in sorted.first { $0 > last } } ?? sorted.first
    }
}
