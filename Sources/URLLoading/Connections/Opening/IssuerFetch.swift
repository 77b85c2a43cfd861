// SPDX-License-Identifier: Apache-2.0

// Fetches the certificate of an issuer that a server did not send (RFC 5280 §4.2.2.1), while the handshake pauses.
//
// Rule 1: http only, which needs no handshake of its own: the certificate is verified with the chain, and a false one
// proves nothing. A redirect to another scheme is refused.
// Rule 2: the address comes from a certificate that nothing vouches for yet. The session's policies hold for it: the
// addresses and networks that may be used, and its proxies. No cookie and no credential is sent.
// Rule 3: everything has a limit: time, bytes, redirects, addresses.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// Fetches for one handshake. A class, so that a connection without it carries no more than a null reference.
final class IssuerFetch: Sendable {
    private let connector: Connector
    private let client: any ConnectionClient
    private let access: NetworkAccess

    /// For one certificate, all addresses and redirects included.
    static let secondsLimit: Int64 = 5
    /// Of one response. Certificates have 1 to 2 KB.
    static let sizeLimit = 64 * 1024
    static let redirectLimit = 3

    init(_ connector: Connector, _ client: any ConnectionClient, _ access: NetworkAccess) {
        (self.connector, self.client, self.access) = (connector, client, access)
    }

    /// Returns the certificates at the first address that has any. Throws only if the load is stopped.
    func issuers(of missing: TLSMissingIssuer) async throws(LoadError) -> TLSFoundIssuers {
        let handle = client.handle
        let attempt = TimedAttempt(handle, timeout: Self.secondsLimit * 1_000_000_000)
        var words: [String] = []
        for location in missing.locations where words.count < Self.locationLimit {
            if let known = connector.issuers.certificates(at: location, of: missing.certificate) {
                return .certificates(known, from: location)
            }
            do throws(LoadError) {
                switch try await handle.attempting(attempt, { () throws(LoadError) in try await load(location) }) {
                case .file(let bytes):
                    guard let found = CertificateFacts.issuers(in: bytes) else {
                        words.append("\(location) is neither a certificate in DER nor PKCS#7")
                        continue
                    }
                    if found.contains(where: { $0.isIssuer(of: missing.certificate) }) {
                        connector.issuers.keep(found, at: location)
                    }
                    return .certificates(found, from: location)
                case .refused(let reason): words.append("\(location): \(reason)")
                }
            } catch {
                if let reason = handle.stopReason { throw LoadError(reason, or: error) }
                let isLate = error.reason == .connectTimeout && attempt.isOver
                words.append(
                    "\(location): " + (isLate ? "no answer within \(Self.secondsLimit) seconds" : error.shortWords))
                if isLate { break }
            }
        }
        return .none(words.joined(separator: "; "))
    }
    private static let locationLimit = 2

    private enum Outcome {
        case file([UInt8])
        /// The reason, as a clause.
        case refused(String)
    }

    private enum Answer {
        case file([UInt8])
        case moved(String)
        case refused(String)
    }

    /// Loads one address, and follows its redirects.
    private func load(_ location: String) async throws(LoadError) -> Outcome {
        var reference: URIReference
        do throws(WireViolation) { reference = try URIReference(location) } catch {
            return .refused("no valid address")
        }
        for _ in 0...Self.redirectLimit {
            let target: Target
            do throws(WireViolation) { target = try Target(reference) } catch {
                return .refused(error.code == .unsupportedScheme ? Self.otherScheme : "no valid address")
            }
            guard target.origin.scheme == "http" else { return .refused(Self.otherScheme) }
            switch try await answer(target) {
            case .file(let bytes): return .file(bytes)
            case .refused(let words): return .refused(words)
            case .moved(let place):
                do throws(WireViolation) { reference = try reference.resolve(URIReference(place)) } catch {
                    return .refused("a redirect to no valid address")
                }
            }
        }
        return .refused("more than \(Self.redirectLimit) redirects")
    }
    private static let otherScheme = "issuers are fetched over http only"

    private func answer(_ target: Target) async throws(LoadError) -> Answer {
        let configuration = connector.configuration
        let plan = ProxyPlan(
            configuration.networks.proxyPolicy, configuration.networks.addressOverrides,
            waitsForQuestions: configuration.authentication.waitsForProxyChallenge)
        let url = URL(string: String(decoding: target.absoluteForm, as: UTF8.self))
        return try await plan.first(to: target.origin, url, for: client.handle) { (chain) throws(LoadError) in
            try await answer(target, through: chain)
        }
    }

    private func answer(_ target: Target, through chain: ProxyChain) async throws(LoadError) -> Answer {
        let isMoved = connector.configuration.networks.addressOverrides.moves(target.origin)
        let forwarder = Route(origin: target.origin, proxyChain: chain, isMoved: isMoved).forwarder
        let request = ConnectionRequest(client: client, access: access)
        let transport = try await connector.transport(
            to: ConnectionTarget(
                origin: target.origin, proxyChain: chain, isForwarded: forwarder != nil, isSecure: false),
            for: request)
        client.handle.attach(transport.slot)
        defer {
            client.handle.detach(transport.slot)
            transport.close()
        }
        var codec = HTTP1Codec(
            role: .client, limits: HTTP1Limits(connector.configuration.limits),
            isTolerant: connector.configuration.strictness == .tolerant)
        let bytes = try self.request(target, forwarder, &codec)
        let tap = connector.configuration.wireTap.map { ProxyTap(report: $0, connection: ConnectionIdentifier.make()) }
        if let tap {
            tap.report(.connected(transport.description, connection: tap.connection))
            tap.report(.sent(bytes, connection: tap.connection))
        }
        return try await receive(from: transport, sending: bytes, &codec, tap)
    }

    private func request(
        _ target: Target, _ forwarder: Proxy?, _ codec: inout HTTP1Codec
    ) throws(LoadError) -> [UInt8] {
        let form = forwarder == nil ? target.originForm : target.absoluteForm
        var headers = Headers()
        if let userAgent = connector.configuration.userAgent { headers.append(.userAgent, userAgent) }
        headers.append(.connection, "close")
        if let proof = forwarder?.authorizationField("GET", form) { headers.append(.proxyAuthorization, proof) }
        var bytes: [UInt8] = []
        do throws(WireViolation) {
            try codec.sendRequest(
                method: .get, target: form, host: target.hostField, headers: headers, framing: .none, into: &bytes)
        } catch { throw LoadError(error, .connecting) }
        return bytes
    }

    private func receive(
        from transport: any Transport, sending request: [UInt8], _ codec: inout HTTP1Codec, _ tap: ProxyTap?
    ) async throws(LoadError) -> Answer {
        var (input, body) = ([UInt8](), [UInt8]())
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        do throws(IOFailure) {
            try await transport.sendAll(request, client.handle)
        } catch { throw LoadError(error) }
        var hasEnded = false
        while true {
            switch try next(&codec, &input, hasEnded: hasEnded, body: &body) {
            case .response(let head)?:
                if let place = head.headers[.location], [301, 302, 303, 307, 308].contains(head.status.code) {
                    return .moved(place)
                }
                guard head.status == .ok else { return .refused("the server answered \(head.status)") }
                guard codec.remainingLength ?? 0 <= Int64(Self.sizeLimit) else { return .refused(Self.tooLarge) }
            case .end?: return .file(body)
            case .data?: guard body.count <= Self.sizeLimit else { return .refused(Self.tooLarge) }
            case .informational?: break
            case .request?, .upgraded?: return .refused("the answer is not HTTP")
            case nil:
                guard !hasEnded else { return .refused("the answer is not complete") }
                let count: Int
                do throws(IOFailure) { count = try await transport.receiveSome(&buffer, client.handle) } catch {
                    throw LoadError(error)
                }
                hasEnded = count == 0
                input += buffer[..<count]
                if let tap, count > 0 {
                    tap.report(.received(Array(buffer[..<count]), connection: tap.connection))
                }
            }
        }
    }
    private static let tooLarge = "more than \(sizeLimit / 1024) KiB"

    private func next(
        _ codec: inout HTTP1Codec, _ input: inout [UInt8], hasEnded: Bool, body: inout [UInt8]
    ) throws(LoadError) -> HTTP1Event? {
        do throws(WireViolation) {
            var consumed = 0
            let event = try input.withUnsafeBytes { bytes in
                Result { () throws(WireViolation) in try codec.next(bytes, consumed: &consumed) }
            }.get()
            if case .data(let range)? = event { body += input[range] }
            input.removeFirst(consumed)
            return try event == nil && hasEnded ? codec.receiveEnd() : event
        } catch { throw LoadError(error, .connecting) }
    }
}

extension LoadError {
    /// The reason with its detail, for a clause of another error.
    fileprivate var shortWords: String { detail.map { "\(reason.name): \($0)" } ?? reason.name }
}

extension Transport {
    fileprivate func sendAll(_ bytes: [UInt8], _ token: StopToken) async throws(IOFailure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let progress = rest.withUnsafeBytes { bytes in Result { () throws(IOFailure) in try write(bytes) } }
            switch try progress.get() {
            case .moved(let count): rest = rest.dropFirst(count)
            case .end: throw IOFailure(.closedByPeer, .write)
            case .blocked(let interest): try await wait(interest, .write, token)
            }
        }
    }

    /// Reads what is available into the buffer; returns 0 at the end.
    fileprivate func receiveSome(_ buffer: inout [UInt8], _ token: StopToken) async throws(IOFailure) -> Int {
        while true {
            let progress = buffer.withUnsafeMutableBytes { room in
                Result { () throws(IOFailure) in try read(into: room) }
            }
            switch try progress.get() {
            case .moved(let count): return count
            case .end: return 0
            case .blocked(let interest): try await wait(interest, .read, token)
            }
        }
    }

    private func wait(
        _ interest: PollSlot.Interest, _ operation: IOFailure.Operation, _ token: StopToken
    ) async throws(IOFailure) {
        try token.check(operation)
        await Poller.shared.park(slot, interest, token)
        try token.check(operation)
    }
}

/// The issuers that a session has fetched, by their address: a few, which are shared by many servers.
final class IssuerMemory: Sendable {
    static let countLimit = 32

    private struct Entry: Sendable {
        let certificates: [CertificateFacts]
        let number: Int
    }
    private struct State: Sendable {
        var entries: [String: Entry] = [:]
        var number = 0
    }
    private let state = Lock(State())

    /// Returns the certificates of an address, if the certificate's issuer is still among them: the address may have
    /// another one today.
    func certificates(at location: String, of issued: CertificateFacts) -> [CertificateFacts]? {
        guard let known = state.withLock({ $0.entries[location]?.certificates }) else { return nil }
        return known.contains { $0.isIssuer(of: issued) } ? known : nil
    }

    /// Keeps certificates that have proven to be an issuer's; the oldest entry gives way.
    func keep(_ certificates: [CertificateFacts], at location: String) {
        state.withLock { state in
            state.number += 1
            state.entries[location] = Entry(certificates: certificates, number: state.number)
            guard state.entries.count > Self.countLimit else { return }
            if let oldest = state.entries.min(by: { $0.value.number < $1.value.number }) {
                state.entries[oldest.key] = nil
            }
        }
    }

    func removeAll() { state.withLock { $0.entries.removeAll() } }
}
