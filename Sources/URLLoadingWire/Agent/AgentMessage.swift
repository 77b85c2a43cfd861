// SPDX-License-Identifier: Apache-2.0

// In this folder: the messages between a program and the background agent

/// A message between a program and the background agent.
///
/// A program connects and sends ``hello(_:)``, which the agent answers with ``welcome(_:)``; then ``attach(_:)`` makes
/// it the only live session of an identifier. Requests are answered in any order, by id. Orders, settings and records
/// are bytes that the layers above encode.
package enum AgentMessage: Sendable, Equatable {
    // Messages of the program.
    case hello(Hello)
    case attach(Attachment)
    case detach
    case submit(Submission)
    /// Requests the transfers of the identifier with a greater number.
    case list(after: Int64)
    case command(Command)
    /// Requests missed events, in order, and then later ones.
    case listen
    /// The handler of an event has returned, so the agent removes the event.
    case acknowledge(sequence: Int64)
    case status
    /// Asks for the identifiers that have transfers or programs.
    case identifiers
    /// A newer program asks the agent to stop at synchronised offsets and to exit.
    case handOver
    /// Asks what the agents do that share the agent's journal; the report is empty if there are no others.
    case fleet
    /// Asks the agent to take no more work, and to exit when it has finished or given back what it works on.
    case drain

    // Messages of the agent.
    case welcome(Welcome)
    case done
    case refused(Refusal)
    case page(Page)
    case event(Event)
    case progress(Progress)
    /// A challenge of a transfer's server, which the program answers with the command `answer`.
    case challenge(Challenge)
    /// All events that were missed have been acknowledged.
    case finishedEvents
    case report(text: String)

    /// A message of a later version: a request is answered with a refusal, any other is ignored.
    case unknown(kind: UInt16)
}

extension AgentMessage {
    package struct Hello: Sendable, Equatable {
        package var lowest: Int64
        package var highest: Int64
        /// The name of the executable, for listings.
        package var program: String

        package init(lowest: Int64, highest: Int64, program: String) {
            (self.lowest, self.highest, self.program) = (lowest, highest, program)
        }
    }

    package struct Welcome: Sendable, Equatable {
        /// The version that both use from now on.
        package var version: Int64
        package var process: Int64
        /// The events that transfers survive, as text of the layers above.
        package var survival: String
        /// The way in which the agent was started, as text for users.
        package var manner: String

        package init(version: Int64, process: Int64, survival: String, manner: String) {
            (self.version, self.process, self.survival, self.manner) = (version, process, survival, manner)
        }
    }

    package struct Attachment: Sendable, Equatable {
        package var identifier: String
        /// Empty to keep those of the session before.
        package var settings: [UInt8]
        package var secrets: [UInt8]
        /// The program lists, commands and submits without being the live session: it gets no events.
        package var observes: Bool
        /// The program answers challenges.
        package var answers: Bool
        /// The agent has started the program for events or challenges of the identifier.
        package var wasWoken: Bool

        package init(
            identifier: String, settings: [UInt8], secrets: [UInt8], observes: Bool = false, answers: Bool = false,
            wasWoken: Bool = false
        ) {
            (self.identifier, self.settings, self.secrets) = (identifier, settings, secrets)
            (self.observes, self.answers, self.wasWoken) = (observes, answers, wasWoken)
        }
    }

    package struct Submission: Sendable, Equatable {
        /// Chosen by the program and never reused, so that a repeated submission is accepted once.
        package var transfer: String
        package var order: [UInt8]
        package var secrets: [UInt8]

        package init(transfer: String, order: [UInt8], secrets: [UInt8]) {
            (self.transfer, self.order, self.secrets) = (transfer, order, secrets)
        }
    }

    package struct Command: Sendable, Equatable {
        package var transfer: String
        /// `pause`, `resume`, `cancel`, `prioritize`, or `answer` to a challenge.
        package var verb: String
        package var argument: [UInt8]

        package init(transfer: String, verb: String, argument: [UInt8] = []) {
            (self.transfer, self.verb, self.argument) = (transfer, verb, argument)
        }
    }

    package struct Refusal: Sendable, Equatable {
        /// A stable name, such as `identifierInUse`.
        package var code: String
        package var detail: String
        /// The process that holds the requested identifier; 0 without one.
        package var process: Int64
        /// The highest version of the protocol that the agent speaks, if the versions are the reason; 0 otherwise.
        package var highest: Int64

        package init(code: String, detail: String, process: Int64 = 0, highest: Int64 = 0) {
            (self.code, self.detail) = (code, detail)
            (self.process, self.highest) = (process, highest)
        }
    }

    package struct Challenge: Sendable, Equatable {
        /// Unique in this agent's process; the answer repeats it.
        package var number: Int64
        package var transfer: String
        /// The challenge, encoded by the layers above.
        package var record: [UInt8]

        package init(number: Int64, transfer: String, record: [UInt8]) {
            (self.number, self.transfer, self.record) = (number, transfer, record)
        }
    }

    package struct Page: Sendable, Equatable {
        package var records: [[UInt8]]
        /// The argument for the next ``AgentMessage/list(after:)``; `nil` at the end.
        package var next: Int64?

        package init(records: [[UInt8]], next: Int64?) { (self.records, self.next) = (records, next) }
    }

    package struct Event: Sendable, Equatable {
        package var sequence: Int64
        package var record: [UInt8]

        package init(sequence: Int64, record: [UInt8]) { (self.sequence, self.record) = (sequence, record) }
    }

    /// The byte counts of a running transfer; -1 for an unknown length.
    package struct Progress: Sendable, Equatable {
        package var transfer: String
        package var received: Int64
        package var expectedToReceive: Int64
        package var sent: Int64
        package var expectedToSend: Int64
        /// The response, encoded by the layers above, in the message that is sent when it was received; empty
        /// otherwise.
        package var response: [UInt8]

        package init(
            transfer: String, received: Int64, expectedToReceive: Int64, sent: Int64, expectedToSend: Int64,
            response: [UInt8] = []
        ) {
            (self.transfer, self.response) = (transfer, response)
            (self.received, self.expectedToReceive) = (received, expectedToReceive)
            (self.sent, self.expectedToSend) = (sent, expectedToSend)
        }
    }
}

/// The supported versions of the protocol.
package enum AgentVersions {
    package static let lowest: Int64 = 1
    package static let highest: Int64 = 1
    package static let own = lowest...highest

    /// The highest common version; `nil` without one.
    package static func common(_ hello: AgentMessage.Hello, own: ClosedRange<Int64> = AgentVersions.own) -> Int64? {
        let version = min(hello.highest, own.upperBound)
        return version >= max(hello.lowest, own.lowerBound) ? version : nil
    }
}
