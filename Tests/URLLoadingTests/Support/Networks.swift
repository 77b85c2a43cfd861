// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingTesting

/// A network of one link that a test switches on and off.
final class SwitchedNetwork: Sendable {
    let kernel: ScriptedPaths
    let monitor: NetworkMonitor
    private static let link = RouteBytes.link(2, "eth0"), cable = RouteBytes.link(2, "eth0", flags: 0)

    init(isUp: Bool) {
        kernel = ScriptedPaths(NetworkMonitorTests.home)
        monitor = NetworkMonitorTests.monitor(kernel)
        if !isUp { goDown() }
    }

    func goUp() { kernel.change(telling: [Self.link]) { $0.links[1] = Self.link } }
    func goDown() { kernel.change(telling: [Self.cable]) { $0.links[1] = Self.cable } }

    /// Replaces the link: the first letters of the name determine its kind.
    func exchange(for name: String) {
        let other = RouteBytes.link(3, name)
        kernel.change(telling: [other, Self.cable]) {
            $0.links = [$0.links[0], Self.cable, other]
            $0.addresses = [RouteBytes.address(3, [192, 0, 2, 3])]
            $0.routes = [RouteBytes.defaultRoute(through: [3])]
        }
    }

    /// Adds another link, which leads nowhere.
    func addUnroutedLink() {
        let other = RouteBytes.link(9, "dummy0", flags: 0)
        kernel.change(telling: [other]) { $0.links.append(other) }
    }
}

/// Answers as the test says, and remembers how often it was asked.
final class ScriptedResolver: Resolver {
    private let count = Lock(0)
    private let answer: @Sendable (Int) -> Result<[SocketAddress], IOFailure>

    /// - Parameter answer: to the question of that number, from 1.
    init(_ answer: @escaping @Sendable (Int) -> Result<[SocketAddress], IOFailure>) { self.answer = answer }

    var asked: Int { count.withLock { $0 } }

    func addresses(of name: String, _ token: StopToken) async throws(IOFailure) -> [SocketAddress] {
        let number = count.withLock { count in
            count += 1
            return count
        }
        return try answer(number).get()
    }

    static let here: Result<[SocketAddress], IOFailure> = .success([.ipv4((127, 0, 0, 1), port: 0)])
    /// An address that no host has (RFC 5737), which a test must not connect to.
    static let far: Result<[SocketAddress], IOFailure> = .success([.ipv4((192, 0, 2, 77), port: 0)])
    static let failure: Result<[SocketAddress], IOFailure> = .failure(IOFailure(.lookupFailed("no answer"), .resolve))
}
