// SPDX-License-Identifier: Apache-2.0

// The session's TLS context, made at the first secure connection: reading the system's roots costs more than a
// handshake. It is made again when the settings are renewed, or when the file of the roots has changed.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

final class SecureContext: Sendable {
    private struct State: Sendable {
        var settings: Configuration.TLS
        /// Counts the settings: 0 for the first ones.
        var number = 0
        var prepared: Prepared?
    }
    private struct Prepared: Sendable {
        let context: TLSContext
        let roots: FileStamp?
    }
    private let state: Lock<State>
    /// The generation of the settings: connections of earlier generations are not reused.
    private let renewals = Atomic<Int>(0)

    init(_ settings: Configuration.TLS) { state = Lock(State(settings: settings)) }

    /// The settings of later handshakes.
    var settings: Configuration.TLS { state.withLock { $0.settings } }
    /// Their highest version, without a copy of them all.
    var maximumVersion: Configuration.TLS.Version { state.withLock { $0.settings.maximumVersion } }

    /// Whether a connection has been secured, so that the trust roots are read.
    var isPrepared: Bool { state.withLock { $0.prepared != nil } }

    var generation: Int { renewals.load(ordering: .relaxed) }

    /// Replaces the settings for later handshakes; nil reads the same settings again.
    /// - Returns: the number of the settings, which each connection made with them has (`TLSTransport.settingsNumber`).
    func renew(_ settings: Configuration.TLS?) -> Int {
        TLSContext.forgetSystemRoots()
        let number = state.withLock {
            if let settings {
                $0.settings = settings
                $0.number += 1
            }
            $0.prepared = nil
            return $0.number
        }
        renewals.add(1, ordering: .relaxed)
        return number
    }

    /// - Parameters:
    ///   - protocols: offered in place of those of HTTP; an empty list offers none.
    ///   - fetch: fetches issuers that the server does not send.
    func handshake(
        over socket: any Transport, with origin: Origin, offering protocols: [String]? = nil,
        _ client: any ConnectionClient, _ fetch: IssuerFetch?
    ) async throws(LoadError) -> TLSTransport {
        var peer = TLSPeer(TLSPeerName(origin.host), port: origin.port, applicationProtocols: protocols)
        // A byte stream is read and written by its caller, and asks no decision later.
        peer.asksIdentityLater = protocols?.isEmpty != true
        return try await handshake(
            over: socket, with: peer, of: origin.host, client,
            scheme: origin.scheme.hasPrefix("ftp") ? origin.scheme : "https", fetch: fetch)
    }

    /// Makes another connection to the same server: it resumes the session of the existing connection, or must present
    /// the same certificate. A trust decision made there is not asked again.
    func handshake(
        over socket: any Transport, with origin: Origin, continuing other: TLSTransport,
        _ client: any ConnectionClient, _ fetch: IssuerFetch?
    ) async throws(LoadError) -> TLSTransport {
        let peer = TLSPeer(TLSPeerName(origin.host), port: origin.port, applicationProtocols: [])
        let transport = try await handshake(
            over: socket, with: peer, of: origin.host, client, scheme: origin.scheme, continuing: other, fetch: fetch)
        guard transport.negotiated?.isResumed == true || transport.peerChain.first == other.peerChain.first else {
            transport.close()
            throw LoadError(
                .secureConnectionFailed, phase: .securing, party: .remote,
                detail: "the data connection has another certificate than the control connection")
        }
        return transport
    }

    /// Secures a connection to a proxy, whose certificate is verified as an origin's is.
    func handshake(over socket: any Transport, with proxy: Proxy, _ client: any ConnectionClient)
        async throws(LoadError)
        -> TLSTransport
    {
        let peer = TLSPeer(TLSPeerName(proxy.host), port: proxy.port, role: .proxy, applicationProtocols: ["http/1.1"])
        return try await handshake(over: socket, with: peer, of: proxy.host, client)
    }

    private func handshake(
        over socket: any Transport, with peer: TLSPeer, of host: Origin.Host, _ client: any ConnectionClient,
        scheme: String = "https",
        continuing other: TLSTransport? = nil, fetch: IssuerFetch? = nil
    ) async throws(LoadError) -> TLSTransport {
        let asking = client.handshakeDecision
        var peer = peer
        if case .ipv6(_, let zone?) = host.kind { peer.zone = zone }
        if let asking { (peer.asksTrust, peer.asksIdentity, peer.group) = (true, true, asking.group) }
        let transport: TLSTransport
        do throws(IOFailure) {
            transport = try TLSTransport(client: context(), peer: peer, over: socket, continuing: other)
        } catch {
            socket.close()
            throw LoadError(error)
        }
        client.handle.attach(transport.slot)
        defer { client.handle.detach(transport.slot) }
        do throws(LoadError) {
            while let question = try await Self.continueHandshake(transport, client.handle) {
                if case .issuer(let missing) = question {
                    transport.answer(issuers: try await fetch?.issuers(of: missing) ?? .none("it is not fetched here"))
                    continue
                }
                if let other, case .trust(let found) = question,
                    found.isResumed || found.shown.first?.der == other.peerChain.first
                {
                    transport.answer(trusts: true)
                    continue
                }
                try await HandshakeChallenges(transport: transport, peer: peer, client: client, scheme: scheme).answer(
                    question, asking)
            }
        } catch {
            transport.close()
            throw error
        }
        return transport
    }

    private static func continueHandshake(_ transport: TLSTransport, _ handle: LoadHandle) async throws(LoadError)
        -> TLSQuestion?
    {
        do throws(IOFailure) { return try await transport.handshakeUntilQuestion(handle) } catch {
            let error = LoadError(error)
            throw error.reason == .connectionLost
                ? error.adding(transport.resetRemedies.map { LoadError.TLSRemedy($0) }) : error
        }
    }

    /// Returns the context. Loads wait under the lock for the one that makes it, which does not suspend. A failure is
    /// not kept: a process without free descriptors, which cannot read the roots, may have some later.
    func context() throws(IOFailure) -> TLSContext {
        let made = state.withLock { state -> Result<TLSContext, TLSFailure> in
            let roots = state.settings.rootsFile.map(FileStamp.init)
            if let prepared = state.prepared {
                if prepared.roots == roots { return .success(prepared.context) }
                renewals.add(1, ordering: .relaxed)
            }
            let made = Result { () throws(TLSFailure) in
                try TLSContext(TLSConfiguration(state.settings, number: state.number))
            }
            state.prepared = (try? made.get()).map { Prepared(context: $0, roots: roots) }
            return made
        }
        do throws(TLSFailure) { return try made.get() } catch { throw IOFailure(.tls(error), .handshake) }
    }
}

extension Configuration.TLS {
    fileprivate var rootsFile: String? {
        if case .file(let url) = trustRoots { url.path(percentEncoded: false) } else { nil }
    }
}

extension TLSConfiguration {
    fileprivate init(_ settings: Configuration.TLS, number: Int) {
        self.init()
        self.number = number
        minimumVersion = TLSVersion(settings.minimumVersion)
        maximumVersion = TLSVersion(settings.maximumVersion)
        verification = settings.unsafelySkipsVerification ? .unsafeNone : .full
        applicationProtocols = ["http/1.1"]
        roots =
            switch settings.trustRoots {
            case .system: .system
            case .file(let url): .file(url.path(percentEncoded: false))
            case .pem(let text): .pem(Array(text.utf8))
            case .systemAnd(let text): .systemAnd(Array(text.utf8))
            }
        pins = settings.pins.map(\.rule)
        concessions = settings.unsafeConcessions.map(TLSRule.init)
        fetchesMissingIssuers = settings.fetchesMissingIssuers
        identities = settings.clientIdentities.map(\.rule)
        securityLevel = Int32(settings.minimumStrength.rawValue)
        staples =
            switch settings.ocspStapling {
            case .ignored: .ignored
            case .ifPresent: .ifPresent
            case .required: .required
            }
    }
}

extension TLSPeerName {
    /// The certificate must match the host of the URL, in normal form; never a name from DNS.
    init(_ host: Origin.Host) {
        self =
            switch host.kind {
            case .name: .dns(host.dnsName ?? "")
            case .ipv4(let bytes): .ip(bytes)
            case .ipv6(let bytes, _): .ip(bytes)
            }
    }
}
