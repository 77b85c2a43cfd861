import URLLoadingIO
import URLLoadingWire

/// Who knows the addresses of hosts: see ``Configuration/nameResolver``.
///
/// ```swift
/// configuration.nameResolver = NameResolver { name in try await overHTTPS.addresses(of: name) }
/// ```
/// It is asked for every connection to a name, the names of proxies included. Names below `localhost` are this
/// machine and not asked for (RFC 6761 §6.3), nor are names that a proxy is to look up.
public struct NameResolver: Sendable {
    /// The system's: its files, and the servers it is set up with.
    public static let system = NameResolver(SystemResolver.shared)

    let resolver: any Resolver

    /// - Parameter lookUp: gets a name in normal form and returns its addresses, best first, without brackets; none if
    ///   there is no such host (``LoadError/Reason/hostNotFound``). What it throws, and what is no address, ends the load
    ///   with ``LoadError/Reason/lookupFailed``. It runs in a task of its own, which is cancelled with the load, and must
    ///   not wait for loads of the same session that need it.
    public init(_ lookUp: @escaping @Sendable (String) async throws -> [String]) {
        resolver = CallersResolver(lookUp: lookUp)
    }

    init(_ resolver: any Resolver) { self.resolver = resolver }
}

private struct CallersResolver: Resolver {
    let lookUp: @Sendable (String) async throws -> [String]

    func addresses(of name: String, _ token: StopToken) async throws(IOFailure) -> [SocketAddress] {
        guard let load = token as? LoadHandle else { throw IOFailure(.lookupFailed("nobody to ask for"), .resolve) }
        let lookUp = lookUp
        let timeLeft = load.attempt.map { Duration.nanoseconds($0.timeLeft) }
        let answer = await Interruption<Result<[String], any Error>>.run(load, timeout: timeLeft) {
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
            else { throw IOFailure(.lookupFailed("no address: \(text)"), .resolve) }
            addresses.append(address)
        }
        return addresses
    }
}
