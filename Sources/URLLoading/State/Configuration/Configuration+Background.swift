// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension Configuration {
    /// The settings of a session whose transfers run in another process, the background agent, and outlive this one.
    ///
    /// ```swift
    /// var configuration = Configuration.background("org.example.sync")
    /// configuration.background?.wakes = .command(["/usr/bin/sync-photos", "--deliver"])
    /// let session = Session(configuration)
    /// ```
    /// - Parameter identifier: the name under which a later process finds the transfers again, unique among the
    ///   programs of this user; 1 to 255 bytes without control characters. One live session may have it.
    public static func background(_ identifier: String) -> Configuration {
        var configuration = Configuration.default
        configuration.background = Background(identifier: identifier)
        return configuration
    }

    /// The settings of background transfers.
    public struct Background: Sendable, Hashable {
        /// The name of the session; see ``Configuration/background(_:)``.
        public let identifier: String
        /// Whether the agent may choose the time of the transfers; false by default.
        public var isDiscretionary = false
        /// How the agent starts a program for events while none with this identifier runs; `nil`, the default, starts
        /// none, and the events wait.
        public var wakes: Waking?
        /// The agent's socket, in place of the one that the launch plan finds.
        package var socket: String?
        /// Whether the session lists, commands and submits beside the live one, without events.
        package var observes = false
        /// Whether the settings of the session before stay in force.
        package var keepsSettings = false
        /// Whether the session gives the transfers of earlier programs tasks before it submits its own
        /// (``BackgroundTransfers/adopt(_:adopted:finished:)``).
        package var adopts = false

        /// Creates settings; the properties without a parameter are set afterwards.
        public init(identifier: String) { self.identifier = identifier }

        /// How the agent starts a program. `URLLOADING_BACKGROUND_EVENTS` in its environment has the
        /// identifier.
        public struct Waking: Sendable, Hashable {
            /// The executable's path and its arguments.
            public var arguments: [String] = []
            /// Variables in addition to those of the agent.
            public var environment: [String: String] = [:]
            /// The working folder, a `file` URL; `nil` for that of the agent.
            public var folder: URL?
            /// The unit of the user's service manager that is started in place of a command; `nil` for none.
            public var unit: String?

            /// Starts a command, as a process of its own.
            public static func command(
                _ arguments: [String], environment: [String: String] = [:], folder: URL? = nil
            ) -> Waking {
                var waking = Waking()
                (waking.arguments, waking.environment, waking.folder) = (arguments, environment, folder)
                return waking
            }

            /// Starts a unit with `systemctl --user start`.
            public static func unit(_ name: String) -> Waking {
                var waking = Waking()
                waking.unit = name
                return waking
            }
        }

        /// Returns why the identifier cannot be used; `nil` if it can.
        var problem: String? {
            guard (1...255).contains(identifier.utf8.count),
                !identifier.unicodeScalars.contains(where: { $0.value < 32 })
            else { return "the identifier must have 1 to 255 bytes and no control characters" }
            if let waking = wakes, waking.unit == nil, waking.arguments.first?.hasPrefix("/") != true {
                return "the command that wakes the program must begin with an absolute path"
            }
            return nil
        }
    }
}
