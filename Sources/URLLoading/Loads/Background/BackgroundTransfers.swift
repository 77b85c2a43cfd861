// SPDX-License-Identifier: Apache-2.0

// In this folder: a program's side of background transfers

public import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// The background transfers of a session: ``Session/background``.
///
/// ```swift
/// let session = Session(.background("org.example.sync"))
/// try await session.background.download(Request(url: url), to: place, options: .init(label: "film"))
/// // in this process or a later one
/// try await session.background.handleEvents { event in
///     print(event.transfer.label, event.result)
/// }
/// ```
/// All methods throw ``LoadError/Reason/notPossibleInBackground`` if the session is not a background session, or names
/// a setting that the agent cannot apply; ``LoadError/Reason/backgroundSessionInUse`` if another live session has the
/// identifier; ``LoadError/Reason/backgroundAgentUnavailable`` if there is no agent.
public struct BackgroundTransfers: Sendable {
    let core: Core
    let connection: BackgroundConnection?

    /// The connection to the agent, if the session may use it.
    func checked() throws(LoadError) -> BackgroundConnection {
        guard let connection else {
            throw .notInBackground("the session's configuration is not Configuration.background(_:)")
        }
        if core.registry.isClosed {
            throw LoadError(.sessionInvalidated, phase: .preparing, party: .local)
        }
        if let problem = BackgroundCrossing.problem(core.configuration) ?? BackgroundCrossing.problem(core.decisions) {
            throw .notInBackground(problem)
        }
        return connection
    }

    /// The transfers of the identifier whose events have not been acknowledged, in the order in which the agent has
    /// accepted them.
    public var transfers: [BackgroundTransfer] {
        get async throws(LoadError) {
            let connection = try checked()
            let records = try await connection.forCaller { connection throws(AgentFailure) in
                try await connection.transfers()
            }
            return records.map { BackgroundTransfer($0, connection) }
        }
    }

    /// The identifiers of this user's background sessions that have transfers.
    package var identifiers: [String] {
        get async throws(LoadError) {
            let connection = try checked()
            return try await connection.forCaller { connection throws(AgentFailure) in
                try await connection.identifiers()
            }
        }
    }

    /// How long the transfers survive on this system at least: until their unit is stopped, until a logout, until a
    /// reboot, or beyond it.
    public var survival: BackgroundSurvival {
        get async throws(LoadError) {
            let connection = try checked()
            let welcome = try await connection.forCaller { connection throws(AgentFailure) in
                try await connection.welcome()
            }
            return BackgroundSurvival(text: welcome.survival) ?? .untilReboot
        }
    }

    // MARK: Submitting

    /// Hands a download over to the agent; returns when the agent has it on its disk. Its end is an event for
    /// ``handleEvents(finished:_:)``, in this process or a later one. If the calling task is cancelled before, this
    /// throws at once, and a transfer that the agent then accepts is cancelled.
    /// - Parameter destination: a `file` URL, whose folder exists; `nil` keeps the file with the agent until its event
    ///   is handled.
    @concurrent @discardableResult
    public func download(
        _ request: Request, to destination: URL? = nil, options: BackgroundOptions = BackgroundOptions()
    ) async throws(LoadError) -> BackgroundTransfer {
        let request = DownloadWork.request(request)
        let order = TransferOrder(
            download: request, DownloadOptions(destination: destination), options, core.configuration)
        return try await submit(order, request)
    }

    /// Hands an upload over to the agent; returns when the agent has it on its disk. The file must stay as it is until
    /// the end of the transfer: a changed one is not sent (``LoadError/Reason/uploadSourceChanged``). With
    /// ``BackgroundOptions/copiesFile`` it may be changed or removed once this returns. Cancellation is that of
    /// ``download(_:to:options:)``.
    @concurrent @discardableResult
    public func upload(
        _ request: Request, fromFile file: URL, options: BackgroundOptions = BackgroundOptions()
    ) async throws(LoadError) -> BackgroundTransfer {
        var request = request
        request.body = nil
        return try await submit(TransferOrder(upload: request, file, options, core.configuration), request)
    }

    private func submit(_ order: TransferOrder, _ request: Request) async throws(LoadError) -> BackgroundTransfer {
        let connection = try checked()
        try order.check(request)
        var order = order
        order.challenges = core.decisions?.challenge == nil ? nil : .decision
        let secrets: TransferSecrets
        (order, secrets) = try await order.prepared(request, core, LoadHandle(idle: nil, resource: nil))
        let id = TransferOrder.newIdentifier()
        let submitted = order
        do throws(LoadError) {
            try await connection.forCaller { connection throws(AgentFailure) in
                try await connection.submit(id, submitted, secrets)
            } undo: { connection throws(AgentFailure) in
                try await connection.command(id, "cancel")
            }
        } catch { throw error.at(request.url) }
        return BackgroundTransfer(
            TransferRecord(id: id, number: 0, order: order, state: .queued), connection)
    }

    // MARK: Events

    /// Handles the ends of transfers, missed ones first, one at a time and in order. Tasks of this session that run
    /// have their results themselves, and no event.
    ///
    /// An event is acknowledged when the handler returns, and gone only then: if the handler throws, or the program is
    /// killed inside it, the next call of a session with the identifier handles the event again. So a handler must be
    /// repeatable, for instance by moving the file to a name that depends on ``BackgroundTransfer/id``.
    /// - Parameters:
    ///   - finished: called when all events have been handled that were missed.
    ///   - handle: runs in a task of the session's.
    /// - Throws: the error of the handler; ``LoadError/Reason/backgroundAgentUnavailable`` if the agent was lost and
    ///   cannot be started again; ``LoadError/Reason/cannotReadFile`` if a file cannot be taken over for a reason that
    ///   may pass (a full disk, too many open files), whose event comes again. Returns when the calling task is
    ///   cancelled or the session is invalidated.
    @concurrent
    public func handleEvents(
        finished: @Sendable () async -> Void = {}, _ handle: @Sendable (BackgroundEvent) async throws -> Void
    ) async throws {
        let connection = try checked()
        do {
            try await connection.handleEvents { event in
                guard let event else { return await finished() }
                let transfer = BackgroundTransfer(event.record, connection)
                let result: BackgroundEvent.Result =
                    switch try await BackgroundResult.of(event.record, core.cookies) {
                    case .success(.file(let file)): .downloaded(file)
                    case .success(.answer(let data, let response)): .uploaded(data, response)
                    case .failure(let error): .failed(error)
                    }
                try await handle(BackgroundEvent(transfer: transfer, result: result))
            }
        } catch let failure as AgentFailure {
            guard !Task.isCancelled, !core.registry.isClosed else { return }
            throw LoadError(failure)
        }
    }
}

// MARK: Orders

extension TransferOrder {
    init(
        download request: Request, _ options: DownloadOptions, _ own: BackgroundOptions, _ configuration: Configuration
    ) {
        self.init(.download, request, created: SystemTime.wall)
        destination = options.destination.map { $0.standardizedFileURL.path(percentEncoded: false) }
        replaces = options.overwrites
        permissions = options.permissions
        requiresSuccess = options.requiresSuccess
        digest = (options.expectedDigest ?? request.expectedDigest)?.description
        parallelRanges = options.parallelRanges?.description
        take(own, configuration)
    }

    init(upload request: Request, _ file: URL, _ own: BackgroundOptions, _ configuration: Configuration) {
        self.init(.upload, request, created: SystemTime.wall)
        source = file.standardizedFileURL.path(percentEncoded: false)
        take(own, configuration)
    }

    mutating func take(_ own: BackgroundOptions, _ configuration: Configuration) {
        (label, userData) = (own.label, own.userData)
        earliestBegin = own.earliestBegin.map { Int64(max(0, min($0.timeIntervalSince1970, 9e9)) * 1e9) }
        isDiscretionary = own.isDiscretionary ?? configuration.background?.isDiscretionary ?? false
        affinity = own.affinity
        copiesSource = kind == .upload && own.copiesFile ? true : nil
        requiresSuccess = requiresSuccess || own.requiresSuccess
        if kind == .download, let ranges = own.parallelRanges { parallelRanges = ranges.description }
    }

    /// Checks what the agent would refuse.
    func check(_ request: Request) throws(LoadError) {
        if let problem = BackgroundCrossing.problem(request) { throw .notInBackground(problem, request.url) }
        guard userData.count <= Self.maximumUserData, label.utf8.count <= Self.maximumUserData else {
            throw .notInBackground("label and user data have at most 64 KiB", request.url)
        }
        guard affinity.map({ (1...Self.maximumAffinity).contains($0.utf8.count) }) ?? true else {
            throw .notInBackground("an affinity has 1 to \(Self.maximumAffinity) bytes", request.url)
        }
    }
}
