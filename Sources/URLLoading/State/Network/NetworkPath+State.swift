// SPDX-License-Identifier: Apache-2.0

// Converts the kernel's state into a network path. Pure, except for `kind`.

import URLLoadingIO

extension NetworkPath {
    init(_ state: PathState, _ hints: NetworkMonitor.Hints, kind: (PathLink) -> LinkKind) {
        let preferred = Self.preferred(state, kind)
        let routed = Dictionary(grouping: state.routes.flatMap { route in route.indices.map { ($0, route.isIPv6) } }) {
            $0.0
        }
        let addressed = Dictionary(grouping: state.addresses) { $0.index }
        let usable = state.links.values.filter { link in
            link.isRunning && !link.isLoopback && (routed[link.index] != nil || addressed[link.index] != nil)
        }
        let interfaces = usable.map { link in
            func supports(isIPv6: Bool) -> Bool {
                routed[link.index]?.contains { $0.1 == isIPv6 } == true
                    || addressed[link.index]?.contains { $0.isIPv6 == isIPv6 } == true
            }
            return Interface(
                name: link.name, index: Int(link.index), type: InterfaceType(kind(link)),
                supportsIPv4: supports(isIPv6: false), supportsIPv6: supports(isIPv6: true),
                isPreferred: preferred.map { $0.contains(link.index) } ?? true)
        }
        // Sorting by index makes equal states give equal paths.
        let ordered = interfaces.sorted { ($0.isPreferred ? 0 : 1, $0.index) < ($1.isPreferred ? 0 : 1, $1.index) }
        self.init(
            ordered.isEmpty ? .unsatisfied : .satisfied, interfaces: ordered, isExpensive: hints.isExpensive,
            isConstrained: hints.isConstrained)
    }

    /// Returns the interfaces of the default routes with the lowest metric of each family; `nil` without a default
    /// route. A tunnel's traffic leaves through another interface, at its cost, so the next route counts as well.
    private static func preferred(_ state: PathState, _ kind: (PathLink) -> LinkKind) -> Set<Int32>? {
        var preferred: Set<Int32>?
        for isIPv6 in [false, true] {
            let routes = state.routes.enumerated().filter { $0.element.isIPv6 == isIPv6 }
                .sorted { ($0.element.metric, $0.offset) < ($1.element.metric, $1.offset) }
            for (_, route) in routes {
                let links = route.indices.compactMap { state.links[$0] }.filter { $0.isRunning && !$0.isLoopback }
                guard !links.isEmpty else { continue }
                preferred = (preferred ?? []).union(links.map(\.index))
                if links.contains(where: { kind($0) != .other }) { break }
            }
        }
        return preferred
    }
}

extension NetworkPath.InterfaceType {
    init(_ kind: LinkKind) {
        self =
            switch kind {
            case .wired: .wired
            case .wifi: .wifi
            case .cellular: .cellular
            case .loopback: .loopback
            case .other: .other
            }
    }
}
