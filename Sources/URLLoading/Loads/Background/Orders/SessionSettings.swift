// SPDX-License-Identifier: Apache-2.0

// The settings of a session that the background agent needs.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// The settings of a configuration that are sent to the agent, without secrets. Fields that an older program does not
/// send have their defaults.
package struct SessionSettings: Codable, Sendable, Equatable {
    package var idleTimeout: Duration?
    package var resourceTimeout: Duration?
    package var connectTimeout: Duration?
    package var fields: [[String]] = []
    package var userAgent: String?
    package var maximumConnectionsPerHost = 6
    package var maximumRedirects = 20
    package var isDiscretionary = false
    package var waking: WakingOrder?
    package var connections: ConnectionSettings?
    package var tls: TLSSettings?

    package init() {}
}

/// Settings of connections and of responses.
package struct ConnectionSettings: Codable, Sendable, Equatable {
    var idleLifetime: Duration
    var pingInterval: Duration?
    var pingTimeout: Duration
    var versions: String
    // Nil in settings that an earlier version has stored.
    var sendsEarlyData: Bool?
    var trafficClass: UInt8
    var acceptEncoding: String?
    // Both nil in settings that an earlier version has stored.
    var accept: String?
    var sendsNoAccept: Bool?
    var expectContinueTimeout: Duration
    var allowsCellular: Bool
    var allowsExpensive: Bool
    var allowsConstrained: Bool
    var allowsPublicAddressesOnly: Bool
    var headSize: Int
    var fieldCount: Int
    var chunkExtensionSize: Int
    var trailerSize: Int
    var informationalCount: Int
    var decompressionRatio: Int
    var decompressedSize: Int64
    // Nil in settings that an earlier version has stored.
    var http2StreamWindow: Int?
    var http2ConnectionWindow: Int?
    var collectedBodySize: Int?
    var strictness: String?
    var netrc: String?
    var methods: [String]?
    var proxyMethods: [String]?
    var waitsForProxyChallenge: Bool
    var kerberosTimeout: Duration
}

/// Settings of TLS.
package struct TLSSettings: Codable, Sendable, Equatable {
    struct Pins: Codable, Sendable, Equatable {
        var hosts: String
        var keys: [Data]
        var certificates: [Data]
    }
    var minimumVersion: Int
    var maximumVersion: Int
    /// `system`, `file`, `pem` or `systemAnd`.
    var roots: String
    var rootsText: String?
    var pins: [Pins]
    var strength: Int
    var stapling: String
    var skipsVerification: Bool

    struct Concessions: Codable, Sendable, Equatable {
        var hosts: String
        var minimumVersion: Int?
        var maximumVersion: Int?
        var strength: Int?
        var renegotiation: Bool
        var missingCloseNotify: Bool
    }
    /// Missing in the settings of earlier versions, as the next one is.
    var concessions: [Concessions]?
    var fetchesMissingIssuers: Bool?
}

/// The command that starts a program when its transfers have events and it is not running.
package struct WakingOrder: Codable, Sendable, Equatable {
    /// The variable that tells a program the identifier it was started for.
    package static let variable = "URLLOADING_BACKGROUND_EVENTS"

    /// The executable and its arguments.
    package var arguments: [String]
    package var environment: [String: String] = [:]
    package var folder: String?
    /// A unit of the user's service manager, in place of ``arguments``.
    package var unit: String?
}

/// The settings of a configuration that are stored as secrets.
package struct SessionSecrets: Codable, Sendable, Equatable {
    package var fields: [[String]] = []
    /// The URLs of proxies may contain passwords.
    package var proxies: ProxyOrder?

    package init() {}
}

// MARK: From a configuration

extension SessionSettings {
    package init(_ configuration: Configuration) {
        idleTimeout = configuration.timeouts.idle
        resourceTimeout = configuration.timeouts.resource
        connectTimeout = configuration.timeouts.connect
        fields = configuration.headers.filter { TransferOrder.harmlessFields.contains($0.name) }
            .map { [$0.name.description, $0.value] }
        userAgent = configuration.userAgent
        maximumConnectionsPerHost = configuration.connections.maximumPerHost
        maximumRedirects = configuration.redirects.maximum
        isDiscretionary = configuration.background?.isDiscretionary ?? false
        waking = configuration.background?.wakes.map {
            WakingOrder(
                arguments: $0.arguments, environment: $0.environment, folder: $0.folder?.path(percentEncoded: false),
                unit: $0.unit)
        }
        connections = ConnectionSettings(configuration)
        tls = TLSSettings(configuration.tls)
    }
}

extension SessionSecrets {
    package init(_ configuration: Configuration) {
        fields = configuration.headers.filter { !TransferOrder.harmlessFields.contains($0.name) }
            .map { [$0.name.description, $0.value] }
        proxies = ProxyOrder(configuration.networks.proxyPolicy)
    }
}

extension ConnectionSettings {
    init(_ configuration: Configuration) {
        idleLifetime = configuration.connections.idleLifetime
        pingInterval = configuration.connections.http2PingInterval
        pingTimeout = configuration.connections.http2PingTimeout
        versions = "\(configuration.connections.httpVersions)"
        sendsEarlyData = configuration.connections.sendsEarlyData
        trafficClass = configuration.networks.trafficClass.dscp
        acceptEncoding = configuration.acceptEncoding
        (accept, sendsNoAccept) = (configuration.accept, configuration.accept == nil)
        expectContinueTimeout = configuration.timeouts.expectContinue
        allowsCellular = configuration.networks.allowsCellular
        allowsExpensive = configuration.networks.allowsExpensive
        allowsConstrained = configuration.networks.allowsConstrained
        allowsPublicAddressesOnly = configuration.networks.addressPolicy.isPublicOnly
        let limits = configuration.limits
        (headSize, fieldCount, trailerSize) = (limits.headSize, limits.fieldCount, limits.trailerSize)
        (chunkExtensionSize, informationalCount) = (limits.chunkExtensionSize, limits.informationalCount)
        (decompressionRatio, decompressedSize) = (limits.decompressionRatio, limits.decompressedSize)
        strictness = configuration.strictness.rawValue
        (http2StreamWindow, http2ConnectionWindow) = (limits.http2StreamWindow, limits.http2ConnectionWindow)
        collectedBodySize = limits.collectedBodySize
        let authentication = configuration.authentication
        netrc = authentication.netrc.map { $0.path ?? NetrcReader.standardPath }
        methods = authentication.methods?.map(\.name).sorted()
        proxyMethods = authentication.proxyMethods?.map(\.name).sorted()
        waitsForProxyChallenge = authentication.waitsForProxyChallenge
        kerberosTimeout = authentication.kerberosTimeout
    }

    func apply(to configuration: inout Configuration) {
        configuration.connections.idleLifetime = idleLifetime
        configuration.connections.http2PingInterval = pingInterval
        configuration.connections.http2PingTimeout = pingTimeout
        for known in [
            Configuration.HTTPVersions.automatic, .http1Only, .http2PriorKnowledge, .http3Preferred,
            .http3PriorKnowledge,
        ]
        where "\(known)" == versions {
            configuration.connections.httpVersions = known
        }
        configuration.connections.sendsEarlyData = sendsEarlyData == true
        configuration.networks.trafficClass = TrafficClass(dscp: trafficClass)
        configuration.acceptEncoding = acceptEncoding
        if let accept { configuration.accept = accept } else if sendsNoAccept == true { configuration.accept = nil }
        configuration.timeouts.expectContinue = expectContinueTimeout
        configuration.networks.allowsCellular = allowsCellular
        configuration.networks.allowsExpensive = allowsExpensive
        configuration.networks.allowsConstrained = allowsConstrained
        if allowsPublicAddressesOnly { configuration.networks.addressPolicy = .publicOnly }
        (configuration.limits.headSize, configuration.limits.fieldCount) = (headSize, fieldCount)
        (configuration.limits.trailerSize, configuration.limits.chunkExtensionSize) = (trailerSize, chunkExtensionSize)
        configuration.limits.informationalCount = informationalCount
        configuration.limits.decompressionRatio = decompressionRatio
        configuration.limits.decompressedSize = decompressedSize
        if let known = strictness.flatMap({ Configuration.Strictness(rawValue: $0) }) {
            configuration.strictness = known
        }
        if let http2StreamWindow { configuration.limits.http2StreamWindow = http2StreamWindow }
        if let http2ConnectionWindow { configuration.limits.http2ConnectionWindow = http2ConnectionWindow }
        if let collectedBodySize { configuration.limits.collectedBodySize = collectedBodySize }
        configuration.authentication.netrc = netrc.map { Netrc.file(URL(filePath: $0)) }
        configuration.authentication.methods = methods.map { Set($0.map { Challenge.Method($0) }) }
        configuration.authentication.proxyMethods = proxyMethods.map { Set($0.map { Challenge.Method($0) }) }
        configuration.authentication.waitsForProxyChallenge = waitsForProxyChallenge
        configuration.authentication.kerberosTimeout = kerberosTimeout
    }
}

extension TLSSettings {
    init(_ tls: Configuration.TLS) {
        (minimumVersion, maximumVersion) = (tls.minimumVersion.rawValue, tls.maximumVersion.rawValue)
        switch tls.trustRoots {
        case .system: roots = "system"
        case .file(let url): (roots, rootsText) = ("file", url.path(percentEncoded: false))
        case .pem(let text): (roots, rootsText) = ("pem", text)
        case .systemAnd(let text): (roots, rootsText) = ("systemAnd", text)
        }
        pins = tls.pins.map { pins in
            var sent = Pins(hosts: pins.rule.pattern.text, keys: [], certificates: [])
            for pin in pins.rule.value {
                switch pin {
                case .publicKey(let digest): sent.keys.append(Data(digest))
                case .certificate(let digest): sent.certificates.append(Data(digest))
                }
            }
            return sent
        }
        strength = tls.minimumStrength.rawValue
        stapling = "\(tls.ocspStapling)"
        skipsVerification = tls.unsafelySkipsVerification
        if tls.fetchesMissingIssuers { fetchesMissingIssuers = true }
        if !tls.unsafeConcessions.isEmpty { concessions = tls.unsafeConcessions.map(Concessions.init) }
    }

    func apply(to tls: inout Configuration.TLS) {
        tls.minimumVersion = Configuration.TLS.Version(rawValue: minimumVersion) ?? tls.minimumVersion
        tls.maximumVersion = Configuration.TLS.Version(rawValue: maximumVersion) ?? tls.maximumVersion
        let text = rootsText ?? ""
        switch roots {
        case "file": tls.trustRoots = .file(URL(filePath: text))
        case "pem": tls.trustRoots = .pem(text)
        case "systemAnd": tls.trustRoots = .systemAnd(pem: text)
        default: tls.trustRoots = .system
        }
        // A pattern that this build cannot parse must not weaken the session: its pins then hold for every host.
        tls.pins = pins.compactMap { pins in
            let all =
                pins.keys.map { Configuration.TLS.Pin.publicKey(sha256: $0) }
                + pins.certificates.map { Configuration.TLS.Pin.certificate(sha256: $0) }
            return (try? Configuration.TLS.Pins(pins.hosts, all)) ?? (try? Configuration.TLS.Pins("*", all))
        }
        tls.minimumStrength = Configuration.TLS.Strength(rawValue: strength) ?? tls.minimumStrength
        for known in [Configuration.TLS.OCSPStapling.ignored, .ifPresent, .required] where "\(known)" == stapling {
            tls.ocspStapling = known
        }
        tls.unsafelySkipsVerification = skipsVerification
        tls.fetchesMissingIssuers = fetchesMissingIssuers ?? false
        // Concessions that this build does not know are not made.
        tls.unsafeConcessions = (concessions ?? []).compactMap(\.value)
    }
}

extension TLSSettings.Concessions {
    fileprivate init(_ given: Configuration.TLS.UnsafeConcessions) {
        self.init(
            hosts: given.pattern.text, minimumVersion: given.minimumVersion?.rawValue,
            maximumVersion: given.maximumVersion?.rawValue, strength: given.minimumStrength?.rawValue,
            renegotiation: given.allowsInsecureRenegotiation, missingCloseNotify: given.allowsMissingCloseNotify)
    }

    fileprivate var value: Configuration.TLS.UnsafeConcessions? {
        guard var value = try? Configuration.TLS.UnsafeConcessions(hosts) else { return nil }
        value.minimumVersion = minimumVersion.flatMap { .init(rawValue: $0) }
        value.maximumVersion = maximumVersion.flatMap { .init(rawValue: $0) }
        value.minimumStrength = strength.flatMap { .init(rawValue: $0) }
        value.allowsInsecureRenegotiation = renegotiation
        value.allowsMissingCloseNotify = missingCloseNotify
        return value
    }
}

extension Configuration {
    /// The settings that are sent, in 16 characters: configurations that differ in one of them have other digests.
    package var backgroundDigest: String {
        let bytes = TransferCoding.encode(SessionSettings(self)) + TransferCoding.encode(SessionSecrets(self))
        return String(Digest.hex(bytes).prefix(16))
    }
}

// MARK: The agent's configuration

extension SessionSettings {
    /// Returns a configuration for the agent's own sessions.
    /// - Parameter folder: the folder of downloads without a destination.
    package func configuration(_ secrets: SessionSecrets, temporaryDirectory folder: String) -> Configuration {
        var configuration = Configuration.ephemeral
        configuration.caching.usesMemoryStore = false
        configuration.timeouts.idle = idleTimeout
        // The agent enforces the resource timeout itself, because a session here runs one attempt of several.
        configuration.timeouts.resource = nil
        configuration.timeouts.connect = connectTimeout
        configuration.userAgent = userAgent
        configuration.connections.maximumPerHost = maximumConnectionsPerHost
        configuration.redirects.maximum = maximumRedirects
        configuration.temporaryDirectory = URL(filePath: folder, directoryHint: .isDirectory)
        for field in fields + secrets.fields where field.count == 2 {
            configuration.headers.append(FieldName(field[0]), field[1])
        }
        connections?.apply(to: &configuration)
        tls?.apply(to: &configuration.tls)
        if let proxies = secrets.proxies { configuration.networks.proxyPolicy = proxies.policy }
        return configuration
    }
}
