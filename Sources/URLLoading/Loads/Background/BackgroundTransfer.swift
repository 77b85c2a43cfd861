// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import URLLoadingWire

/// A transfer of the background agent at one moment: a value. ``BackgroundTransfers/transfers`` returns the current
/// ones.
///
/// ```swift
/// for transfer in try await session.background.transfers where transfer.label == "film" {
///     print(transfer.received, transfer.expectedToReceive ?? 0)
///     try await transfer.suspend()
/// }
/// ```
/// The commands return when the agent has recorded them. They throw ``LoadError/Reason/unknownTransfer`` once the event
/// of the transfer was acknowledged.
public struct BackgroundTransfer: Sendable, Identifiable, CustomStringConvertible {
    /// The kind of transfer.
    public enum Kind: Sendable, Hashable {
        /// A response's body is written to a file.
        case download
        /// A file is sent as the body of a request.
        case upload
    }

    /// The state of the transfer.
    public enum State: Sendable, Hashable {
        /// Waits for its turn.
        case queued
        /// Waits for a reason, in words for people; `until` is the next attempt.
        case waiting(String, until: Date?)
        /// An attempt is under way.
        case running
        /// Suspended by a program.
        case suspended
        /// Over; the event waits to be handled. ``BackgroundTransfer/error`` tells a failure from a success.
        case finished
    }

    /// The identifier, never used again.
    public var id: String { record.id }
    /// Whether it is a download or an upload.
    public var kind: Kind { record.kind == .download ? .download : .upload }
    /// ``BackgroundOptions/label``.
    public var label: String { record.label }
    /// ``BackgroundOptions/userData``.
    public var userData: Data { record.userData }
    /// The URL of the request, without userinfo and query.
    public var url: URL? { URL(string: record.shownURL) }
    /// The request method.
    public var method: Method { Method(record.method) }
    /// The destination of a download; `nil` if the agent keeps the file for the event's handler.
    public var destination: URL? { record.destination.map { URL(filePath: $0) } }
    /// The number of bytes of the response's body that were received so far.
    public var received: Int64 { record.received }
    /// The expected length of the response's body in bytes; `nil` if it is unknown.
    public var expectedToReceive: Int64? { record.expectedToReceive }
    /// The number of bytes of the request's body that were sent so far.
    public var sent: Int64 { record.sent }
    /// The length of the request's body in bytes; `nil` before it is sent.
    public var expectedToSend: Int64? { record.expectedToSend }
    /// Why a finished transfer has failed, ``LoadError/Reason/cancelled`` for one that was cancelled; `nil` while the
    /// transfer is not over, and if it has succeeded.
    public var error: LoadError? {
        guard case .failed(let error)? = record.outcome else { return nil }
        return error.loadError
    }
    /// The number of attempts so far.
    public var attempts: Int { record.attempts }
    /// The moment at which the transfer was created.
    public var created: Date { Date(timeIntervalSince1970: Double(record.created) / 1e9) }

    /// The state at the moment of the listing.
    public var state: State {
        switch record.state {
        case .queued: .queued
        case .waiting, .parked: .waiting(record.reason ?? "", until: until)
        case .running, .placing: .running
        case .paused: .suspended
        case .finished: .finished
        }
    }
    private var until: Date? { record.until.map { Date(timeIntervalSince1970: Double($0) / 1e9) } }

    let record: TransferRecord
    private let connection: BackgroundConnection

    init(_ record: TransferRecord, _ connection: BackgroundConnection) {
        (self.record, self.connection) = (record, connection)
    }

    /// Suspends the transfer: it holds no connection until ``resume()``.
    public func suspend() async throws(LoadError) { try await command("pause") }
    /// Continues a suspended transfer.
    public func resume() async throws(LoadError) { try await command("resume") }
    /// Ends the transfer: its event is ``BackgroundEvent/Result/failed(_:)`` with ``LoadError/Reason/cancelled``.
    public func cancel() async throws(LoadError) { try await command("cancel") }
    /// Changes the order in which transfers begin; a more urgent one may replace a running one that can be resumed.
    public func prioritize(_ priority: TaskPriority) async throws(LoadError) {
        try await command("prioritize", [priority.rawValue])
    }

    private func command(_ verb: String, _ argument: [UInt8] = []) async throws(LoadError) {
        let id = id
        try await connection.forCaller { connection throws(AgentFailure) in
            try await connection.command(id, verb, argument)
        }
    }

    /// The transfer on one line, without secrets: `3f9c… running 2048/4096 https://example.org/film`.
    public var description: String {
        let bytes = kind == .download ? "\(received)/\(expectedToReceive.map(String.init) ?? "?")" : "\(sent)"
        return "\(id) \(record.state.rawValue) \(bytes) \(record.shownURL)"
    }
}

/// The end of a background transfer.
public struct BackgroundEvent: Sendable {
    /// The result of a transfer.
    public enum Result: Sendable {
        /// The file of a download. Without a destination it is removed with the last reference to it, unless it is
        /// moved.
        case downloaded(DownloadedFile)
        /// The response to an upload and its whole body. If the body is larger than
        /// ``Configuration/Limits/collectedBodySize``, the transfer fails with ``LoadError/Reason/bodyTooLarge``.
        case uploaded(Data, Response)
        /// The transfer failed, or its file cannot be read any more.
        case failed(LoadError)
    }
    /// The transfer, which is finished.
    public let transfer: BackgroundTransfer
    /// Its file, its response, or its error.
    public let result: Result
}

/// The settings of one background transfer.
public struct BackgroundOptions: Sendable, Hashable {
    /// The program's name for the transfer; empty by default.
    public var label = ""
    /// Data for the program that handles the event; at most 64 KiB.
    public var userData = Data()
    /// The earliest moment of sending; `nil`, the default, for at once.
    public var earliestBegin: Date?
    /// Whether the agent may choose the time of the transfer; `nil`, the default, for the session's
    /// ``Configuration/Background/isDiscretionary``.
    public var isDiscretionary: Bool?

    /// Whether a response with another status than 2xx fails the transfer with ``LoadError/Reason/unacceptableStatus``;
    /// false by default, when its body is saved as a download's file or returned as an upload's answer. A 429 or 503
    /// with Retry-After is waited for in either case.
    public var requiresSuccess = false

    /// Whether the agent copies the file of an upload before it accepts the transfer; false by default. The program may
    /// then change or remove the file. The copy needs the file's size on the disk until the transfer is acknowledged.
    public var copiesFile = false

    /// How many parts of a download's file the agent loads at once (``DownloadOptions/parallelRanges``); `nil`, the
    /// default: it is loaded as a whole.
    public var parallelRanges: ParallelRanges?

    /// A name that some transfers of the identifier share, 1 to 256 bytes: one agent carries them out, as long as it
    /// lives, so that they use its connections, or files beside each other. `nil`, the default, for none.
    ///
    /// It matters for agents that share a queue in PostgreSQL only: a single agent carries out everything. A name of
    /// another length makes the call fail with ``LoadError/Reason/notPossibleInBackground``.
    public var affinity: String?

    /// Creates options; the properties without a parameter are set afterwards.
    public init(label: String = "", userData: Data = Data()) { (self.label, self.userData) = (label, userData) }
}
