// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO
import URLLoadingWire

/// Resolves host names to addresses: see ``Configuration/Networks/nameResolver``.
///
/// ```swift
/// configuration.networks.nameResolver = NameResolver { name in try await overHTTPS.addresses(of: name) }
/// ```
/// The resolver is asked for every connection to a name, including names of proxies. It is not asked for `localhost`
/// and names below it, which are always this machine (RFC 6761 §6.3), nor for names that a proxy resolves.
public struct NameResolver: Sendable {
    /// The system's resolver, with its hosts file and DNS servers.
    public static let system = NameResolver(SystemResolver.shared)

    let resolver: any Resolver

    /// Creates a resolver from a closure.
    /// - Parameter lookUp: receives a name in normal form and returns its addresses, best first, without brackets; an
    ///   empty array if there is no such host (``LoadError/Reason/hostNotFound``). An error that it throws, or an
    ///   invalid address, ends the load with ``LoadError/Reason/lookupFailed``. It runs in a task of its own, which is
    ///   cancelled with the load. It must not wait for a load of the same session, which would need its answer.
    public init(_ lookUp: @escaping @Sendable (String) async throws -> [String]) {
        resolver = CustomResolver(lookUp: lookUp)
    }

    init(_ resolver: any Resolver) { self.resolver = resolver }
}

private struct CustomResolver: Resolver {
    let lookUp: @Sendable (String) async throws -> [String]

    func addresses(of name: String, _ token: StopToken) async throws(IOFailure) -> [SocketAddress] {
        guard let load = token as? LoadHandle else {
            throw IOFailure(.lookupFailed("a custom resolver needs a load"), .resolve)
        }
        let lookUp = lookUp
        let answer = await CallbackOutcome<Result<[String], any Error>>.run(load, within: load.attempt) {
            do { return .success(try await lookUp(name)) } catch { return .failure(error) }
        }
        let result: Result<[String], any Error>
        switch answer {
        case .answered(let answered): result = answered
        case .late: throw IOFailure(.attemptTimedOut, .resolve)
        case .stopped: throw IOFailure(.stopped(load.stopReason ?? .cancelled), .resolve)
        }
        let texts: [String]
        do { texts = try result.get() } catch { throw IOFailure(.lookupFailed("\(error)"), .resolve) }
        guard !texts.isEmpty else { throw IOFailure(.hostNotFound(name), .resolve) }
        var addresses: [SocketAddress] = []
        for text in texts {
            guard let bytes = Origin.Host.addressBytes(text), let address = SocketAddress(octets: bytes, port: 0)
            else { throw IOFailure(.lookupFailed("not an IP address: \(text)"), .resolve) }
            addresses.append(address)
        }
        return addresses
    }
}
