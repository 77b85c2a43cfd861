// SPDX-License-Identifier: Apache-2.0

// How each setting of a session and a request is treated in a background session: one entry for each stored property.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// The treatment of one setting in a background session.
package enum BackgroundCrossing: Sendable, Equatable {
    /// Sent to the agent, which applies it.
    case sent
    /// Applied in this process, or without meaning for a transfer of the agent.
    case local
    /// Refused unless it has its default value, because the agent could not apply it.
    case refused

    /// The settings of a configuration; those of timeouts, connections, networks, caching, redirects and retries by
    /// their key paths.
    package static let configuration: [String: BackgroundCrossing] = [
        "isEphemeral": .local, "background": .sent,
        "timeouts.idle": .sent, "timeouts.resource": .sent, "timeouts.connect": .sent,
        "timeouts.expectContinue": .sent,
        "connections.maximumPerHost": .sent, "connections.idleLifetime": .sent, "connections.maximumIdle": .local,
        "connections.http2PingInterval": .sent, "connections.http2PingTimeout": .sent,
        "connections.httpVersions": .sent, "connections.sendsEarlyData": .sent,
        "networks.addressPolicy": .refused, "networks.addressOverrides": .refused, "networks.interface": .refused,
        "networks.resolver": .refused, "networks.proxyPolicy": .refused,
        "networks.allowsCellular": .sent, "networks.allowsExpensive": .sent, "networks.allowsConstrained": .sent,
        "networks.trafficClass": .sent,
        // The agent retries by rules of its own, and always waits for a network.
        "retries.policy": .local, "retries.budget": .local, "networks.waitsForConnectivity": .local,
        "redirects.maximum": .sent, "strictness": .sent, "limits": .sent,
        // http and https only.
        "ftp": .local,
        "headers": .sent, "userAgent": .sent, "accept": .sent, "acceptEncoding": .sent,
        // Used when a request is made.
        "requestBase": .local,
        // Settings of bodies that this process reads.
        "readAhead": .local, "temporaryDirectory": .local,
        // Downloads to files are not cached. Cookies and HSTS are applied when the transfer is submitted.
        "storageDirectory": .local, "caching.store": .local, "caching.usesMemoryStore": .local,
        "caching.policy": .local, "caching.storesForAnyAge": .local, "caching.coalescesIdenticalRequests": .local,
        "caching.external": .local,
        "cookies": .local, "hsts": .local,
        "authentication": .refused, "tls": .sent,
        "requestVersion": .refused, "sockets": .refused, "wireTap": .refused, "dial": .refused,
        "networkMonitor": .local, "foreignCache": .local,
        "loadsOnLoop": .local, "cacheTap": .local, "wallClock": .local, "clock": .local,
        // Protocol handlers are not used; observers observe the tasks of this process.
        "attachments": .local,
    ]

    package static let tls: [String: BackgroundCrossing] = [
        "minimumVersion": .sent, "maximumVersion": .sent, "trustRoots": .sent, "pins": .sent, "minimumStrength": .sent,
        "ocspStapling": .sent, "clientIdentities": .refused, "unsafelySkipsVerification": .sent,
        "unsafeConcessions": .sent, "fetchesMissingIssuers": .sent,
    ]

    package static let request: [String: BackgroundCrossing] = [
        "url": .sent, "method": .sent, "headers": .sent, "body": .refused,
        "idleTimeout": .sent, "resourceTimeout": .sent, "connectTimeout": .sent,
        "allowsCellular": .sent, "allowsExpensive": .sent, "allowsConstrained": .sent, "trafficClass": .sent,
        "retryPolicy": .local, "waitsForConnectivity": .local, "cachePolicy": .local,
        "handlesCookies": .sent, "mainDocumentURL": .sent, "contentDecoding": .local, "properties": .local,
        // Applied to the fields that are sent.
        "framingFields": .local,
        // Derived from the URL.
        "destination": .local,
    ]

    /// Returns the name of the first setting that cannot cross, with the reason; `nil` if all can.
    package static func problem(_ configuration: Configuration) -> String? {
        if let problem = configuration.background?.problem { return problem }
        let tls = configuration.tls
        let refusals: [(Bool, String)] = [
            (
                !configuration.networks.addressPolicy.isOpen && !configuration.networks.addressPolicy.isPublicOnly,
                "Configuration.networks.addressPolicy is a closure"
            ),
            (configuration.networks.addressOverrides != [], "Configuration.networks.addressOverrides"),
            (configuration.networks.interface != nil, "Configuration.networks.interface"),
            (!(configuration.networks.resolver is SystemResolver), "Configuration.networks.nameResolver is a closure"),
            (
                ProxyOrder(configuration.networks.proxyPolicy) == nil,
                "Configuration.networks.proxyPolicy other than .environment and .none"
            ),
            (
                configuration.authentication.bearer != nil,
                "Configuration.authentication.bearer renews tokens by a closure"
            ),
            (configuration.authentication.credentialStore != nil, "Configuration.authentication.credentialStore"),
            (
                !tls.clientIdentities.isEmpty,
                "Configuration.tls.clientIdentities (a challenge decision may present an identity)"
            ),
            (configuration.requestVersion != .http11, "HTTP/1.0"),
            (configuration.sockets != SocketSetup(), "a setting of sockets"),
            (configuration.dial != nil || configuration.wireTap != nil, "a test's transport"),
        ]
        return refusals.first(where: \.0).map { "\($0.1) cannot be used by the background agent" }
    }

    /// Returns the name of the first decision that a transfer does not wait for; `nil` without one. Challenges wait for
    /// the program, and redirects are followed without a decision.
    package static func problem(_ decisions: Decisions?) -> String? {
        guard let decisions else { return nil }
        let refusals: [(Bool, String)] = [
            (decisions.response != nil, "response"), (decisions.bodyProvider != nil, "bodyProvider"),
            (decisions.signs, "sign"),
        ]
        return refusals.first(where: \.0).map {
            "Decisions.\($0.1) is a closure, which cannot be called while the program does not run"
        }
    }

    /// Returns why a request cannot be carried out in the background; `nil` if it can.
    /// - Parameter isUpload: true if the body is the file of an upload, which is sent apart from the request.
    package static func problem(_ request: Request) -> String? {
        guard let scheme = request.url.scheme?.lowercased(), ["http", "https"].contains(scheme) else {
            return "only http and https are carried out in the background"
        }
        guard request.body == nil else { return "a body that is not a file cannot be sent in the background" }
        return nil
    }
}

/// A proxy policy as it is sent to the agent.
package struct ProxyOrder: Codable, Sendable, Equatable {
    /// The proxy variables of the program; `nil` to connect directly.
    package var variables: [String: String]?

    private static let names = [
        "http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
        "REQUEST_METHOD",
    ]

    /// Fails for policies that are closures or that this build does not encode.
    init?(_ policy: ProxyPolicy) {
        switch policy.choice {
        case .none: variables = nil
        case .environment(nil):
            variables = [:]
            for name in Self.names { variables?[name] = Environment.value(name) }
        case .environment, .given, .automatic, .fixed, .schemes, .decided: return nil
        }
    }

    var policy: ProxyPolicy {
        guard let variables else { return .none }
        return ProxyPolicy(choice: .given(ProxyEnvironment { variables[$0] }))
    }
}
