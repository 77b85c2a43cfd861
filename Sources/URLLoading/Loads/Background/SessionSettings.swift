// The settings of a session that the background agent needs.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// The settings of a configuration that are sent to the agent, without secrets.
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

    package init() {}
}

/// The command that starts a program when its transfers have events and it is not running.
package struct WakingOrder: Codable, Sendable, Equatable {
    /// The executable and its arguments.
    package var arguments: [String]
    package var environment: [String: String]
    package var folder: String?
    /// A unit of the user's service manager, in place of ``arguments``.
    package var unit: String?

    package init(arguments: [String], environment: [String: String] = [:], folder: String? = nil, unit: String? = nil) {
        (self.arguments, self.environment) = (arguments, environment)
        (self.folder, self.unit) = (folder, unit)
    }
}

/// The settings of a configuration that are stored as secrets.
package struct SessionSecrets: Codable, Sendable, Equatable {
    package var fields: [[String]] = []

    package init() {}
}

extension SessionSettings {
    package init(_ configuration: Configuration) {
        idleTimeout = configuration.idleTimeout
        resourceTimeout = configuration.resourceTimeout
        connectTimeout = configuration.connectTimeout
        fields = configuration.headers.filter { TransferOrder.harmlessFields.contains($0.name) }
            .map { [$0.name.description, $0.value] }
        userAgent = configuration.userAgent
        maximumConnectionsPerHost = configuration.maximumConnectionsPerHost
        maximumRedirects = configuration.maximumRedirects
    }

    /// Returns a configuration for the agent's own sessions.
    /// - Parameter folder: the folder of downloads without a destination.
    package func configuration(_ secrets: SessionSecrets, temporaryDirectory folder: String) -> Configuration {
        var configuration = Configuration.ephemeral
        configuration.cachesInMemory = false
        configuration.idleTimeout = idleTimeout
        // The agent enforces the resource timeout itself, because a session here runs one attempt of several.
        configuration.resourceTimeout = nil
        configuration.connectTimeout = connectTimeout
        configuration.userAgent = userAgent
        configuration.maximumConnectionsPerHost = maximumConnectionsPerHost
        configuration.maximumRedirects = maximumRedirects
        configuration.temporaryDirectory = URL(filePath: folder, directoryHint: .isDirectory)
        for field in fields + secrets.fields where field.count == 2 {
            configuration.headers.append(FieldName(field[0]), field[1])
        }
        return configuration
    }
}

extension SessionSecrets {
    package init(_ configuration: Configuration) {
        fields = configuration.headers.filter { !TransferOrder.harmlessFields.contains($0.name) }
            .map { [$0.name.description, $0.value] }
    }
}
